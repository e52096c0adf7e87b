// The figures of modules are pictures already; here they answer the pointer and the keyboard.
const moduleSection = document.getElementById("modules");
const figureTitles = new Map();
const SPOT = "[data-step], [data-box], [data-module]";

// The words of a picture's element, taken out of it so that they are not shown twice.
function titleOf(node) {
  if (!figureTitles.has(node)) {
    const own = node.querySelector(":scope > title");
    figureTitles.set(node, own ? own.textContent : "");
    if (own) own.remove();
  }
  return figureTitles.get(node);
}
function describeSpot(node) {
  const words = titleOf(node);
  const about = node.dataset.box !== undefined ? describeBox(boxes[+node.dataset.box])
    : node.dataset.step !== undefined ? describeStep(+node.dataset.step)
    : { title: words, kind: "module; Enter or a click shows its regions", rows: [] };
  return node.dataset.module !== undefined || !words ? about : { ...about, kind: words + (node.dataset.step !== undefined ? "; " + about.kind : "") };
}
let hotSpot = null;
function markSpot(node) {
  if (hotSpot) hotSpot.classList.remove("hot");
  hotSpot = node;
  if (node) node.classList.add("hot");
}
function showModule(index) {
  for (const figure of moduleSection.querySelectorAll("[data-region]")) figure.hidden = figure.dataset.region !== index;
  for (const button of document.querySelectorAll("#choose button")) button.setAttribute("aria-pressed", String(button.dataset.module === index));
}
moduleSection.addEventListener("pointerover", (event) => {
  const node = event.target.closest("svg " + SPOT.split(", ").join(", svg "));
  if (state.pinned) return;
  markSpot(node);
  if (node) showTip(describeSpot(node), event.clientX, event.clientY);
  else tip.hidden = true;
});
moduleSection.addEventListener("pointerleave", () => {
  markSpot(null);
  if (!state.pinned) tip.hidden = true;
});
moduleSection.addEventListener("click", (event) => {
  const node = event.target.closest(SPOT);
  if (!node) return letGo();
  if (node.dataset.module !== undefined) {
    showModule(node.dataset.module);
    if (!node.closest("#choose")) document.getElementById("regions-title").scrollIntoView({ block: "start", behavior: "smooth" });
    return undefined;
  }
  return pin(describeSpot(node), event.clientX, event.clientY);
});
// With a picture in focus the arrows walk what it shows.
for (const sheet of moduleSection.querySelectorAll("svg.sheet")) {
  sheet.setAttribute("tabindex", "0");
  sheet.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const spots = [...sheet.querySelectorAll(SPOT)];
    const move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    if (event.key === "Enter" && hotSpot && hotSpot.dataset.module !== undefined) {
      showModule(hotSpot.dataset.module);
      document.getElementById("regions-title").scrollIntoView({ block: "start" });
    } else if (move && spots.length) {
      const at = spots.indexOf(hotSpot);
      const next = spots[at < 0 ? 0 : Math.min(spots.length - 1, Math.max(0, at + move))];
      markSpot(next);
      const frame = next.getBoundingClientRect();
      pin(describeSpot(next), frame.x + frame.width / 2, frame.y + frame.height / 2);
    } else return;
    event.preventDefault();
  });
}
showModule((document.querySelector("#choose button.second") || document.querySelector("#choose button")).dataset.module);
