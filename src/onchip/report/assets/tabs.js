// Views as tabs. Without this script they stand one below the other.
const tabs = [...document.querySelectorAll("[role=tab]")];
const panelOf = (tab) => document.getElementById(tab.getAttribute("aria-controls"));
const nameOf = (tab) => tab.id.slice("tab-".length);
let openTab = null;
function showTab(name, remember = true) {
  const next = tabs.find((tab) => nameOf(tab) === name);
  if (!next || next === openTab) return;
  openTab = next;
  for (const tab of tabs) {
    const open = tab === next;
    tab.setAttribute("aria-selected", String(open));
    tab.tabIndex = open ? 0 : -1;
    panelOf(tab).hidden = !open;
  }
  // A view can be linked to: report.html#view=traffic.
  if (remember) history.replaceState(null, "", "#view=" + name);
}
for (const tab of tabs) tab.addEventListener("click", () => {
  letGo();
  showTab(nameOf(tab));
});
document.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
  const at = tabs.indexOf(openTab), last = tabs.length - 1;
  const next = { ArrowLeft: at ? at - 1 : last, ArrowRight: at < last ? at + 1 : 0, Home: 0, End: last }[event.key];
  if (next === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  letGo();
  showTab(nameOf(tabs[next]));
  tabs[next].focus();
});
const askedTab = () => (/^#steps=/.test(location.hash) ? "map" : location.hash.replace(/^#view=/, ""));
window.addEventListener("hashchange", () => showTab(askedTab(), false));
document.documentElement.dataset.tabs = "yes";
showTab(tabs.some((tab) => nameOf(tab) === askedTab()) ? askedTab() : nameOf(tabs[0]), false);
