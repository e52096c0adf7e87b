// When operators run and when DRAM channels are busy: one canvas, a lane for each, an axis of time.
const clock = document.getElementById("clock");
const ticking = clock.getContext("2d");
const T = plan.times;
const bars = T.bars.map(([lane, start, end, name, kind, step, bytes]) => ({ lane, start, end, name, kind, step, bytes }));
const lanes = T.lanes.map((_, lane) => bars.filter((bar) => bar.lane === lane));
const shown = { from: 0, to: T.latency, bar: null, width: 0 };
const LANE = { left: 110, right: 12, tops: T.lanes.map((_, lane) => 26 + 70 * lane), height: 54, all: 26 + 70 * T.lanes.length };
const KINDS = { run: "activation-0", compulsory: "compulsory", spill: "spill", reload: "reload", stream: "weights", move: "occupancy",
  group: "activation-1", fetch: "compulsory", store: "spill", period: "line", several: "occupancy" };
const SAID = { run: "operator runs", compulsory: "compulsory copy", spill: "spill", reload: "reload", stream: "weights and streamed operands", move: "move on chip",
  group: "group runs, and its copies", fetch: "fetch", store: "store", period: "turns that repeat the one before", several: "fetches and stores" };

function since(ps) {
  for (const [unit, size] of [["s", 1e12], ["ms", 1e9], ["µs", 1e6], ["ns", 1e3]])
    if (T.latency >= size) return (ps / size).toFixed(Math.max(0, 3 - Math.floor(Math.log10(Math.max(1, T.latency / size))))) + " " + unit;
  return ps + " ps";
}
const timeX = (ps) => LANE.left + ((ps - shown.from) / (shown.to - shown.from)) * (shown.width - LANE.left - LANE.right);
const timeAt = (x) => shown.from + ((x - LANE.left) / (shown.width - LANE.left - LANE.right)) * (shown.to - shown.from);

