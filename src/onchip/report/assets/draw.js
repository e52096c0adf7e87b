// Drawing. One canvas holds four columns on one step axis: labels, the map, occupancy, DRAM traffic, and an overview strip.
const canvas = document.getElementById("canvas");
const pen = canvas.getContext("2d");
const state = { from: 0, to: steps.length, cursor: null, box: null, pinned: false, match: null, colour: "role", weights: false };
const TOP = 62, BOTTOM = 8;
const FONT = "11px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const GRAPH_INKS = ["link", "inner", "heat", ...Array.from({ length: 7 }, (_, i) => "kind-" + i)];
let ink = {}, place = {}, hatch = null;

function readTheme() {
  // The colours are written light-dark(…, …); an element's computed colour is the one that holds.
  const probe = document.createElement("i");
  document.body.append(probe);
  for (const key of ["paper", "ink", "quiet", "line", "well", "focus", "activation-0", "activation-1", "activation-2", "input", "output",
    "scratch", "spilled", "on-fill", "hatch", "occupancy", "compulsory", "spill", "reload", "weights", "budget", "hover", ...GRAPH_INKS]) {
    probe.style.color = "var(--" + key + ")";
    ink[key] = getComputedStyle(probe).color;
  }
  probe.remove();
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const t = tile.getContext("2d");
  t.strokeStyle = ink.hatch;
  t.lineWidth = 1.4;
  for (const shift of [-6, 0, 6]) {
    t.beginPath();
    t.moveTo(shift - 1, 7);
    t.lineTo(shift + 7, -1);
    t.stroke();
  }
  hatch = pen.createPattern(tile, "repeat");
}

function layOut() {
  const width = canvas.clientWidth, wide = width > 900;
  if (!width) return; // another tab is open
  // Tall enough to use the window, short enough that the whole map and its legend are in it at once.
  const top = canvas.getBoundingClientRect().top + window.scrollY;
  const plot = Math.min(Math.max(300, steps.length * 44), Math.max(420, window.innerHeight - Math.min(top, 330) - TOP - 62));
  const height = TOP + plot + BOTTOM, ratio = window.devicePixelRatio || 1;
  canvas.style.height = height + "px";
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  const labels = width > 1100 ? 200 : wide ? 150 : 52, gap = wide ? 30 : 14, strip = 16;
  const occupancy = wide ? 150 : 70, traffic = wide ? 180 : 84;
  const map = Math.max(80, width - labels - occupancy - traffic - strip - 3 * gap - 2);
  place = { width, height, plot, labels: { x: 0, w: labels - 12 }, map: { x: labels, w: map }, occupancy: { x: labels + map + gap, w: occupancy },
    traffic: { x: labels + map + occupancy + 2 * gap, w: traffic }, strip: { x: width - strip - 1, w: strip } };
}

// Several memories lie side by side on one axis, each as far as the program reaches; memoryAt tells which.
const several = plan.memories.map(([name, base, shown, size]) => ({ name, base, shown, size }));
const domain = Math.max(several.length ? 1 : plan.budget, plan.extent, 1);
const memoryAt = (address) => several.findLast((m) => m.base <= address);
const toX = (address) => place.map.x + (address / domain) * place.map.w;
const toY = (step) => TOP + ((step - state.from) / (state.to - state.from)) * place.plot;
const toStep = (y) => state.from + ((y - TOP) / place.plot) * (state.to - state.from);
const rowHeight = () => place.plot / (state.to - state.from);

function fitText(text, width, least = 3, on = pen) {
  if (on.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (on.measureText(clip(text, middle)).width <= width) low = middle;
    else high = middle - 1;
  }
  return low < least ? "" : clip(text, low);
}
function clip(text, keep) {
  const head = Math.floor(keep / 3); // the end of a name tells more than its beginning
  return text.slice(0, head) + "…" + text.slice(text.length - (keep - head));
}

