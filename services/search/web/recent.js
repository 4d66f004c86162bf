// Recent searches, in this browser only (localStorage): nothing of them is sent anywhere.

import { byId, el } from "./dom.js";
import { addressOf, current, visit } from "./state.js";

const KEY = "similarity-recent";
const MOST = 12;

// [{title, address}], the latest first. Another program may have written there, so what is read is checked.
export function recentSearches() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return kept.filter(({ title, address }) => typeof title === "string" && String(address).startsWith("/?")).slice(0, MOST);
  } catch {
    return [];
  }
}

export function remember(title) {
  const address = addressOf(current());
  const others = recentSearches().filter((each) => each.title !== title);
  try {
    localStorage.setItem(KEY, JSON.stringify([{ title, address }, ...others].slice(0, MOST)));
  } catch {
    // The browser keeps nothing (private window, no room left): the page works without.
  }
}

export function showRecent() {
  const recent = recentSearches();
  byId("recent").hidden = !recent.length;
  byId("recent-searches").replaceChildren(...recent.map(({ title, address }) =>
    el("a", { href: address, class: "chip", onclick: (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return;
      event.preventDefault();
      visit(address);
    } }, title)));
}

export function startRecent() {
  byId("forget-recent").addEventListener("click", () => {
    localStorage.removeItem(KEY);
    showRecent();
    byId("search").focus();
  });
}
