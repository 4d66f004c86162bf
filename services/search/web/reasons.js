// Why a hit is a hit: the phrases that carry the match, in one line and marked in both descriptions.

import { el } from "./dom.js";
import { companiesAsked } from "./question.js";

const FINE_INDUSTRY = "industry_fine"; // the attribute that the ranking prefers to `industry` (similarity/search/reranking/pair_features.py; a test compares them)
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

function named({ field, relation }, company) {
  if (field === "size" && ["larger", "smaller"].includes(relation)) return relation;
  const words = `${relation} ${field}`;
  return field === "industry" ? `${words}${industryValues(relation, company)}` : words;
}

const fine = ({ attributes }) => attributes?.[FINE_INDUSTRY];

// Which industries were compared, where the row does not show it: the finer ones, or two that differ.
function industryValues(relation, company) {
  const anchors = companiesAsked();
  const isFine = Boolean(fine(company)) && anchors.every(fine);
  if (!isFine && fine(company) && anchors.some(fine)) return ""; // not the same with each
  const valueOf = (each) => (isFine ? fine(each) : each.industry);
  const others = [...new Set(anchors.map(valueOf))];
  if (relation === "other" && others.length) return `: ${valueOf(company)}, not ${others.join(" or ")}`;
  return relation === "same" && isFine && anchors.some(({ industry }) => industry !== company.industry) ? `: ${valueOf(company)}` : "";
}

// The facts that moved the rank: "up: same industry · down: smaller".
function moves(hit) {
  const facts = hit.reason?.moved ?? [];
  const way = (word, some) => (some.length ? [`${word}: ${some.map((each) => named(each, hit.company)).join(", ")}`] : []);
  return [...way("up", facts.filter(({ effect }) => effect > 0)), ...way("down", facts.filter(({ effect }) => effect < 0))].join(" · ");
}

// One line: the best pair of phrases, one of the hit and one of the anchor, and the facts that moved the rank.
export function because(hit) {
  const [[own], [other]] = [phrasesOf(hit, "hit"), phrasesOf(hit, "anchor")];
  const facts = moves(hit);
  if (!own && !other && !facts) return null;
  const quote = (phrase) => phrase && el("q", { title: phrase.text }, phrase.text);
  const between = own && other && el("span", { class: "and" }, el("span", { "aria-hidden": "true" }, " ↔ "), el("span", { class: "hidden" }, " goes with "));
  const quoted = own || other ? [el("span", { class: "word" }, "because "), quote(own), between, quote(other)] : [];
  return [...quoted, facts && el("span", { class: "moved" }, facts)].filter(Boolean);
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
