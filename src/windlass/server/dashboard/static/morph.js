// Makes one element like another, and keeps focus, ticks, open details and scroll positions.

/** The name by which an element is found again among its siblings. */
function keyOf(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return null;
  // Not `node.id`: a form has its field of that name there.
  return node.getAttribute("id") || node.getAttribute("data-key");
}

function isSame(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && keyOf(one) === keyOf(other);
}

/** Make `old` like `fresh`, which is used up. */
export function morph(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  if (old.isEqualNode(fresh)) return;
  morphAttributes(old, fresh);
  morphChildren(old, fresh);
}

function morphAttributes(old, fresh) {
  const own = ownAttributes(old);
  for (const { name, value } of [...fresh.attributes]) {
    if (!own.includes(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!own.includes(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
}

/** Attributes that the user changes. */
function ownAttributes(element) {
  if (element.nodeName === "DETAILS") return ["open"];
  if (element.hasAttribute("data-follow")) return ["data-followed"];
  if (element.nodeName === "INPUT") return element === document.activeElement ? ["value", "checked"] : ["checked", "hidden"];
  return [];
}

function morphChildren(old, fresh) {
  const keyed = new Map();
  for (const child of old.childNodes) {
    const key = keyOf(child);
    if (key) keyed.set(key, child);
  }
  const wanted = new Set([...fresh.childNodes].map(keyOf).filter(Boolean));
  let current = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const key = keyOf(child);
    // A keyed element that the new page does not have is removed, so that its neighbours are not moved.
    while (current && keyOf(current) && !wanted.has(keyOf(current))) current = removed(current);
    const found = key ? keyed.get(key) : current && !keyOf(current) && isSame(current, child) ? current : null;
    if (found && isSame(found, child)) {
      if (found === current) current = current.nextSibling;
      else old.insertBefore(found, current);
      morph(found, child);
    } else {
      old.insertBefore(document.importNode(child, true), current);
    }
  }
  while (current) current = removed(current);
}

function removed(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}
