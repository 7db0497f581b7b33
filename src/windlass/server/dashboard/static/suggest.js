// Suggestions for the search box, as a list of the browser's own.

const WAIT_MILLISECONDS = 120;

export function suggest(field) {
  const list = document.createElement("datalist");
  list.id = "suggestions";
  field.after(list);
  field.setAttribute("list", list.id);
  let timer = 0;
  let newest = 0;
  const show = async () => {
    const number = ++newest;
    try {
      const response = await fetch(`${document.documentElement.dataset.root ?? ""}/suggestions?q=${encodeURIComponent(field.value)}`, { cache: "no-store" });
      if (!response.ok || response.redirected || number !== newest) return;
      const texts = await response.json();
      list.replaceChildren(...texts.map((text) => Object.assign(document.createElement("option"), { value: text })));
    } catch {
      list.replaceChildren(); // the search works without suggestions
    }
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(show, WAIT_MILLISECONDS);
  };
  field.addEventListener("input", soon);
  field.addEventListener("focus", soon);
}
