// The graph under pointer and keyboard, and the panel that says what lies in the buffer while a group runs.
const panel = document.getElementById("group");
const element = (tag, text, parent, className) => {
  const node = document.createElement(tag);
  if (text !== undefined && text !== null) node.textContent = text;
  if (className) node.className = className;
  if (parent) parent.append(node);
  return node;
};
const drawn = (tag, parent, attributes) => {
  const node = document.createElementNS(document.getElementById("graph-svg").namespaceURI, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  parent.append(node);
  return node;
};
const words = (bytes) => count(Math.round(bytes / G.element)) + " words";

function sampled(link) {
  if (link.points) return link.points;
  const p = link.path, points = [[p[0], p[1]]];
  for (let i = 2; i < p.length; i += 6) {
    const [x0, y0] = points[points.length - 1];
    for (let s = 1; s <= 8; s++) {
      const t = s / 8, u = 1 - t, at = (a, b, c, d) => u * u * u * a + 3 * u * u * t * b + 3 * u * t * t * c + t * t * t * d;
      points.push([at(x0, p[i], p[i + 2], p[i + 4]), at(y0, p[i + 1], p[i + 3], p[i + 5])]);
    }
  }
  link.points = points;
  return points;
}
function near(link, x, y, reach) {
  const points = sampled(link);
  for (let i = 1; i < points.length; i++) {
    const [ax, ay] = points[i - 1], [bx, by] = points[i], dx = bx - ax, dy = by - ay;
    const t = Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1)));
    if (Math.hypot(x - ax - t * dx, y - ay - t * dy) < reach) return true;
  }
  return false;
}
const within = (b, x, y) => x >= b.x && x <= b.x + b.w && y >= b.y && y <= b.y + b.h;
function pickGraph(sx, sy) {
  const x = sx / view.k + view.x, y = sy / view.k + view.y;
  const unit = units.find((u) => within(u, x, y));
  if (unit) {
    if (view.open && view.k > 0.3) {
      const op = unit.members.find((o) => within(o, x, y));
      if (op) return { unit, op };
      const link = unit.inner.find((l) => near(l, x, y, 4 / view.k));
      if (link) return { unit, tensor: link.tensor };
    }
    return { unit };
  }
  const end = terminals.find((t) => within(t, x, y));
  if (end) return { tensor: end.tensor };
  const link = outer.find((l) => near(l, x, y, Math.max(linkWidth(l) / 2, 4 / view.k)));
  return link ? { tensor: link.tensor } : null;
}

const unitName = (i, instead) => (i < 0 ? instead : units[i].group ? units[i].name : "operator " + units[i].members[0].name);
const bufferOf = (unit, tensor) => unit.buffers.find((b) => b.tensor === tensor);
const held = (b) => (b.whole ? "whole, in a range of its own" : "all channels, shared rows kept (held)");

const percent = (bytes) => ((100 * bytes) / Math.max(1, plan.budget)).toFixed(1) + " %";

