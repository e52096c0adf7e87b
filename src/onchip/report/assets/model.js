// The plan as the page holds it. Every name reaches the page through textContent or fillText only.
const plan = JSON.parse(document.getElementById("plan").textContent);
const steps = plan.steps.map(([name, type, operators, inputs, outputs, workspace, occupancy, firstIn, firstOut, spill, reload, weights, streamed]) =>
  ({ name, type, operators, inputs, outputs, workspace, occupancy, firstIn, firstOut, spill, reload, weights, streamed }));
const tensors = plan.tensors.map(([name, bytes, role, producer, readers]) => ({ name, bytes, role, producer, readers, stays: [], away: [] }));
const boxes = plan.residencies.map(([tensor, address, size, start, end, arrival, departure, weights], id) =>
  ({ id, tensor, address, size, start, end, arrival, departure, weights }));
for (const box of boxes) if (box.tensor >= 0) tensors[box.tensor].stays.push(box);
for (const [tensor, left, back, crowded, live, written, reloaded, how] of plan.absences)
  tensors[tensor].away.push({ left, back, crowded, live, written, reloaded, how });
const spilled = (box) => box.tensor >= 0 && tensors[box.tensor].away.length > 0;
const roleOf = (box) => (box.tensor < 0 ? "scratch" : tensors[box.tensor].role);

const group = new Intl.NumberFormat("en-US");
const count = (n) => group.format(n);
function short(n) {
  if (n < 1024) return n + " B";
  let value = n / 1024, unit = "KiB";
  for (const next of ["MiB", "GiB", "TiB"]) {
    if (value < 1023.5) break;
    value /= 1024;
    unit = next;
  }
  return value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2) + " " + unit;
}
const exact = (n) => (n < 10240 ? count(n) + " B" : count(n) + " B (" + short(n) + ")");
const stepLabel = (s) => steps[s].name;
const stepName = (s) => "step " + (s + 1) + ", " + stepLabel(s);
const span = (from, to) => (to - from <= 1 ? "step " + (from + 1) : "steps " + (from + 1) + " to " + to);
