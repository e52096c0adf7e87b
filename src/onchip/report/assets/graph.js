// The graph with its groups: boxes and links as Python laid them out, painted at any zoom.
const sheet = document.getElementById("graph"), brush = sheet.getContext("2d");
const G = plan.graph;
const operators = G.operators.map(([unit, x, y, name, type, label, kind, reads, writes, weights, times], id) =>
  ({ id, unit, x, y, w: G.operator[0], h: G.operator[1], name, type, label, kind, reads, writes, weights, times }));
const bufferIn = ([what, tensor, weights, rows, columns, channels, images, bytes, whole, shared]) =>
  ({ what, tensor, name: tensor < 0 ? weights : tensors[tensor].name, rows, columns, channels, images, bytes, whole, own: bytes - shared, shared });
const units = G.units.map(([name, group, x, y, w, h, tile, subgroups, scratch, into, out, halo, weights, step, buffers], id) =>
  ({ id, name, group, x, y, w, h, tile, subgroups, scratch, into, out, halo, weights, step, buffers: buffers.map(bufferIn), members: [], total: into + out + halo + weights }));
for (const op of operators) units[op.unit].members.push(op);
const terminals = G.terminals.map(([input, tensor, x, y, w, h]) => ({ input, tensor, x, y, w, h }));
const outer = G.outer.map(([tensor, maker, reader, read, written, path], id) => ({ id, tensor, maker, reader, read, written, path,
  // What its reader finds on chip does not cross on this way, whether or not it is stored for another one.
  bytes: reader >= 0 && !read ? 0 : Math.max(read, written) }));
const inner = G.inner.map(([tensor, unit, path]) => ({ tensor, unit, path }));
for (const unit of units) {
  unit.inner = inner.filter((link) => link.unit === unit.id);
  unit.whole = new Set(unit.buffers.filter((b) => b.whole && b.tensor >= 0).map((b) => b.tensor));
  unit.idle = unit.buffers.reduce((sum, b) => sum + (G.what[b.what] === "reserved, not used" ? b.own : 0), 0);
  unit.filled = Math.max(unit.scratch, unit.buffers.reduce((sum, b) => sum + b.own, 0));
}
const openSize = G.size, openPaths = outer.map((link) => link.path);
const openAt = [...units, ...terminals].map((box) => [box.x, box.y, box.w, box.h]);
const mostBytes = Math.max(1, ...outer.map((link) => link.bytes)), mostTotal = Math.max(1, ...units.map((u) => u.total));
const view = { x: 0, y: 0, k: 1, open: operators.length <= 260, shade: "bytes", unit: null, hot: null, width: 0, height: 0, size: openSize };
const BOLD = (px) => "600 " + px + "px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const PLAIN = (px) => px + "px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const HEAD_ROOM = 10;
const LEGIBLE = 6.4; // CSS pixels of type below which words are left out

// Open, a unit shows its operators; closed, it is a small box, for networks of hundreds of them.
function arrange() {
  const nodes = [...units, ...terminals];
  nodes.forEach((box, i) => {
    if (view.open) [box.x, box.y, box.w, box.h] = openAt[i];
    else {
      [box.x, box.y] = G.closed.at[i];
      if (i < units.length) [box.w, box.h] = G.closed.box;
    }
  });
  outer.forEach((link, i) => {
    link.path = view.open ? openPaths[i] : G.closed.outer[i];
    link.points = null;
  });
  view.size = view.open ? openSize : G.closed.size;
}

function sizeSheet() {
  const width = sheet.clientWidth, ratio = window.devicePixelRatio || 1;
  const k = Math.min((width - 24) / view.size[0], 1.1);
  const height = Math.round(Math.max(240, Math.min(view.size[1] * k + 28, window.innerHeight - 130)));
  if (width === view.width && height === view.height && sheet.width === Math.round(width * ratio)) return;
  view.width = width;
  view.height = height;
  sheet.style.height = height + "px";
  sheet.width = Math.round(width * ratio);
  sheet.height = Math.round(height * ratio);
}
const fitScale = () => Math.min((view.width - 24) / view.size[0], (view.height - 24) / view.size[1], 1.1);
function fitGraph() {
  view.k = fitScale();
  view.x = (view.size[0] - view.width / view.k) / 2;
  view.y = (view.size[1] - view.height / view.k) / 2;
  repaint();
}
const graphX = (x) => (x - view.x) * view.k, graphY = (y) => (y - view.y) * view.k;
function zoomGraph(factor, sx = view.width / 2, sy = view.height / 2) {
  const k = Math.min(4, Math.max(fitScale() * 0.7, view.k * factor));
  view.x += sx / view.k - sx / k;
  view.y += sy / view.k - sy / k;
  view.k = k;
  repaint();
}
function bringUnit(unit, zoomed) {
  if (zoomed) view.k = Math.min(1.6, Math.max(view.k, Math.min((view.width * 0.6) / unit.w, (view.height * 0.6) / unit.h)));
  const x = graphX(unit.x), y = graphY(unit.y);
  if (zoomed || x < 0 || y < 0 || x + unit.w * view.k > view.width || y + unit.h * view.k > view.height) {
    view.x = unit.x + unit.w / 2 - view.width / view.k / 2;
    view.y = unit.y + unit.h / 2 - view.height / view.k / 2;
  }
  repaint();
}