function aboutOperator(op) {
  const unit = units[op.unit], rows = [["runs in", unitName(op.unit) + ", " + unit.tile]];
  for (const [word, list] of [["reads", op.reads], ["writes", op.writes]])
    for (const t of list.slice(0, 5)) {
      const b = bufferOf(unit, t);
      rows.push([word, tensors[t].name + ": " + mapText(t) + (b && b.rows ? "; " + (b.whole ? held(b) : count(b.rows) + " rows in the buffer, " + held(b)) : "")]);
    }
  if (op.reads.length > 5) rows.push(["reads", op.reads.length - 5 + " more"]);
  if (op.weights)
    rows.push(["weights", exact(op.weights) + (op.times < 0 ? ", resident: fetched once" : op.times > 1 ? ", fetched " + count(op.times) + " times: " + exact(op.weights * op.times) : ", fetched once")]);
  return { title: op.name, kind: op.type, rows };
}
function aboutUnit(unit) {
  const rows = [["operators", unit.members.slice(0, 6).map((o) => o.label).join(", ") + (unit.members.length > 6 ? " and " + (unit.members.length - 6) + " more" : "")]];
  if (unit.group) rows.push(["runs in", unit.subgroups > 1 ? count(unit.subgroups) + " sub-groups: " + unit.tile : G.nests[unit.id] ? unit.tile : "one piece"]);
  rows.push(["scratch", exact(unit.scratch) + ", " + percent(unit.scratch) + " of the budget"]);
  if (unit.whole.size) rows.push(["whole operands", exact(unit.buffers.reduce((sum, b) => sum + (b.whole && b.tensor >= 0 ? b.own : 0), 0))]);
  for (const [word, bytes] of [["read from DRAM", unit.into], [G.nests[unit.id] ? "read again" : "halo read again", unit.halo], ["written to DRAM", unit.out], ["weights fetched", unit.weights]])
    if (bytes) rows.push([word, exact(bytes) + ", " + words(bytes)]);
  rows.push(["DRAM in all", exact(unit.total) + ", " + words(unit.total)]);
  const n = unit.members.length;
  return { title: unitName(unit.id), kind: (unit.group ? "group of " + n + (n === 1 ? " operator" : " operators") : "runs alone") + ", step " + count(unit.step + 1), rows };
}
function aboutTensor(t, unit) {
  const rows = [["bytes", exact(tensors[t].bytes)]], links = outer.filter((l) => l.tensor === t);
  if (G.maps[t]) rows.push(["map", G.maps[t].slice(1).map(count).join(" × ") + " (channels, rows, columns)" + (G.maps[t][0] > 1 ? ", " + count(G.maps[t][0]) + " images" : "")]);
  const b = unit && bufferOf(unit, t);
  if (b && b.whole) rows.push(["on chip", held(b) + ": " + exact(b.bytes)]);
  else if (b && b.rows) rows.push(["in the buffer", count(b.rows) + " rows, " + held(b) + ": " + exact(b.bytes)]);
  if (!links.length) rows.push(["DRAM", "nothing: it lives in the buffer only"]);
  else {
    rows.push(["made by", unitName(links[0].maker, "outside: a network input") + (links[0].written ? ", written " + exact(links[0].written) : "")]);
    for (const link of links.slice(0, 6))
      rows.push(["read by", unitName(link.reader, "nobody: a network output") + (link.read ? ", " + exact(link.read) + (link.read > tensors[t].bytes ? " with halo" : "") : link.reader >= 0 ? ", on chip, whole" : "")]);
    if (links.length > 6) rows.push(["read by", links.length - 6 + " more"]);
  }
  return { title: tensors[t].name, kind: ROLE[tensors[t].role], rows };
}
const about = (hit) => (hit.op ? aboutOperator(hit.op) : hit.tensor !== undefined ? aboutTensor(hit.tensor, hit.unit) : aboutUnit(hit.unit));

function chooseUnit(unit, zoomed) {
  view.unit = unit;
  bringUnit(unit, zoomed);
  fillPanel(unit);
  spoken.textContent = "";
  speak(aboutUnit(unit));
}

// -- the panel: the group, opened, and what lies in the buffer -----------------------------------------------------

const BUFFER_CLASS = ["b-in", "b-inner", "b-out", "b-resident", "b-tile", "b-tile", "b-kept", "b-reserved"];
const bufferHow = (b) => (b.what === 3 ? "fetched once" : b.what === 4 ? "the largest of those fetched again" : b.what > 4 ? "" : !b.whole ? "held"
  : "whole" + (b.shared ? ", " + short(b.shared) + " under the output" : ""));

function fillPanel(unit) {
  panel.textContent = "";
  panel.hidden = false;
  const head = element("h3", unitName(unit.id), panel);
  const n = unit.members.length;
  element("span", (unit.group ? n + (n === 1 ? " operator" : " operators") : "runs alone") + (unit.group ? ", " + (unit.subgroups > 1 ? count(unit.subgroups) + " sub-groups (" + unit.tile + ")" : G.nests[unit.id] ? unit.tile : "in one piece") : ""), head);
  const columns = element("div", null, panel, "columns");
  paintInset(unit, element("div", null, columns));
  const right = element("div", null, columns);
  const rows = [["read", unit.into], [G.nests[unit.id] ? "read again" : "halo read again", unit.halo], ["written", unit.out], ["weights", unit.weights], ["DRAM in all", unit.total]];
  const list = element("dl", null, right, "figures");
  for (const [name, bytes] of rows) {
    const box = element("div", null, list);
    element("dt", name, box);
    const value = element("dd", null, box);
    element("b", short(bytes), value);
    element("i", words(bytes), value);
  }
  if (unit.buffers.length) {
    paintScratch(unit, right);
    if (G.nests[unit.id]) nestOf(G.nests[unit.id], panel);
    else bufferTable(unit, panel);
  } else element("p", "One " + (unit.group ? "piece" : "operator") + ": " + exact(unit.scratch) + " of scratch; its operands lie beside it, as the memory map shows.", panel, "hint");
}

