// Why a hit is a hit: the phrases that carry the match, in one line and marked in both descriptions.

import { el } from "./dom.js";

const PLACED = ["country", "industry"]; // shown where the row shows them anyway

// The words with the phrases marked. `start` and `end` count characters as Python does, not UTF-16 units.
export function marked(words, phrases) {
  const characters = [...words];
  const parts = [];
  let at = 0;
  for (const { start, end } of [...phrases].sort((one, other) => one.start - other.start)) {
    if (start < at || end > characters.length) continue;
    parts.push(characters.slice(at, start).join(""), el("mark", {}, characters.slice(start, end).join("")));
    at = end;
  }
  parts.push(characters.slice(at).join(""));
  return parts.filter((part) => part !== "");
}

export const phrasesOf = (hit, side) => (hit.reason?.phrases ?? []).filter(({ of }) => of === side);

// One line: the strongest phrase of the hit beside the strongest of the anchor.
export function because(hit) {
  const [[own], [other]] = [phrasesOf(hit, "hit"), phrasesOf(hit, "anchor")];
  if (!own && !other) return null;
  const quote = (phrase) => phrase && el("q", { title: phrase.text }, phrase.text);
  const between = own && other && el("span", { class: "and" }, el("span", { "aria-hidden": "true" }, " ↔ "), el("span", { class: "hidden" }, " goes with "));
  return [el("span", { class: "word" }, "because "), quote(own), between, quote(other)].filter(Boolean);
}

const sharedValues = (hit, field) => (hit.reason?.shared ?? []).filter((each) => each.field === field).flatMap(({ values }) => values);

// A fact in its place; a chip where the anchor has the same.
export function fact(hit, field) {
  const value = hit.company[field];
  if (!value) return null;
  const same = sharedValues(hit, field).length > 0;
  return el("span", { class: same ? `${field} same` : field, title: same ? `Same ${field}` : null }, same && el("span", { class: "hidden" }, "same: "), value);
}

export function otherShared(hit) {
  const others = (hit.reason?.shared ?? []).filter(({ field }) => !PLACED.includes(field));
  return others.flatMap(({ field, values }) => values.map((value) =>
    el("span", { class: "same", title: `Same ${field.replace("attributes.", "")}` }, el("span", { class: "hidden" }, "same: "), String(value))));
}