const typeColours = ["#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#0072b2", "#d55e00"];
// The types whose tensors cover most of the map get the colours.
const commonTypes = (() => {
  const covered = new Map();
  for (const box of boxes) {
    if (box.tensor < 0 || tensors[box.tensor].producer < 0) continue;
    const { type } = steps[tensors[box.tensor].producer];
    covered.set(type, (covered.get(type) || 0) + box.size * (box.end - box.start));
  }
  return [...covered].sort((a, b) => b[1] - a[1]).slice(0, typeColours.length).map((row) => row[0]);
})();
// Viridis, seven stops: even in lightness, so it survives every colour vision and grey printing.
const viridis = [[68, 1, 84], [70, 51, 127], [54, 92, 141], [39, 127, 142], [31, 161, 135], [110, 206, 88], [253, 231, 37]];
function viridisAt(share) {
  const at = Math.min(Math.max(share, 0), 1) * (viridis.length - 1), i = Math.min(Math.floor(at), viridis.length - 2), f = at - i;
  return "rgb(" + viridis[i].map((v, k) => Math.round(v + (viridis[i + 1][k] - v) * f)).join(",") + ")";
}

function fillOf(box) {
  const role = roleOf(box);
  if (role === "scratch") return ink.scratch;
  const t = tensors[box.tensor];
  if (state.colour === "age") return t.producer < 0 ? ink.input : viridisAt(t.producer / Math.max(1, steps.length - 1));
  if (state.colour === "type") {
    const rank = t.producer < 0 ? -1 : commonTypes.indexOf(steps[t.producer].type);
    return rank < 0 ? ink.scratch : typeColours[rank];
  }
  if (spilled(box)) return ink.spilled;
  return role === "activation" ? ink["activation-" + (box.tensor % 3)] : ink[role];
}
const textColours = new Map();
function textOn(fill) {
  if (state.colour === "role") return ink["on-fill"];
  if (!textColours.has(fill)) {
    const [r, g, b] = fill.startsWith("#") ? [1, 3, 5].map((i) => parseInt(fill.slice(i, i + 2), 16)) : fill.match(/\d+/g).map(Number);
    textColours.set(fill, 0.3 * r + 0.59 * g + 0.11 * b > 120 ? "#10161c" : "#f6f8fa");
  }
  return textColours.get(fill);
}

function frameOf(box) {
  const x = Math.round(toX(box.address)), y = Math.round(toY(box.start));
  return [x, y, Math.max(1, Math.round(toX(box.address + box.size)) - x), Math.max(1, Math.round(toY(Math.max(box.end, box.start))) - y)];
}

function drawBoxes() {
  pen.save();
  pen.beginPath();
  pen.rect(place.map.x - 1, TOP, place.map.w + 2, place.plot);
  pen.clip();
  for (const box of boxes) {
    if (box.end < state.from || box.start > state.to) continue;
    const [x, y, w, h] = frameOf(box);
    pen.globalAlpha = state.match && !state.match.boxes.has(box.id) ? 0.16 : 1;
    const away = spilled(box);
    // In a far view a spilled tensor is a hair line: its strongest colour keeps it in sight.
    pen.fillStyle = away && h < 3 && state.colour === "role" ? ink.reload : fillOf(box);
    pen.fillRect(x, y, w, h);
    if (away && h > 2) {
      pen.fillStyle = hatch;
      pen.fillRect(x, y, w, h);
    }
    if (w > 3 && h > 3) {
      pen.strokeStyle = ink.paper;
      pen.lineWidth = 1;
      pen.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
    }
    if (away && h > 2) {
      const edge = h > 10 ? 2.5 : 1.5;
      if (box.arrival === "reload") {
        pen.fillStyle = ink.reload;
        pen.fillRect(x, y, w, edge);
      }
      if (box.departure === "spill" || box.departure === "evict") {
        pen.fillStyle = ink.spill;
        pen.fillRect(x, y + h - edge, w, edge);
      }
    }
  }
  pen.globalAlpha = 1;
  drawNames();
  pen.restore();
}

