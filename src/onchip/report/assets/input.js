// Pointer, keyboard, search, and the start.
const find = document.getElementById("find"), found = document.getElementById("found");

function look(from, to) {
  const least = Math.min(steps.length, 4), size = Math.min(steps.length, Math.max(least, to - from));
  state.from = Math.min(Math.max(0, from), steps.length - size);
  state.to = state.from + size;
  redraw();
}
function zoom(factor, around) {
  const at = around === undefined ? (state.cursor ?? (state.from + state.to) / 2) : around;
  look(at - (at - state.from) * factor, at + (state.to - at) * factor);
}
function reveal(from, to) {
  const size = state.to - state.from;
  if (from < state.from || to > state.to) look((from + to - size) / 2, (from + to + size) / 2);
}

const inside = (column, x) => x >= column.x && x <= column.x + column.w;
function pick(x, y) {
  if (y < TOP || y > TOP + place.plot || x > place.strip.x - 8) return null;
  const step = Math.min(steps.length - 1, Math.floor(toStep(y)));
  if (!inside(place.map, x)) return { step, box: null };
  const address = ((x - place.map.x) / place.map.w) * domain;
  const at = toStep(y), slack = Math.max(0, 1.5 / rowHeight() - 0.5);
  let best = null;
  for (const box of boxes) {
    if (address < box.address || address >= box.address + box.size || at < box.start - slack || at >= Math.max(box.end, box.start) + slack) continue;
    const off = at < box.start || at >= box.end ? 1 : 0;
    if (!best || off < best.off || (off === best.off && box.end - box.start < best.box.end - best.box.start)) best = { box, off };
  }
  return { step, box: best && best.box };
}

function letGo() {
  state.pinned = false;
  state.box = null;
  tip.hidden = true;
  redraw();
}
function point(event) {
  const frame = canvas.getBoundingClientRect();
  return [event.clientX - frame.left, event.clientY - frame.top];
}
function hover(event) {
  if (state.pinned) return;
  const hit = pick(...point(event));
  state.cursor = hit ? hit.step : null;
  state.box = hit ? hit.box : null;
  if (hit) showTip(hit.box ? describeBox(hit.box) : describeStep(hit.step), event.clientX, event.clientY);
  else tip.hidden = true;
  redraw();
}

let drag = null;
canvas.addEventListener("pointerdown", (event) => {
  const [x, y] = point(event);
  drag = { y, from: state.from, to: state.to, moved: false, strip: x > place.strip.x - 8 };
  if (drag.strip) jump(y);
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (!drag) return hover(event);
  const [, y] = point(event);
  if (Math.abs(y - drag.y) > 3) drag.moved = true;
  if (drag.strip) return jump(y);
  if (!drag.moved) return undefined;
  canvas.classList.add("drag");
  const by = ((drag.y - y) / place.plot) * (drag.to - drag.from);
  return look(drag.from + by, drag.to + by);
});
canvas.addEventListener("pointerup", (event) => {
  const click = drag && !drag.moved && !drag.strip;
  drag = null;
  canvas.classList.remove("drag");
  if (!click) return;
  const hit = pick(...point(event));
  state.pinned = false;
  if (!hit) return letGo();
  state.cursor = hit.step;
  state.box = hit.box;
  pin(hit.box ? describeBox(hit.box) : describeStep(hit.step), event.clientX, event.clientY);
});
canvas.addEventListener("pointercancel", () => {
  drag = null;
});
canvas.addEventListener("pointerleave", () => {
  if (state.pinned || drag) return;
  state.cursor = null;
  letGo();
});
canvas.addEventListener("dblclick", (event) => zoom(0.4, toStep(point(event)[1])));
canvas.addEventListener("wheel", (event) => {
  const [, y] = point(event);
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.01), toStep(y));
    return;
  }
  const by = (event.deltaY / place.plot) * (state.to - state.from);
  const room = by < 0 ? state.from > 0 : state.to < steps.length;
  if (!room || event.shiftKey) return;
  event.preventDefault();
  look(state.from + by, state.to + by);
}, { passive: false });
function jump(y) {
  const at = ((y - TOP) / place.plot) * steps.length, half = (state.to - state.from) / 2;
  look(at - half, at + half);
}

