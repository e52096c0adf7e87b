(() => {
"use strict";
// The pictures are drawn already; here they answer the pointer and the keyboard. Words are written as text only.
const tip = document.getElementById("tip"), spoken = document.getElementById("spoken");
const words = new Map(), TOLD = "[data-segment], .idle, .move";
let hot = null, pinned = false;

// A segment's words, taken out of the picture so that they are not shown twice.
function wordsOf(node) {
  if (!words.has(node)) {
    const own = node.querySelector(":scope > title");
    words.set(node, own ? own.textContent.split("\n") : []);
    if (own) own.remove();
  }
  return words.get(node);
}
function mark(node) {
  if (hot) hot.classList.remove("hot");
  hot = node;
  if (node) node.classList.add("hot");
}
function show(node, x, y) {
  const lines = wordsOf(node);
  tip.textContent = "";
  const head = document.createElement("strong");
  head.textContent = lines[0] || "";
  const list = document.createElement("dl");
  for (const line of lines.slice(1)) {
    const at = line.indexOf(": ");
    const key = document.createElement("dt"), value = document.createElement("dd");
    key.textContent = line.slice(0, at);
    value.textContent = line.slice(at + 2);
    list.append(key, value);
  }
  tip.append(head, list);
  tip.classList.toggle("pinned", pinned);
  tip.hidden = false;
  const width = tip.offsetWidth, height = tip.offsetHeight;
  tip.style.left = Math.max(6, x + 18 + width > window.innerWidth ? x - 18 - width : x + 18) + "px";
  tip.style.top = Math.max(6, Math.min(y + 14, window.innerHeight - height - 8)) + "px";
}
function letGo() {
  pinned = false;
  tip.hidden = true;
  mark(null);
}
function choose(node) {
  mark(node);
  const box = node.getBoundingClientRect();
  show(node, Math.min(Math.max(box.left, 0), window.innerWidth), box.bottom - 8);
  spoken.textContent = wordsOf(node).join(". ");
}
// What runs on the next unit that has anything, at the time in the middle of a segment.
function across(all, node, step) {
  const box = node.getBoundingClientRect(), middle = (box.left + box.right) / 2;
  const others = all.filter((other) => {
    const unit = +other.dataset.unit, row = other.getBoundingClientRect();
    return unit !== +node.dataset.unit && Math.sign(row.top - box.top) === step;
  });
  const far = (other) => {
    const row = other.getBoundingClientRect();
    return Math.abs(row.top - box.top) * 1e4 + Math.max(row.left - middle, middle - row.right, 0);
  };
  return others.sort((a, b) => far(a) - far(b))[0];
}
for (const sheet of document.querySelectorAll("svg.sheet")) {
  const all = [...sheet.querySelectorAll("[data-segment]")];
  const inTime = [...all].sort((a, b) => +a.dataset.segment - +b.dataset.segment);
  sheet.setAttribute("tabindex", "0");
  sheet.addEventListener("pointerover", (event) => {
    const node = event.target.closest(TOLD);
    if (pinned) return;
    if (!node) { tip.hidden = true; mark(null); return; }
    mark(node);
    show(node, event.clientX, event.clientY);
  });
  sheet.addEventListener("pointerleave", () => { if (!pinned) letGo(); });
  sheet.addEventListener("click", (event) => {
    const node = event.target.closest(TOLD);
    if (!node) { letGo(); return; }
    pinned = true;
    mark(node);
    show(node, event.clientX, event.clientY);
  });
  sheet.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !inTime.length) return;
    const here = hot ? inTime.indexOf(hot) : -1;
    if (event.key === "Escape") letGo();
    else if (event.key === "Enter" && hot) { pinned = true; choose(hot); }
    else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      const next = here < 0 ? 0 : here + (event.key === "ArrowRight" ? 1 : -1);
      choose(inTime[Math.min(Math.max(next, 0), inTime.length - 1)]);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const next = here < 0 ? inTime[0] : across(all, hot, event.key === "ArrowDown" ? 1 : -1);
      if (next) choose(next);
    } else return;
    event.preventDefault();
  });
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape") letGo(); });

const dark = matchMedia("(prefers-color-scheme: dark)"), theme = document.getElementById("theme");
let choice = "auto";
function applyTheme() {
  document.documentElement.dataset.theme = choice === "auto" ? (dark.matches ? "dark" : "light") : choice;
  theme.textContent = "Theme: " + choice;
  theme.setAttribute("aria-label", "Colour theme: " + choice);
}
theme.addEventListener("click", () => {
  choice = { auto: dark.matches ? "light" : "dark", light: dark.matches ? "dark" : "auto", dark: dark.matches ? "auto" : "light" }[choice];
  applyTheme();
});
dark.addEventListener("change", applyTheme);
document.documentElement.dataset.ready = "yes";
})();