function drawNames() {
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  for (const box of boxes) {
    const top = Math.max(toY(box.start), TOP), bottom = Math.min(toY(box.end), TOP + place.plot);
    const x = toX(box.address), w = toX(box.address + box.size) - x;
    if (bottom - top < 14 || w < 40) continue;
    const name = fitText(box.weights !== undefined ? "weights of " + box.weights : box.tensor < 0 ? "scratch of " + stepLabel(box.start) : tensors[box.tensor].name, w - 12, 7);
    if (!name) continue;
    pen.globalAlpha = state.match && !state.match.boxes.has(box.id) ? 0.3 : 1;
    const fill = fillOf(box);
    if (spilled(box)) {
      pen.fillStyle = fill;
      pen.fillRect(x + 4, (top + bottom) / 2 - 7, pen.measureText(name).width + 5, 14);
    }
    pen.fillStyle = textOn(fill);
    pen.fillText(name, x + 6, (top + bottom) / 2 + 0.5);
  }
  pen.globalAlpha = 1;
}

// A dashed line from where a tensor left to where it is back, for the tensor in hand.
function drawLinks(tensor) {
  const stays = tensors[tensor].stays;
  pen.save();
  pen.beginPath();
  pen.rect(place.map.x - 1, TOP, place.map.w + 2, place.plot);
  pen.clip();
  for (const box of stays) {
    const [x, y, w, h] = frameOf(box);
    pen.strokeStyle = ink.ink;
    pen.lineWidth = box === state.box ? 2 : 1.25;
    pen.strokeRect(x + 0.5, y + 0.5, Math.max(w - 1, 1), Math.max(h - 1, 1));
  }
  pen.setLineDash([4, 3]);
  pen.lineWidth = 1.5;
  for (let i = 1; i < stays.length; i++) {
    const a = stays[i - 1], b = stays[i];
    const ax = toX(a.address + a.size / 2), bx = toX(b.address + b.size / 2), ay = toY(a.end), by = toY(b.start), bend = Math.max(8, (by - ay) / 3);
    pen.strokeStyle = ink.spill;
    pen.beginPath();
    pen.moveTo(ax, ay);
    pen.bezierCurveTo(ax, ay + bend, bx, by - bend, bx, by);
    pen.stroke();
  }
  pen.setLineDash([]);
  const { producer, readers } = tensors[tensor];
  const at = (step) => stays.find((box) => box.start <= step && step < box.end);
  const mark = (step, solid) => {
    const box = at(step);
    if (!box) return;
    const x = toX(box.address + box.size / 2), y = toY(step + 0.5), r = Math.min(4, Math.max(2, rowHeight() / 3));
    pen.beginPath();
    pen.arc(x, y, r, 0, 7);
    pen.fillStyle = solid ? ink.ink : ink.paper;
    pen.fill();
    pen.lineWidth = 1.5;
    pen.strokeStyle = ink.ink;
    pen.stroke();
  };
  if (producer >= 0) mark(producer, false);
  for (const step of readers) mark(step, true);
  pen.restore();
}

function drawSteps() {
  const row = rowHeight();
  let every = 1;
  for (const candidate of [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000]) {
    every = candidate;
    if (candidate * row >= 17) break;
  }
  pen.textBaseline = "middle";
  const narrow = place.labels.w < 80, taken = cursorLabel();
  for (let s = Math.max(0, Math.floor(state.from)); s < Math.min(steps.length, Math.ceil(state.to)); s++) {
    const y = toY(s + 0.5);
    if ((s + 1) % every && !(s === 0 && (every - 1) * row >= 17)) continue;
    if (y < TOP + 4 || y > TOP + place.plot - 4) continue;
    pen.strokeStyle = ink.line;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(place.map.x - 6, Math.round(y) + 0.5);
    pen.lineTo(every > 1 ? place.strip.x - 10 : place.map.x, Math.round(y) + 0.5);
    pen.stroke();
    if (taken !== null && Math.abs(y - taken) < 15) continue;
    pen.fillStyle = ink.quiet;
    pen.textAlign = "right";
    pen.fillText(count(s + 1), 36, y);
    if (!narrow) {
      pen.textAlign = "left";
      pen.fillStyle = ink.ink;
      pen.fillText(fitText(stepLabel(s), place.labels.w - 48), 46, y);
    }
  }
}