function paintInset(unit, parent) {
  const box = openAt[unit.id], inset = element("canvas", null, parent), ratio = window.devicePixelRatio || 1;
  const room = Math.max(260, Math.min(panel.clientWidth * 0.55, panel.clientWidth - 40));
  const k = Math.min(1.25, room / (box[2] + 4), 520 / (box[3] + 4));
  inset.width = Math.ceil((box[2] + 4) * k * ratio);
  inset.height = Math.ceil((box[3] + 4) * k * ratio);
  inset.style.width = inset.width / ratio + "px";
  inset.style.height = inset.height / ratio + "px";
  inset.setAttribute("role", "img");
  inset.setAttribute("aria-label", "The operators of " + unitName(unit.id) + ": " + unit.members.map((o) => o.label).join(", "));
  const g = inset.getContext("2d");
  g.setTransform(k * ratio, 0, 0, k * ratio, (2 - box[0]) * k * ratio, (2 - box[1]) * k * ratio);
  paintUnit(g, unit, k, { x: box[0], y: box[1] });
}

function paintScratch(unit, parent) {
  const wide = 1000, scale = wide / Math.max(plan.budget, unit.filled, 1);
  const beside = unit.filled > unit.scratch ? ", " + short(unit.scratch) + " of it scratch" : "";
  const used = unit.idle ? (beside ? ", " : ", scratch, ") + short(unit.scratch - unit.idle) + " of that used" : "";
  element("h4", "In the scratchpad while it runs: " + exact(unit.filled) + " of " + exact(plan.budget) + beside + used, parent);
  const svg = drawn("svg", parent, { viewBox: "0 0 1000 40", preserveAspectRatio: "none", class: "scratch", role: "img", "aria-label": "The scratchpad, filled by tensors and weights; the table below has the figures" });
  drawn("rect", svg, { x: 0, y: 4, width: wide, height: 32, class: "b-free" });
  let at = 0;
  if (unit.filled > unit.scratch) drawn("rect", svg, { x: 0, y: 37, width: unit.scratch * scale, height: 3, class: "b-under" });
  for (const b of unit.buffers.filter((b) => b.own)) {
    const rect = drawn("rect", svg, { x: at, y: 4, width: Math.max(0.6, b.own * scale - 0.8), height: 32, class: BUFFER_CLASS[b.what] });
    drawn("title", rect, {}).textContent = (b.name || G.what[b.what]) + ": " + exact(b.bytes);
    at += b.own * scale;
  }
  const key = element("div", null, parent, "legend");
  for (const what of new Set(unit.buffers.map((b) => b.what))) {
    const row = element("span", null, key);
    drawn("rect", drawn("svg", row, { viewBox: "0 0 14 10", width: 14, height: 10, "aria-hidden": "true" }), { width: 14, height: 10, class: BUFFER_CLASS[what] });
    row.append(G.what[what] + " " + short(unit.buffers.reduce((sum, b) => sum + (b.what === what ? b.own : 0), 0)));
  }
  if (unit.filled > unit.scratch) element("span", "underlined: the scratch", key);
}

// A tensor's whole map as an outline, the rows that are in the buffer filled, the channels as depth.
function glyph(b, map, parent) {
  const [, channels, height, width] = map, k = 26 / Math.max(height, width, 1), w = Math.max(4, width * k), h = Math.max(4, height * k);
  const svg = drawn("svg", parent, { viewBox: "-1 -1 34 34", class: "glyph", "aria-hidden": "true" });
  const part = b.channels >= channels ? "" : " b-part";
  drawn("rect", svg, { x: 0, y: 0, width: w, height: h, class: "b-outline" });
  drawn("rect", svg, { x: 0, y: 0, width: w, height: Math.min(h, Math.max(2.5, (h * Math.min(b.rows, height)) / Math.max(height, 1))), class: BUFFER_CLASS[b.what] + part });
}