const shades = {
  bytes: ["DRAM bytes", (u) => u.total / mostTotal],
  scratch: ["scratchpad filled", (u) => u.filled / Math.max(1, plan.budget)],
  weights: ["weight bytes", (u) => u.weights / Math.max(1, ...units.map((v) => v.weights))],
};
const linkWidth = (link) => Math.max(1.2, (9 * link.bytes) / mostBytes);
const refills = (op) => (op.weights ? (op.times < 0 ? "●" : "↻" + count(op.times)) : "");
const mapText = (t) => (G.maps[t] ? G.maps[t].slice(1).join("×") : short(tensors[t].bytes));

function tracePath(g, path) {
  g.beginPath();
  g.moveTo(path[0], path[1]);
  for (let i = 2; i < path.length; i += 6) g.bezierCurveTo(path[i], path[i + 1], path[i + 2], path[i + 3], path[i + 4], path[i + 5]);
  g.stroke();
}
// On chip and whole: a hollow line, as no byte runs through it to DRAM.
function traceHollow(g, path, width) {
  g.lineWidth = width;
  tracePath(g, path);
  const colour = g.strokeStyle;
  g.strokeStyle = ink.paper;
  g.lineWidth = width * 0.5;
  tracePath(g, path);
  g.strokeStyle = colour;
}
function arrowHead(g, path, size) {
  const x = path[path.length - 2], y = path[path.length - 1];
  g.beginPath();
  g.moveTo(x, y);
  g.lineTo(x - size * 1.5, y - size);
  g.lineTo(x - size * 1.5, y + size);
  g.fill();
}
function roundBox(g, x, y, w, h, r) {
  g.beginPath();
  g.roundRect(x, y, w, h, r);
}

function paintUnit(g, unit, k, at = unit) {
  const { x, y } = at, [w, h] = at === unit ? [unit.w, unit.h] : openAt[unit.id].slice(2);
  const opened = at !== unit || view.open;
  roundBox(g, x, y, w, h, 7);
  g.fillStyle = ink.well;
  g.fill();
  g.save();
  g.globalAlpha = 0.03 + 0.5 * Math.min(1, shades[view.shade][1](unit));
  g.fillStyle = ink.heat;
  g.fill();
  g.restore();
  const chosen = unit === view.unit && at === unit;
  g.lineWidth = (chosen ? 3 : unit.members.length > 1 ? 1.4 : 0.9) / Math.max(k, chosen ? 0.5 : 0.7);
  g.strokeStyle = chosen ? ink.focus : unit.members.length > 1 ? ink.quiet : ink.inner;
  g.stroke();
  if (opened) paintOperators(g, unit, k, x - openAt[unit.id][0], y - openAt[unit.id][1]);
  else paintSquares(g, unit, x, y, w);
  paintTitle(g, unit, k, x, y, w, opened);
  paintBar(g, unit, x + 5, y + h - 8, w - 10);
}

function paintTitle(g, unit, k, x, y, w, opened) {
  g.textBaseline = "middle";
  g.fillStyle = ink.ink;
  g.textAlign = "left";
  const name = unit.group ? unit.name : unit.members[0].label;
  if (!opened) {
    const px = Math.max(11, Math.min(9.5 / k, 15)); // at least 9.5 CSS pixels as long as the name fits
    g.font = BOLD(px);
    if (g.measureText(name).width > w - 6) g.font = BOLD(11);
    if (k > 0.4) g.fillText(fitText(name, w - 6, 2, g), x + 4, y + 9.5);
    return undefined;
  }
  if (11 * k < LEGIBLE) return paintFar(g, name, k, x, y, w);
  const total = short(unit.total);
  g.font = PLAIN(10);
  const right = g.measureText(total).width;
  g.font = BOLD(11);
  const head = fitText(name, w - 14 - (w > 150 ? right + 10 : 0), 2, g);
  g.fillText(head, x + 7, y + 10.5);
  let used = g.measureText(head).width + 14;
  g.font = PLAIN(10);
  g.fillStyle = ink.quiet;
  const tile = [unit.tile, unit.tile.split(" ")[0]].find((words) => used + g.measureText(words).width + right + 14 < w);
  if (tile && unit.tile !== "one piece") {
    g.fillText(tile, x + used, y + 10.5);
    used += g.measureText(tile).width + 8;
  }
  g.textAlign = "right";
  g.fillStyle = ink.ink;
  if (used + right + 8 < w) g.fillText(total, x + w - 7, y + 10.5);
  return undefined;
}
// Far away the operators have no words; the group's name stays, in type of one size.
function paintFar(g, name, k, x, y, w) {
  g.font = BOLD(10.5 / k);
  const text = fitText(name, w - 6 / k, 2, g);
  if (!text || w * k < 22) return;
  g.fillStyle = ink.ink;
  g.fillText(text, x + 4 / k, y + Math.min(HEAD_ROOM, 7 / k));
}

