// Events of the server, while the page is visible. Without them, the timer of the page is enough.

const NAMES = ["job.completed", "job.dead", "job.cancelled", "flow.completed", "flow.dead", "flow.cancelled", "job.failed", "job.changed", "queue.changed", "schedule.changed", "stream.gap"];
const AGAIN_MILLISECONDS = 10000;
const { root = "", live = "" } = document.documentElement.dataset;
const polls = live === "poll";
let source = null;
let again = 0;

/** Call `changed` for every event that concerns the page; `job` is the only one that it shows. */
export function listen(job, changed) {
  const open = () => {
    clearTimeout(again);
    if (polls || source || document.hidden || !("EventSource" in window)) return;
    source = new EventSource(`${root}/api/v1/events${job ? `?job=${encodeURIComponent(job)}` : ""}`);
    for (const name of NAMES) source.addEventListener(name, changed);
    source.addEventListener("stream.ended", () => later(open));
    // The browser opens a broken connection again, but not after an answer that is no stream.
    source.addEventListener("error", () => source?.readyState === EventSource.CLOSED && later(open));
    source.addEventListener("open", () => document.documentElement.setAttribute("data-events", "open"));
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  open();
}

function later(open) {
  close();
  again = setTimeout(open, AGAIN_MILLISECONDS);
}

function close() {
  source?.close();
  source = null;
  document.documentElement.removeAttribute("data-events");
}