// The loops of a group, drawn once for all that are equal: with this group's names.
function nestOf([index, start, names], parent) {
  const nests = document.getElementById("nests"), nest = nests.querySelector('[data-nest="' + index + '"]').cloneNode(true);
  for (const node of nest.querySelectorAll("[data-n]")) node.textContent = names[node.dataset.n];
  const within = nest.querySelector(".n-start");
  within.hidden = !start;
  within.querySelector("bdi").textContent = start;
  parent.append(nest, nests.querySelector(".n-key").cloneNode(true));
}

function bufferTable(unit, parent) {
  const scroll = element("div", null, parent, "scroll"), list = element("table", null, scroll);
  scroll.tabIndex = 0;
  const head = element("tr", null, element("thead", null, list));
  for (const [word, number] of [["", 0], ["what", 0], ["part", 0], ["how", 0], ["rows", 1], ["columns", 1], ["channels", 1], ["bytes", 1], ["share", 1]]) element("th", word, head, number ? "n" : "");
  const body = element("tbody", null, list);
  for (const b of unit.buffers) {
    const row = element("tr", null, body), map = b.tensor >= 0 && G.maps[b.tensor];
    const cell = element("td", null, row);
    if (map && b.rows) glyph(b, map, cell);
    else drawn("rect", drawn("svg", cell, { viewBox: "-1 -1 34 34", class: "glyph", "aria-hidden": "true" }), { x: 0, y: 8, width: 26, height: 10, class: BUFFER_CLASS[b.what] });
    element("bdi", b.name, element("td", null, row));
    element("td", G.what[b.what], row);
    element("td", bufferHow(b), row);
    const of = (n, all) => (n ? count(n) + (all && all !== n ? " of " + count(all) : "") : "");
    element("td", (b.images > 1 ? b.images + " × " : "") + of(b.rows, map && map[2]), row, "n");
    element("td", of(b.columns, map && map[3]), row, "n");
    element("td", of(b.channels, map && map[1]), row, "n");
    element("td", count(b.bytes), row, "n");
    element("td", percent(b.bytes), row, "n");
  }
}

// -- pointer and keyboard ----------------------------------------------------------------------------------------

function sheetPoint(event) {
  const frame = sheet.getBoundingClientRect();
  return [event.clientX - frame.left, event.clientY - frame.top];
}
function hoverGraph(event) {
  if (state.pinned) return;
  const hit = pickGraph(...sheetPoint(event)), tensor = hit && (hit.tensor ?? (hit.op ? hit.op.writes[0] : undefined));
  view.hot = hit && (hit.op || tensor !== undefined) ? { op: hit.op, tensor } : null;
  if (hit) showTip(about(hit), event.clientX, event.clientY);
  else tip.hidden = true;
  repaint();
}
let pan = null;
sheet.addEventListener("pointerdown", (event) => {
  const [x, y] = sheetPoint(event);
  pan = { x, y, fromX: view.x, fromY: view.y, moved: false };
  sheet.setPointerCapture(event.pointerId);
});
sheet.addEventListener("pointermove", (event) => {
  if (!pan) return hoverGraph(event);
  const [x, y] = sheetPoint(event);
  if (Math.hypot(x - pan.x, y - pan.y) > 3) pan.moved = true;
  if (!pan.moved) return undefined;
  sheet.classList.add("drag");
  tip.hidden = true;
  view.x = pan.fromX - (x - pan.x) / view.k;
  view.y = pan.fromY - (y - pan.y) / view.k;
  return repaint();
});
sheet.addEventListener("pointerup", (event) => {
  const click = pan && !pan.moved;
  pan = null;
  sheet.classList.remove("drag");
  if (!click) return;
  if (state.pinned) letGo();
  const hit = pickGraph(...sheetPoint(event));
  if (!hit) return;
  if (hit.unit) chooseUnit(hit.unit, false);
  else {
    state.pinned = true;
    showTip(about(hit), event.clientX, event.clientY);
    speak(about(hit));
  }
});
sheet.addEventListener("pointercancel", () => {
  pan = null;
});
sheet.addEventListener("pointerleave", () => {
  if (state.pinned || pan) return;
  view.hot = null;
  tip.hidden = true;
  repaint();
});
sheet.addEventListener("dblclick", (event) => zoomGraph(1.8, ...sheetPoint(event)));
sheet.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  zoomGraph(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) * 0.01), ...sheetPoint(event));
}, { passive: false });
sheet.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const last = units.length - 1, at = view.unit ? view.unit.id : -1;
  const go = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, PageDown: at + 10, PageUp: at - 10, Home: 0, End: last }[event.key];
  if (go !== undefined) {
    const unit = units[Math.min(last, Math.max(0, go))];
    chooseUnit(unit, false);
    const frame = sheet.getBoundingClientRect();
    showTip(aboutUnit(unit), frame.left + Math.max(0, graphX(unit.x + unit.w)), frame.top + Math.max(0, graphY(unit.y)));
  } else if (event.key === "Enter" && view.unit) chooseUnit(view.unit, true);
  else if (event.key === "+" || event.key === "=") zoomGraph(1.4);
  else if (event.key === "-") zoomGraph(1 / 1.4);
  else if (event.key === "0") fitGraph();
  else return;
  event.preventDefault();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  view.hot = null;
  repaint();
});
for (const button of document.querySelectorAll("button.link[data-unit]"))
  button.addEventListener("click", () => {
    chooseUnit(units[+button.dataset.unit], false);
    sheet.scrollIntoView({ block: "nearest" });
  });

