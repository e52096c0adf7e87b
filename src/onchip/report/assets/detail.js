// What a tensor or an operator is, in words: the tooltip, and the same said to a screen reader.
const tip = document.getElementById("tip");
const spoken = document.getElementById("spoken");

const named = (ids) => ids.map((t) => tensors[t].name + " (" + short(tensors[t].bytes) + ")").join(", ") || "none";
const ROLE = { input: "network input", activation: "activation", output: "network output", scratch: "scratch of one run" };

function awayText(away) {
  const why = away.crowded >= 0 ? "; " + stepName(away.crowded) + " needs the room (" + short(away.live) + " live there, budget " + short(plan.budget) + ")"
    : away.how === "moved" ? "; moved to other addresses" : away.how === "whole" ? "; no free range of addresses long enough" : "";
  const then = { streamed: ", in pieces", joined: "; joined in DRAM", out: "; not read again" }[away.how] || "";
  const out = away.how === "moved" ? "within step " + (away.left + 1) : span(away.left, away.back);
  return out + why + "; " + (away.written ? short(away.written) + " written, " : "copy in DRAM already, ") + short(away.reloaded) + " read back" + then;
}

function describeBox(box) {
  const home = memoryAt(box.address), from = box.address - (home ? home.base : 0), to = from + box.size;
  const where = (home ? home.name + ", " : "") + count(from) + " to " + count(to) + " (" + short(from) + " to " + short(to) + ")";
  if (box.weights !== undefined)
    return { title: box.weights, kind: "pinned weights", rows: [["bytes", exact(box.size)], ["addresses", where], ["here", "always"]] };
  if (box.tensor < 0)
    return { title: stepLabel(box.start), kind: ROLE.scratch, rows: [["bytes", exact(box.size)], ["addresses", where], ["step", String(box.start + 1)]] };
  const t = tensors[box.tensor];
  const rows = [["bytes", exact(t.bytes)], ["addresses", where], ["here", span(box.start, box.end) + (t.stays.length > 1 ? ", stay " + (t.stays.indexOf(box) + 1) + " of " + t.stays.length : "")],
    ["produced", t.producer >= 0 ? stepName(t.producer) : "outside: copied from DRAM"]];
  const shown = t.readers.slice(0, 6).map(stepName).join("; ");
  rows.push(["read by", (shown || "nobody") + (t.readers.length > 6 ? "; " + (t.readers.length - 6) + " more" : "")]);
  for (const away of t.away.slice(0, 4)) rows.push(["out", awayText(away)]);
  if (t.away.length > 4) rows.push(["out", t.away.length - 4 + " more times"]);
  return { title: t.name, kind: ROLE[t.role], rows };
}

function describeStep(s) {
  const t = steps[s], rows = [];
  if (t.operators) rows.push(["inputs", named(t.inputs)], ["outputs", named(t.outputs)], ["workspace", exact(t.workspace)]);
  rows.push(["live at most", exact(t.occupancy) + ", " + ((100 * t.occupancy) / Math.max(1, plan.budget)).toFixed(1) + " % of the budget"]);
  for (const [key, bytes] of [["compulsory in", t.firstIn], ["compulsory out", t.firstOut], ["spilled", t.spill], ["reloaded", t.reload], ["weights", t.weights]])
    if (bytes) rows.push([key, exact(bytes)]);
  for (const [tensor, bytes] of t.streamed) rows.push(["streamed", tensors[tensor].name + ": " + exact(bytes)]);
  return { title: stepLabel(s), kind: "step " + count(s + 1) + (t.type ? ", " + t.type : ""), rows };
}

function fillTip(about) {
  tip.textContent = "";
  const make = (tag, text, parent) => {
    const node = document.createElement(tag);
    node.textContent = text;
    (parent || tip).append(node);
    return node;
  };
  make("strong", about.title);
  make("small", about.kind);
  const list = make("dl", "");
  for (const [key, value] of about.rows) {
    make("dt", key, list);
    make("dd", value, list);
  }
  if (state.pinned) {
    const close = make("button", "×");
    close.className = "close";
    close.type = "button";
    close.setAttribute("aria-label", "Let go");
    close.addEventListener("click", letGo);
  }
  tip.classList.toggle("pinned", state.pinned);
}

function showTip(about, x, y) {
  fillTip(about);
  tip.hidden = false;
  const width = tip.offsetWidth, height = tip.offsetHeight;
  const left = x + 18 + width > window.innerWidth ? x - 18 - width : x + 18;
  tip.style.left = Math.max(6, left) + "px";
  tip.style.top = Math.max(6, Math.min(y + 14, window.innerHeight - height - 8)) + "px";
}
function speak(about) {
  spoken.textContent = [about.title, about.kind, ...about.rows.map((row) => row.join(": "))].join(". ");
}
