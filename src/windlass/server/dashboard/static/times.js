// Times in the viewer's zone; the exact one on hover.

const UNITS = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
const today = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const minute = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "short" });
const other = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function showTimes(root) {
  const now = new Date();
  for (const element of root.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const text = textOf(element.dataset.form, at, now);
    if (element.textContent !== text) element.textContent = text;
    const title = `${other.format(at)} ${zone} · ${element.dateTime}`;
    if (element.title !== title) element.title = title;
  }
  for (const title of root.querySelectorAll("title[data-at]")) {
    title.dataset.values ??= title.textContent.split("UTC: ")[1];
    const text = `${day.format(new Date(title.dataset.at))}: ${title.dataset.values}`;
    if (title.textContent !== text) title.textContent = text;
  }
}

function textOf(form, at, now) {
  if (form === "ago") return inWords((at - now) / 1000);
  const isToday = at.toDateString() === now.toDateString();
  if (form === "axis") return (isToday ? minute : day).format(at);
  return (isToday ? today : other).format(at);
}

export function inWords(seconds) {
  const length = Math.abs(seconds);
  if (length < 1) return "now";
  const [unit, size] = UNITS.find(([, each]) => length >= each);
  const text = `${Math.floor(length / size)}${unit}`;
  return seconds < 0 ? `${text} ago` : `in ${text}`;
}