// For rows thinner than a pixel, the largest of the steps that share one is drawn, so that no peak is lost.
function eachRow(value, paint) {
  const row = rowHeight(), first = Math.max(0, Math.floor(state.from)), last = Math.min(steps.length, Math.ceil(state.to));
  if (row >= 2) {
    for (let s = first; s < last; s++) {
      const y = Math.round(Math.max(toY(s), TOP)), h = Math.round(Math.min(toY(s + 1), TOP + place.plot)) - y;
      paint(value(s), y, row >= 6 ? h - 1 : h);
    }
    return;
  }
  for (let y = 0; y < place.plot; y++) {
    const a = Math.max(first, Math.floor(toStep(TOP + y))), b = Math.min(last, Math.max(a + 1, Math.ceil(toStep(TOP + y + 1))));
    let most = 0;
    for (let s = a; s < b; s++) most = Math.max(most, value(s));
    paint(most, TOP + y, 1);
  }
}

function drawOccupancy() {
  const { x, w } = place.occupancy, scale = w / domain;
  pen.fillStyle = ink.well;
  pen.fillRect(x, TOP, w, place.plot);
  pen.fillStyle = ink.occupancy;
  eachRow((s) => steps[s].occupancy, (bytes, y, h) => pen.fillRect(x, y, bytes * scale, h));
}

const leaving = (s) => steps[s].firstOut + steps[s].spill;
const coming = (s) => steps[s].firstIn + steps[s].reload + (state.weights ? steps[s].weights : 0);
function trafficScale() {
  let out = 0, into = 0;
  for (let s = 0; s < steps.length; s++) {
    out = Math.max(out, leaving(s));
    into = Math.max(into, coming(s));
  }
  // Each side keeps at least a third of the column, so that its caption has room.
  const most = Math.max(out, into, 1), left = Math.max(out, most / 2), right = Math.max(into, most / 2);
  const scale = place.traffic.w / (left + right);
  return { out, into, scale, zero: place.traffic.x + left * scale };
}
function drawTraffic() {
  const { scale, zero } = trafficScale();
  pen.fillStyle = ink.well;
  pen.fillRect(place.traffic.x, TOP, place.traffic.w, place.plot);
  const thick = Math.max(2, rowHeight() >= 6 ? rowHeight() - 1 : rowHeight());
  const first = Math.max(0, Math.floor(state.from)), last = Math.min(steps.length, Math.ceil(state.to));
  // Weights first and one pixel thin in a far view: almost every step has some, and the few spills must stay on top.
  if (state.weights) {
    pen.fillStyle = ink.weights;
    eachRow((s) => coming(s), (bytes, y, h) => pen.fillRect(zero, y, bytes * scale, h));
  }
  for (let s = first; s < last; s++) {
    const t = steps[s], y = Math.max(TOP, toY(s)), h = Math.min(thick, TOP + place.plot - y);
    let x = zero;
    for (const [bytes, colour] of [[t.firstOut, "compulsory"], [t.spill, "spill"]]) {
      if (!bytes) continue;
      pen.fillStyle = ink[colour];
      x -= bytes * scale;
      pen.fillRect(x, y, Math.max(1, bytes * scale), h);
    }
    x = zero;
    for (const [bytes, colour] of [[t.firstIn, "compulsory"], [t.reload, "reload"]]) {
      if (!bytes) continue;
      pen.fillStyle = ink[colour];
      pen.fillRect(x, y, Math.max(1, bytes * scale), h);
      x += bytes * scale;
    }
  }
  pen.strokeStyle = ink.quiet;
  pen.lineWidth = 1;
  line(Math.round(zero) + 0.5, TOP, Math.round(zero) + 0.5, TOP + place.plot);
}