function pin(about, x, y) {
  state.pinned = true;
  showTip(about, x, y);
  speak(about);
  redraw();
}
function pinHere() {
  layOut();
  const frame = canvas.getBoundingClientRect();
  if (frame.top < 0 || frame.top + TOP > window.innerHeight * 0.7) canvas.scrollIntoView({ block: "center" });
  draw();
  const again = canvas.getBoundingClientRect(), box = state.box;
  const x = box ? toX(box.address + box.size / 2) : place.map.x, y = toY(box ? Math.max(box.start, state.from) : state.cursor + 0.5);
  pin(box ? describeBox(box) : describeStep(state.cursor), again.left + x, again.top + Math.max(TOP, y));
}
function showBox(box) {
  showTab("map");
  state.box = box;
  state.cursor = box.start;
  const room = Math.max(24, 3 * (box.end - box.start));
  if (state.to - state.from > room * 4 && steps.length > 60) look((box.start + box.end - room) / 2, (box.start + box.end + room) / 2);
  reveal(box.start, box.end);
  pinHere();
}
function showStep(s) {
  showTab("map");
  state.box = null;
  state.cursor = s;
  if (state.to - state.from > 120) look(s - 20, s + 20);
  reveal(s, s + 1);
  pinHere();
}

const here = () => boxes.filter((box) => box.start <= state.cursor && state.cursor < box.end).sort((a, b) => a.address - b.address);
canvas.addEventListener("keydown", (event) => {
  const move = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10 }[event.key];
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (move || event.key === "Home" || event.key === "End") {
    const last = steps.length - 1;
    const next = event.key === "Home" ? 0 : event.key === "End" ? last : state.cursor === null ? Math.floor(state.from) : state.cursor + move;
    state.cursor = Math.min(last, Math.max(0, next));
    state.box = null;
    reveal(state.cursor, state.cursor + 1);
    pinHere();
  } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    if (state.cursor === null) state.cursor = Math.floor(state.from);
    const row = here(), at = row.indexOf(state.box);
    if (!row.length) return;
    state.box = row[(at + (event.key === "ArrowRight" ? 1 : at < 0 ? 0 : -1) + row.length) % row.length];
    pinHere();
  } else if (event.key === "Enter" && state.cursor !== null) pinHere();
  else if (event.key === "+" || event.key === "=") zoom(0.5);
  else if (event.key === "-") zoom(2);
  else if (event.key === "0") look(0, steps.length);
  else return;
  event.preventDefault();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") letGo();
});

function search() {
  const text = find.value.trim().toLowerCase();
  if (!text) {
    state.match = null;
    found.textContent = "";
    return redraw();
  }
  const hits = [], shown = new Set();
  let inTensors = 0, inSteps = 0;
  tensors.forEach((t) => {
    if (!t.stays.length || !t.name.toLowerCase().includes(text)) return;
    inTensors++;
    for (const box of t.stays) shown.add(box.id);
    hits.push({ box: t.stays[0], step: t.stays[0].start, whole: t.name.toLowerCase() === text });
  });
  steps.forEach((t, s) => {
    if (!t.operators || !t.name.toLowerCase().includes(text)) return;
    inSteps++;
    hits.push({ box: null, step: s, whole: t.name.toLowerCase() === text });
  });
  hits.sort((a, b) => b.whole - a.whole || a.step - b.step);
  state.match = { boxes: shown, hits, at: -1 };
  const some = (n, what) => count(n) + " " + what + (n === 1 ? "" : "s");
  found.textContent = hits.length ? some(inTensors, "tensor") + ", " + some(inSteps, "operator") + "; Enter goes there" : "nothing of that name";
  return redraw();
}
find.addEventListener("input", search);
find.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !state.match || !state.match.hits.length) return;
  const match = state.match;
  match.at = (match.at + (event.shiftKey ? match.hits.length - 1 : 1)) % match.hits.length;
  const hit = match.hits[match.at];
  if (hit.box) showBox(hit.box);
  else showStep(hit.step);
});
for (const button of document.querySelectorAll("button.link:not([data-unit])"))
  button.addEventListener("click", () => {
    if (button.dataset.step) return showStep(+button.dataset.step);
    const stays = tensors[+button.dataset.tensor].stays;
    return stays.length ? showBox(stays[0]) : undefined;
  });

