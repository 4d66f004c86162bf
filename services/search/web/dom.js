// Building and finding elements. Styles are set by script only: the security policy allows none inline.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

export const el = (tag, props = {}, ...children) => fill(document.createElement(tag), props, children);

export const svg = (tag, props = {}, ...children) => fill(document.createElementNS(SVG, tag), props, children);

// Attributes by name; `onclick` and the like are listeners. Children that are null, false or "" are left out.
function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
  return node;
}

export function button(label, onclick, props = {}) {
  return el("button", { type: "button", class: "quiet", ...props, onclick }, label);
}

export const counted = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

// Words for the eyes stay where they are; these are for screen readers.
export function say(words) {
  byId("status").textContent = words;
}

export function lastly(wait, act) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), wait);
  };
}