function line(x0, y0, x1, y1) {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

function byteTicks(most, room) {
  let step = 1;
  while (most / step > room) step *= 2;
  const ticks = [];
  for (let at = 0; at <= most; at += step) ticks.push(at);
  return ticks;
}
function tickText(n) {
  for (const [unit, name] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [1024, "KiB"]])
    if (n >= unit) return +(n / unit).toFixed(3) + " " + name;
  return n ? n + " B" : "0";
}
function byteAxis(x, w, most, room) {
  pen.textBaseline = "alphabetic";
  const ticks = byteTicks(most, room);
  for (const at of ticks) {
    const px = x + (at / most) * w, text = tickText(at), half = pen.measureText(text).width / 2;
    pen.strokeStyle = ink.quiet;
    line(Math.round(px) + 0.5, TOP - 5, Math.round(px) + 0.5, TOP);
    pen.fillStyle = ink.quiet;
    pen.textAlign = "center";
    pen.fillText(text, Math.min(Math.max(px, x + (at ? half : 3)), x + w - half - 5), TOP - 9);
  }
}

function drawHead() {
  pen.fillStyle = ink.ink;
  pen.textAlign = "left";
  pen.textBaseline = "alphabetic";
  pen.font = "600 12px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
  const narrow = place.width < 900;
  pen.fillText(narrow ? "Step" : "Step and operator", 0, 12);
  pen.fillText(narrow ? "Address" : several.length ? "Address in each memory" : "Address in the scratchpad", place.map.x, 12);
  pen.fillText("Occupancy", place.occupancy.x, 12);
  pen.fillText(narrow ? "DRAM" : "DRAM traffic of the step", place.traffic.x, 12);
  pen.font = FONT;
  for (const m of several.length ? several : [{ base: 0, shown: domain }])
    if (m.shown) byteAxis(toX(m.base), (m.shown / domain) * place.map.w, m.shown, Math.max(1, ((m.shown / domain) * place.map.w) / 84));
  byteAxis(place.occupancy.x, place.occupancy.w, domain, Math.max(1, place.occupancy.w / 70));
  const { out, into, scale, zero } = trafficScale();
  const end = (bytes, x, align) => {
    if (!bytes) return;
    pen.strokeStyle = ink.quiet;
    line(Math.round(x) + 0.5, TOP - 5, Math.round(x) + 0.5, TOP);
    pen.textAlign = align;
    pen.fillText(short(bytes), x, TOP - 9);
  };
  pen.fillStyle = ink.quiet;
  pen.lineWidth = 1;
  const roomy = (bytes) => !bytes || bytes * scale > 62;
  if (!narrow) end(out, zero - out * scale, roomy(out) ? "left" : "center");
  end(into, zero + into * scale, roomy(into) ? "right" : "center");
  if (narrow) return drawMarks();
  line(Math.round(zero) + 0.5, TOP - 5, Math.round(zero) + 0.5, TOP);
  pen.textAlign = "right";
  pen.fillText("← out", zero - 6, TOP - 25);
  pen.textAlign = "left";
  pen.fillText("in →", zero + 6, TOP - 25);
  pen.textAlign = "center";
  if (roomy(out) && roomy(into)) pen.fillText("0", zero, TOP - 9);
  return drawMarks();
}

// The name of each memory over its map, and a frame around it.
function drawMemories() {
  pen.textAlign = "left";
  pen.lineWidth = 1;
  for (const m of several) {
    const x = Math.round(toX(m.base)), w = Math.max(2, Math.round((m.shown / domain) * place.map.w));
    pen.strokeStyle = ink.budget;
    pen.strokeRect(x + 0.5, TOP - 0.5, w, place.plot + 1);
    const text = fitText(m.name + ": " + short(m.shown) + " of " + short(m.size), Math.max(w, 60), 3);
    pen.fillStyle = ink.ink;
    pen.fillText(text, x, TOP - 25);
  }
}

