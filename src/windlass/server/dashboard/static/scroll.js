// Keeps scroll positions over an update, and ignores presses on what an update moved under the pointer.

const GUARD_MILLISECONDS = 700;
let pointer = null;
let guardedUntil = 0;

/** Change `main`: log boxes at their end stay there, and presses on what moved under the pointer are ignored. */
export function keepScroll(main, change) {
  const followed = [...main.querySelectorAll("[data-follow]")].filter(isAtEnd);
  const before = underPointer(main);
  change();
  for (const box of followed) box.scrollTop = box.scrollHeight;
  for (const box of main.querySelectorAll("[data-follow]:not([data-followed])")) followBox(box);
  if (before !== underPointer(main)) guardedUntil = Date.now() + GUARD_MILLISECONDS;
}

/** Show the end of every log box. */
export function followLogs(root) {
  for (const box of root.querySelectorAll("[data-follow]")) followBox(box);
}

function followBox(box) {
  box.dataset.followed = "yes";
  box.scrollTop = box.scrollHeight;
}

function isAtEnd(box) {
  return box.scrollHeight - box.scrollTop - box.clientHeight < 8;
}

/** A reaction to an update takes longer than this: the press was meant for what was there before. */
export function guardPresses(main) {
  document.addEventListener("pointermove", (event) => { pointer = [event.clientX, event.clientY]; }, { passive: true });
  document.addEventListener("click", (event) => {
    if (event.detail === 0 || Date.now() >= guardedUntil || !main.contains(event.target)) return;
    event.preventDefault();
    event.stopPropagation();
  }, { capture: true });
}

/** The row, link or button under the pointer. */
function underPointer(main) {
  const found = pointer && document.elementFromPoint(...pointer);
  return found && main.contains(found) ? found.closest("tr, a, button, summary") : null;
}