document.getElementById("graph-in").addEventListener("click", () => zoomGraph(1.4));
document.getElementById("graph-out").addEventListener("click", () => zoomGraph(1 / 1.4));
document.getElementById("graph-fit").addEventListener("click", fitGraph);
const openBox = document.getElementById("graph-open");
openBox.checked = view.open;
openBox.addEventListener("change", () => {
  view.open = openBox.checked;
  arrange();
  sizeSheet();
  fitGraph();
});
const shadeBox = document.getElementById("graph-shade");
shadeBox.addEventListener("change", () => {
  view.shade = shadeBox.value;
  graphLegend();
  repaint();
});

function graphLegend() {
  const list = document.getElementById("graph-legend");
  list.textContent = "";
  const add = (text, paintIt) => {
    const row = element("span", null, list), swatch = element("canvas", null, row);
    swatch.width = 44;
    swatch.height = 24;
    const t = swatch.getContext("2d");
    t.scale(2, 2);
    paintIt(t);
    row.append(text);
  };
  const plain = (colour) => (t) => {
    t.fillStyle = colour;
    t.fillRect(0, 0, 22, 12);
  };
  G.kinds.forEach((kind, i) => {
    if (operators.some((op) => op.kind === i)) add(kind, plain(ink["kind-" + i]));
  });
  add("group, by " + shades[view.shade][0], (t) => [0.1, 0.35, 0.66].forEach((alpha, i) => {
    t.globalAlpha = alpha;
    t.fillStyle = ink.heat;
    t.fillRect(i * 7.5, 0, 7, 12);
  }));
  add("DRAM, " + short(mostBytes), (t) => {
    t.fillStyle = ink.link;
    t.fillRect(0, 0.5, 22, 11);
  });
  const stroke = (colour, width, dash) => (t) => {
    t.strokeStyle = colour;
    t.lineWidth = width;
    t.setLineDash(dash);
    t.beginPath();
    t.moveTo(0, 6);
    t.lineTo(22, 6);
    t.stroke();
  };
  const hollow = (t) => {
    stroke(ink.link, 4, [])(t);
    stroke(ink.paper, 2, [])(t);
  };
  if (units.some((u) => u.whole.size)) add("on chip, whole", hollow);
  add("in the scratch, held", stroke(ink.inner, 1.5, []));
  add("read", plain(ink.reload));
  if (units.some((u) => u.halo)) add("halo", plain(ink.spill));
  add("written", plain(ink.compulsory));
  add("weights", plain(ink.weights));
  element("span", "● weights resident, ↻ how often fetched", list);
}
function restyleGraph() {
  graphLegend();
  if (view.unit) fillPanel(view.unit);
  repaint();
}
function layOutGraph() {
  if (!sheet.clientWidth) return; // another tab is open
  const before = view.width;
  sizeSheet();
  if (view.width !== before) fitGraph();
  else repaint();
}
new ResizeObserver(layOutGraph).observe(sheet.parentElement);
window.addEventListener("resize", layOutGraph);
arrange();
