// Times in the viewer's zone; the exact one on hover.

const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
const today = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const other = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function showTimes(root) {
  const now = new Date();
  for (const element of root.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const clock = (at.toDateString() === now.toDateString() ? today : other).format(at);
    const text = element.dataset.form === "ago" ? inWords((at - now) / 1000) : clock;
    if (element.textContent !== text) element.textContent = text;
    const title = `${other.format(at)} ${zone} · ${element.dateTime}`;
    if (element.title !== title) element.title = title;
  }
}

export function inWords(seconds) {
  const length = Math.abs(seconds);
  if (length < 1) return "now";
  const [unit, size] = UNITS.find(([, each]) => length >= each);
  const text = `${Math.floor(length / size)} ${unit}`;
  return seconds < 0 ? `${text} ago` : `in ${text}`;
}