function legend() {
  const list = document.getElementById("legend");
  list.textContent = "";
  const add = (text, paint) => {
    const row = document.createElement("span"), swatch = document.createElement("canvas");
    swatch.width = 36;
    swatch.height = 24;
    const t = swatch.getContext("2d");
    t.scale(2, 2);
    paint(t);
    row.append(swatch, text);
    list.append(row);
  };
  const plain = (colour) => (t) => {
    t.fillStyle = colour;
    t.fillRect(0, 0, 18, 12);
  };
  const edges = (top, bottom) => (t) => {
    plain(state.colour === "role" ? ink.spilled : ink.scratch)(t);
    t.fillStyle = hatch;
    t.fillRect(0, 0, 18, 12);
    t.fillStyle = top;
    t.fillRect(0, 0, 18, top ? 3 : 0);
    t.fillStyle = bottom;
    t.fillRect(0, 9, 18, bottom ? 3 : 0);
  };
  if (state.colour === "role") {
    add("network input", plain(ink.input));
    add("activation", (t) => [0, 1, 2].forEach((i) => {
      t.fillStyle = ink["activation-" + i];
      t.fillRect(6 * i, 0, 6, 12);
    }));
    add("network output", plain(ink.output));
    if (boxes.some((box) => box.tensor < 0)) add("scratch", plain(ink.scratch));
  } else if (state.colour === "age") {
    add("produced early … late", (t) => {
      for (let i = 0; i < 18; i++) {
        t.fillStyle = viridisAt(i / 17);
        t.fillRect(i, 0, 1, 12);
      }
    });
    add("network input", plain(ink.input));
  } else {
    commonTypes.forEach((type, i) => add("from " + type, plain(typeColours[i])));
    add("other", plain(ink.scratch));
  }
  if (plan.absences.length) {
    add("leaves the scratchpad", edges("", ink.spill));
    add("comes back", edges(ink.reload, ""));
  }
  add("compulsory traffic", plain(ink.compulsory));
  add("spill", plain(ink.spill));
  add("reload", plain(ink.reload));
  if (state.weights) add("weights", plain(ink.weights));
}

function restyle() {
  readTheme();
  legend();
  redraw();
  if (plan.graph) restyleGraph();
  if (plan.times) drawTimes();
}
const dark = matchMedia("(prefers-color-scheme: dark)"), theme = document.getElementById("theme");
let choice = "auto";
function applyTheme() {
  document.documentElement.dataset.theme = choice === "auto" ? (dark.matches ? "dark" : "light") : choice;
  theme.textContent = "Theme: " + choice;
  theme.setAttribute("aria-label", "Colour theme: " + choice);
  restyle();
}
theme.addEventListener("click", () => {
  choice = { auto: dark.matches ? "light" : "dark", light: dark.matches ? "dark" : "auto", dark: dark.matches ? "auto" : "light" }[choice];
  applyTheme();
});
dark.addEventListener("change", applyTheme);
document.getElementById("in").addEventListener("click", () => zoom(0.5));
document.getElementById("out").addEventListener("click", () => zoom(2));
document.getElementById("fit").addEventListener("click", () => look(0, steps.length));
const spills = document.getElementById("spills");
if (spills)
  spills.addEventListener("click", () => {
    const first = Math.min(...plan.absences.map((row) => row[1])), last = Math.max(...plan.absences.map((row) => row[2]));
    look(first - 3, last + 4);
  });
// A view can be linked to: report.html#steps=1-130.
function followAddress() {
  const asked = /^#steps=(\d{1,9})-(\d{1,9})$/.exec(location.hash);
  if (asked) look(+asked[1] - 1, +asked[2]);
}
window.addEventListener("hashchange", followAddress);
document.getElementById("colour").addEventListener("change", (event) => {
  state.colour = event.target.value;
  legend();
  redraw();
});
document.getElementById("weights").addEventListener("change", (event) => {
  state.weights = event.target.checked;
  legend();
  redraw();
});
new ResizeObserver(() => {
  layOut();
  draw();
}).observe(canvas.parentElement);
window.addEventListener("resize", () => {
  layOut();
  redraw();
});
applyTheme();
layOut();
followAddress();
draw();
if (plan.graph) layOutGraph();
document.documentElement.dataset.ready = "yes";