function paintBar(g, unit, x, y, w) {
  let at = x;
  const parts = [[unit.into, "reload"], [unit.halo, "spill"], [unit.out, "compulsory"], [unit.weights, "weights"]];
  for (const [bytes, colour] of parts) {
    const part = (bytes / Math.max(1, unit.total)) * w;
    g.fillStyle = ink[colour];
    g.fillRect(at, y, part, 4);
    at += part;
  }
}

function paintSquares(g, unit, x, y, w) {
  const many = unit.members.length, size = Math.min(7, (w - 10) / many - 1);
  unit.members.forEach((op, i) => {
    g.fillStyle = ink["kind-" + op.kind];
    g.fillRect(x + 5 + i * (size + 1), y + 17, Math.max(size, 0.5), 5);
  });
}

function paintOperators(g, unit, k, dx, dy) {
  g.save();
  g.translate(dx, dy);
  const words = 11 * k >= LEGIBLE;
  for (const link of unit.inner) {
    const hot = view.hot && view.hot.tensor === link.tensor;
    g.strokeStyle = hot ? ink.focus : ink.inner;
    g.lineWidth = (hot ? 2 : 1) / Math.max(0.6, Math.min(k, 1));
    if (unit.whole.has(link.tensor) && k > 0.3) traceHollow(g, link.path, hot ? 4 : 3);
    else tracePath(g, link.path);
  }
  for (const op of unit.members) {
    roundBox(g, op.x, op.y, op.w, op.h, 4);
    g.fillStyle = ink["kind-" + op.kind];
    g.fill();
    const hot = view.hot && view.hot.op === op;
    if (hot) {
      g.strokeStyle = ink.focus;
      g.lineWidth = 2.2;
      g.stroke();
    }
    if (!words) continue;
    g.textBaseline = "middle";
    g.textAlign = "left";
    g.fillStyle = ink["on-fill"];
    g.font = BOLD(10.5);
    g.fillText(fitText(op.label, op.w - 10, 2, g), op.x + 5, op.y + 10);
    g.font = PLAIN(9.5);
    const held = refills(op), right = held ? g.measureText(held).width + 4 : 0;
    g.fillText(fitText(mapText(op.writes[0]), op.w - 10 - right, 2, g), op.x + 5, op.y + 22.5);
    g.textAlign = "right";
    if (held) g.fillText(held, op.x + op.w - 5, op.y + 22.5);
  }
  g.restore();
}

function paintTerminal(g, end, k) {
  roundBox(g, end.x, end.y, end.w, end.h, end.h / 2);
  g.fillStyle = ink[end.input ? "input" : "output"];
  g.fill();
  if (10 * k < LEGIBLE) return;
  g.fillStyle = ink["on-fill"];
  g.font = BOLD(10);
  g.textAlign = "center";
  g.textBaseline = "middle";
  g.fillText(fitText(tensors[end.tensor].name, end.w - 14, 2, g), end.x + end.w / 2, end.y + end.h / 2 + 0.5);
}

function paintOuter(g, k) {
  const hot = view.hot && view.hot.tensor;
  for (const link of outer) {
    const on = hot !== null && hot !== undefined && hot === link.tensor;
    g.strokeStyle = g.fillStyle = on ? ink.focus : ink.link;
    g.globalAlpha = on || !view.hot ? 0.85 : 0.4;
    g.lineWidth = Math.max(linkWidth(link), (on ? 2 : 0.7) / k);
    if (link.bytes || k <= 0.3) tracePath(g, link.path);
    else traceHollow(g, link.path, on ? 4.4 : 3.4);
    if (k > 0.25) arrowHead(g, link.path, Math.max(3.4, linkWidth(link) * 0.75));
  }
  g.globalAlpha = 1;
}

const visibleBox = (b) => graphX(b.x + b.w) > 0 && graphX(b.x) < view.width && graphY(b.y + b.h) > 0 && graphY(b.y) < view.height;
function paint() {
  const g = brush, ratio = window.devicePixelRatio || 1;
  g.direction = "ltr";
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.fillStyle = ink.paper;
  g.fillRect(0, 0, view.width, view.height);
  g.setTransform(ratio * view.k, 0, 0, ratio * view.k, -view.x * view.k * ratio, -view.y * view.k * ratio);
  paintOuter(g, view.k);
  for (const unit of units) if (visibleBox(unit)) paintUnit(g, unit, view.k);
  for (const end of terminals) if (visibleBox(end)) paintTerminal(g, end, view.k);
}
let wanted = false;
function repaint() {
  if (wanted) return;
  wanted = true;
  requestAnimationFrame(() => {
    wanted = false;
    paint();
  });
}
