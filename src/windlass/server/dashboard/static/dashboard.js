// The dashboard in a browser: live updates, local times and keys. Pages work without it.
import { morph } from "./morph.js";
import { showTimes } from "./times.js";
import { bindKeys } from "./keys.js";
import { listen } from "./events.js";
import { suggest } from "./suggest.js";
import { followLogs, guardPresses, keepScroll } from "./scroll.js";

const main = document.getElementById("main");
const alarm = document.getElementById("alarm");
const live = document.getElementById("live");
const HOLD_MILLISECONDS = 4000;
let paused = sessionStorage.getItem("windlass-paused") === "yes";
let lastGood = new Date();
let lastPointer = 0;
let timer = 0;
let nextRefresh = 0;
let refreshing = false;
let changed = false;

// Live updates: the page is fetched again and morphed into the one that is shown, every few seconds and soon after an
// event: at most once a second, and for at most a tenth of the time.
async function refresh() {
  clearTimeout(timer);
  if (refreshing) return;
  const seconds = Number(main.dataset.refresh || 0);
  const held = isHeld();
  showPaused(held);
  if (seconds > 0 && !paused && !document.hidden && !held) {
    refreshing = true;
    changed = false;
    live.classList.add("busy");
    const began = Date.now();
    await fetchPage();
    nextRefresh = Math.max(began + 1000, Date.now() + 9 * (Date.now() - began));
    live.classList.remove("busy");
    refreshing = false;
  }
  if (seconds > 0) timer = setTimeout(refresh, 1000 * Number(main.dataset.refresh || seconds));
  if (changed) refreshSoon();
}

function refreshSoon() {
  changed = true;
  if (refreshing || paused) return;
  clearTimeout(timer);
  timer = setTimeout(refresh, Math.max(isHeld() ? 1000 : 50, nextRefresh - Date.now()));
}

async function fetchPage() {
  let response, text;
  try {
    response = await fetch(location.href, { headers: { accept: "text/html" }, redirect: "follow", cache: "no-store" });
    text = await response.text();
  } catch {
    return warn("The server does not answer");
  }
  if (response.redirected && new URL(response.url).pathname !== location.pathname) return warn("You are logged out: open the page again");
  const page = new DOMParser().parseFromString(text, "text/html");
  const fresh = page.getElementById("main");
  const failing = main.querySelector("[role=alert]") !== null;
  if (!response.ok && !failing) return warn(response.status === 503 ? "The store does not answer" : `The server answered ${response.status}`);
  if (fresh === null || isHeld()) return;
  showTimes(fresh);
  keepScroll(main, () => morph(main, fresh));
  showSelection();
  document.title = page.title;
  if (!response.ok) return;
  lastGood = new Date();
  alarm.hidden = true;
}

function warn(text) {
  alarm.textContent = `${text}. What you see is from ${lastGood.toLocaleTimeString()}; this page keeps trying.`;
  alarm.hidden = false;
}

// Nothing changes under the pointer, under a selection, or in a form that is being filled in.
function isHeld() {
  const focused = document.activeElement;
  if (focused && main.contains(focused) && focused.matches("input:not([type=checkbox]), textarea, select")) return true;
  if (main.querySelector("input[name=id]:checked, details#change[open]")) return true;
  if (String(getSelection()).length > 0) return true;
  return Date.now() - lastPointer < Number(main.dataset.hold || HOLD_MILLISECONDS) && main.querySelector("[data-hold]:hover, form:hover") !== null;
}

function showPaused(held = false) {
  live.classList.toggle("off", paused || held);
  live.setAttribute("aria-pressed", String(!paused));
  live.querySelector("span").textContent = paused ? "Paused" : held ? "Held" : "Live";
  live.title = paused ? "Resume live updates (p)" : held ? "Held while you tick jobs, fill in a form, select text or point at the list" : "Pause live updates (p)";
}

function togglePause() {
  paused = !paused;
  sessionStorage.setItem("windlass-paused", paused ? "yes" : "no");
  showPaused();
  if (!paused) refresh();
}

// The theme is a cookie, so that the server sends a page that is right from its first paint.
const themes = ["", "light", "dark"];
function nextTheme() {
  const root = document.documentElement;
  const next = themes[(themes.indexOf(root.dataset.theme || "") + 1) % themes.length];
  if (next) root.dataset.theme = next;
  else delete root.dataset.theme;
  document.cookie = `windlass_theme=${next}; path=${document.documentElement.dataset.root || "/"}; max-age=31536000; samesite=strict`;
  showTheme();
}
function showTheme() {
  const button = document.getElementById("theme");
  const name = document.documentElement.dataset.theme || "system";
  button.title = `Theme: ${name} (t)`;
  button.querySelector("span").textContent = `Theme: ${name}`;
}

// Selection of jobs.
function showSelection() {
  const all = document.getElementById("select-all");
  if (!all) return;
  const boxes = [...main.querySelectorAll("input[name=id]")];
  const count = boxes.filter((box) => box.checked).length;
  all.hidden = boxes.length === 0;
  all.checked = count > 0 && count === boxes.length;
  all.indeterminate = count > 0 && count < boxes.length;
  document.getElementById("selected").textContent = count ? `${count} selected` : "Select";
}

document.addEventListener("change", (event) => {
  if (event.target.id === "select-all") {
    for (const box of main.querySelectorAll("input[name=id]")) box.checked = event.target.checked;
  }
  if (event.target.id === "select-all" || event.target.name === "id") showSelection();
});
document.addEventListener("pointermove", () => { lastPointer = Date.now(); }, { passive: true });
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });

for (const id of ["live", "theme", "help"]) {
  const button = document.getElementById(id);
  if (button) button.hidden = id === "live" && !main.dataset.refresh;
}
live.addEventListener("click", togglePause);
document.getElementById("theme").addEventListener("click", nextTheme);
const help = document.getElementById("keys");
document.getElementById("help").addEventListener("click", () => help.showModal());
bindKeys({ togglePause, nextTheme, showHelp: () => help.showModal() });
document.querySelector(".side [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
showTimes(document);
showPaused();
showTheme();
showSelection();
followLogs(document);
guardPresses(main);
setInterval(() => showTimes(document), 5000);
timer = setTimeout(refresh, 1000 * Number(main.dataset.refresh || 1));
const search = document.getElementById("search");
if (search) suggest(search);
if (main.dataset.refresh && document.querySelector(".side a")) listen(main.dataset.job, refreshSoon);
