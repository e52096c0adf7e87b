(() => {
"use strict";
// The colour theme: the reader's own, or the one that the button names.
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