function layOutTimes() {
  if (!clock.clientWidth) return;
  const ratio = window.devicePixelRatio || 1;
  shown.width = clock.clientWidth;
  clock.style.height = LANE.all + "px";
  clock.width = Math.round(shown.width * ratio);
  clock.height = Math.round(LANE.all * ratio);
  ticking.setTransform(ratio, 0, 0, ratio, 0, 0);
  drawTimes();
}
function drawTimes() {
  if (!shown.width) return;
  const t = ticking, right = shown.width - LANE.right;
  t.font = FONT;
  t.fillStyle = ink.paper;
  t.fillRect(0, 0, shown.width, LANE.all);
  T.lanes.forEach((text, lane) => {
    t.fillStyle = ink.well;
    t.fillRect(LANE.left, LANE.tops[lane], right - LANE.left, LANE.height);
    t.fillStyle = ink.ink;
    t.textAlign = "left";
    t.textBaseline = "middle";
    t.fillText(text, 0, LANE.tops[lane] + LANE.height / 2);
  });
  t.textBaseline = "alphabetic";
  t.textAlign = "center";
  for (let i = 0; i <= 6; i++) {
    const ps = shown.from + ((shown.to - shown.from) * i) / 6, x = timeX(ps);
    t.fillStyle = ink.line;
    t.fillRect(x, 20, 1, LANE.all - 20);
    t.fillStyle = ink.quiet;
    t.textAlign = i === 6 ? "right" : "center";
    t.fillText(since(ps), x, 14);
  }
  for (const lane of lanes) {
    let drawn = -1;
    for (const bar of lane) {
      if (bar.end < shown.from || bar.start > shown.to) continue;
      const x0 = Math.max(LANE.left, timeX(bar.start)), x1 = Math.min(right, timeX(bar.end));
      if (x1 - drawn < 0.3) continue; // nothing to see beside what is drawn
      const wide = Math.max(x1 - x0 - (x1 - x0 > 4 ? 1 : 0), 0.5), top = LANE.tops[bar.lane];
      t.fillStyle = ink[KINDS[bar.kind]];
      t.fillRect(x0, top, wide, LANE.height);
      drawn = x1;
      if (wide > 34) {
        t.fillStyle = ink[bar.kind === "period" ? "ink" : "on-fill"];
        t.textAlign = "left";
        t.fillText(fitText(bar.name, wide - 8, 3, t), x0 + 4, top + LANE.height / 2 + 4);
      }
    }
  }
  if (shown.bar) {
    const x0 = timeX(shown.bar.start), x1 = timeX(shown.bar.end);
    t.strokeStyle = ink.focus;
    t.lineWidth = 2;
    t.strokeRect(x0 - 1, LANE.tops[shown.bar.lane] - 1, Math.max(2, x1 - x0) + 1, LANE.height + 2);
  }
}
function lookAtTimes(from, to) {
  const size = Math.min(T.latency, Math.max(T.latency / 1e6, 1, to - from));
  shown.from = Math.min(Math.max(0, from), T.latency - size);
  shown.to = shown.from + size;
  drawTimes();
}
function zoomTimes(factor, at = (shown.from + shown.to) / 2) {
  lookAtTimes(at - (at - shown.from) * factor, at + (shown.to - at) * factor);
}
function describeBar(bar) {
  const rows = [["from", since(bar.start)], ["to", since(bar.end)], ["takes", since(bar.end - bar.start)]];
  if (bar.bytes) rows.push(["bytes", exact(bar.bytes)]);
  rows.push(["step", count(bar.step + 1)]);
  return { title: bar.name, kind: SAID[bar.kind], rows };
}
function barAt(x, y) {
  const lane = LANE.tops.findIndex((top) => y >= top && y <= top + LANE.height);
  if (lane < 0 || x < LANE.left) return null;
  const at = timeAt(x), slack = (shown.to - shown.from) / shown.width;
  return lanes[lane].find((bar) => at >= bar.start - slack && at <= bar.end + slack) || null;
}
const onClock = (event) => {
  const frame = clock.getBoundingClientRect();
  return [event.clientX - frame.left, event.clientY - frame.top];
};
let pulled = null;
clock.addEventListener("pointerdown", (event) => {
  pulled = { x: onClock(event)[0], from: shown.from, to: shown.to, moved: false };
  clock.setPointerCapture(event.pointerId);
});
clock.addEventListener("pointermove", (event) => {
  const [x, y] = onClock(event);
  if (pulled) {
    if (Math.abs(x - pulled.x) > 3) pulled.moved = true;
    const by = ((pulled.x - x) / (shown.width - LANE.left - LANE.right)) * (pulled.to - pulled.from);
    if (pulled.moved) lookAtTimes(pulled.from + by, pulled.to + by);
    return;
  }
  if (state.pinned) return;
  shown.bar = barAt(x, y);
  if (shown.bar) showTip(describeBar(shown.bar), event.clientX, event.clientY);
  else tip.hidden = true;
  drawTimes();
});
clock.addEventListener("pointerup", (event) => {
  const click = pulled && !pulled.moved;
  pulled = null;
  if (!click) return;
  shown.bar = barAt(...onClock(event));
  letGo();
  if (shown.bar) pin(describeBar(shown.bar), event.clientX, event.clientY);
  drawTimes();
});
clock.addEventListener("pointerleave", () => {
  if (state.pinned || pulled) return;
  shown.bar = null;
  tip.hidden = true;
  drawTimes();
});
clock.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  zoomTimes(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.01), timeAt(onClock(event)[0]));
}, { passive: false });
clock.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const all = lanes[shown.bar ? shown.bar.lane : 0], at = all.indexOf(shown.bar), last = all.length - 1;
  const next = { ArrowLeft: Math.max(0, at - 1), ArrowRight: Math.min(last, at + 1), Home: 0, End: last }[event.key];
  if (next !== undefined && all.length) shown.bar = all[next];
  else if ((event.key === "ArrowUp" || event.key === "ArrowDown") && shown.bar) {
    const other = lanes[shown.bar.lane + (event.key === "ArrowUp" ? -1 : 1)] || [], from = shown.bar.start;
    shown.bar = other.find((bar) => bar.end > from) || shown.bar;
  } else if (event.key === "+" || event.key === "=") return zoomTimes(0.5, shown.bar ? (shown.bar.start + shown.bar.end) / 2 : undefined);
  else if (event.key === "-") return zoomTimes(2);
  else if (event.key === "0") return lookAtTimes(0, T.latency);
  else return;
  event.preventDefault();
  if (!shown.bar) return;
  if (shown.bar.start < shown.from || shown.bar.end > shown.to) {
    const size = shown.to - shown.from, middle = (shown.bar.start + shown.bar.end) / 2;
    lookAtTimes(middle - size / 2, middle + size / 2);
  }
  const frame = clock.getBoundingClientRect();
  pin(describeBar(shown.bar), frame.left + Math.max(LANE.left, timeX(shown.bar.start)), frame.top + LANE.tops[shown.bar.lane]);
  drawTimes();
});
document.getElementById("times-in").addEventListener("click", () => zoomTimes(0.5));
document.getElementById("times-out").addEventListener("click", () => zoomTimes(2));
document.getElementById("times-fit").addEventListener("click", () => lookAtTimes(0, T.latency));
new ResizeObserver(layOutTimes).observe(clock.parentElement);
window.addEventListener("resize", layOutTimes);
layOutTimes();