// The budget, MR and, where known, the least budget without traffic: labels that would meet are joined or moved left.
function drawMarks() {
  const marks = [];
  if (several.length) return drawMemories();
  const add = (name, bytes) => {
    if (bytes == null) return;
    const same = marks.find((m) => m.bytes === bytes);
    if (same) same.name += " = " + name;
    else marks.push({ name, bytes });
  };
  add("budget", plan.budget);
  for (const [name, bytes] of plan.marks) add(name, bytes);
  marks.sort((a, b) => b.bytes - a.bytes);
  let free = place.map.x + place.map.w + 1;
  pen.textBaseline = "alphabetic";
  for (const mark of marks) {
    const beyond = mark.bytes > domain;
    const text = mark.name + " " + short(mark.bytes) + (beyond ? " →" : "");
    const width = pen.measureText(text).width;
    const x = beyond ? place.map.x + place.map.w : toX(mark.bytes);
    const right = Math.min(free, x + (x + width / 2 > free ? 0 : width / 2));
    if (!beyond) {
      pen.strokeStyle = ink.budget;
      pen.lineWidth = mark.name.startsWith("budget") ? 1.5 : 1;
      pen.setLineDash(mark.name.startsWith("budget") ? [] : [2, 3]);
      line(Math.round(x) + 0.5, TOP - 21, Math.round(x) + 0.5, TOP + place.plot);
      const ox = place.occupancy.x + (mark.bytes / domain) * place.occupancy.w;
      line(Math.round(ox) + 0.5, TOP - 5, Math.round(ox) + 0.5, TOP + place.plot);
      pen.setLineDash([]);
    }
    if (right - width < place.map.x) continue;
    pen.fillStyle = mark.name.startsWith("budget") ? ink.ink : ink.quiet;
    pen.textAlign = "right";
    pen.fillText(text, right, TOP - 25);
    free = right - width - 12;
  }
}

function drawStrip() {
  const { x, w } = place.strip, n = steps.length;
  pen.fillStyle = ink.well;
  pen.fillRect(x, TOP, w, place.plot);
  pen.fillStyle = ink.occupancy;
  for (let y = 0; y < place.plot; y++) {
    const a = Math.floor((y / place.plot) * n), b = Math.max(a + 1, Math.floor(((y + 1) / place.plot) * n));
    let most = 0;
    for (let s = a; s < Math.min(b, n); s++) most = Math.max(most, steps[s].occupancy);
    pen.fillRect(x, TOP + y, (most / domain) * w, 1);
  }
  const top = TOP + (state.from / n) * place.plot, height = ((state.to - state.from) / n) * place.plot;
  if (height < place.plot - 0.5) {
    pen.fillStyle = ink.hover;
    pen.fillRect(x - 2, top, w + 3, height);
    pen.strokeStyle = ink.ink;
    pen.lineWidth = 1.5;
    pen.strokeRect(x - 2, top + 0.75, w + 2, Math.max(3, height - 1.5));
  }
}

// Where the label of the step in hand stands; the labels it would cover give way.
function cursorLabel() {
  if (state.cursor === null || state.cursor + 1 <= state.from || state.cursor >= state.to) return null;
  return Math.min(Math.max(toY(state.cursor + 0.5), TOP + 8), TOP + place.plot - 8);
}
function drawCursor() {
  const middle = cursorLabel();
  if (middle === null) return;
  const y = Math.max(TOP, toY(state.cursor)), h = Math.max(1, Math.min(toY(state.cursor + 1), TOP + place.plot) - y);
  pen.fillStyle = ink.hover;
  pen.fillRect(place.map.x, y, place.strip.x - 8 - place.map.x, h);
  pen.fillStyle = ink.focus;
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  pen.fillText(count(state.cursor + 1), 36, middle);
  if (place.labels.w >= 80) {
    pen.textAlign = "left";
    pen.fillText(fitText(stepLabel(state.cursor), place.labels.w - 48), 46, middle);
  }
}

function draw() {
  if (!place.map) return;
  pen.font = FONT;
  pen.direction = "ltr";
  pen.fillStyle = ink.paper;
  pen.fillRect(0, 0, place.width, place.height);
  pen.fillStyle = ink.well;
  pen.fillRect(place.map.x, TOP, place.map.w, place.plot);
  drawSteps();
  drawBoxes();
  drawOccupancy();
  drawTraffic();
  drawHead();
  drawStrip();
  drawCursor();
  if (state.box && state.box.tensor >= 0) drawLinks(state.box.tensor);
}
let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    draw();
  });
}
