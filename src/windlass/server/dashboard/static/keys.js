// The keyboard: / searches, ? helps, j and k move through rows, b goes to the buttons, g to a page.

const PLACES = { o: "/", j: "/jobs", q: "/queues", d: "/dead", f: "/flows", s: "/schedules", w: "/workers", t: "/types", a: "/actions", n: "/enqueue" };

export function bindKeys({ togglePause, nextTheme, showHelp }) {
  let going = false;
  const actions = {
    "/": () => document.getElementById("search")?.select(),
    "?": showHelp,
    p: togglePause,
    t: nextTheme,
    j: () => moveRow(1),
    k: () => moveRow(-1),
    b: () => document.querySelector("main .bulk button, main .buttons button, main .buttons a")?.focus(),
    x: () => rowOf(document.activeElement)?.querySelector("input[name=id]")?.click(),
    g: () => { going = true; setTimeout(() => { going = false; }, 1500); },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && event.target.id === "search") return event.target.blur();
    if (event.target.matches("input:not([type=checkbox]), textarea, select") || document.querySelector("dialog[open]")) return;
    if (going && PLACES[event.key]) return location.assign((document.documentElement.dataset.root ?? "") + PLACES[event.key]);
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}

function rowOf(element) {
  return element?.closest("main tr");
}

function moveRow(step) {
  const links = [...document.querySelectorAll("main a.open")];
  const row = rowOf(document.activeElement);
  const now = links.findIndex((each) => rowOf(each) === row && row !== null);
  links[Math.min(links.length - 1, Math.max(0, now + step))]?.focus();
}
