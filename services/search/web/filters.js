// Narrowing down: facets of what is near (any of, none of), ranges of numbers, and what is applied.

import { ask } from "./ask.js";
import { nameOfField } from "./attributes.js";
import { button, byId, el } from "./dom.js";
import { LIMITS, RANKS, RANK_WORDS, current, go, requestFor } from "./state.js";

const FEW = 6; // values of a facet that are shown before "more"
const MOST_VALUES = 40; // of an attribute; one with more is no facet but free text
const NEARBY = 100; // hits that the facets are taken from; other values are typed
const FIRST = ["country", "industry", "tags", "language"];

let nearby = { key: "", hits: [] };
const opened = new Set(); // facets that show all their values

// ---- Which values there are: those of the same question without filters

const keyOf = ({ anchors, negatives, exclude, excludeLists, rank }) => JSON.stringify([anchors, negatives, exclude, excludeLists, rank]);

export async function loadFacets(answer, signal) {
  const state = current();
  if (nearby.key !== keyOf(state)) {
    const asked = { ...state, filters: [], minProbability: null, k: NEARBY };
    const { path, params, body } = requestFor("/similar", asked, { reasons: 0, fields: "country,industry,tags,attributes" });
    const { hits } = await ask(path, { params, body, signal });
    nearby = { key: keyOf(state), hits };
  }
  showFacets();
}

function showFacets() {
  const { filters } = current();
  const fields = [...FIRST.filter(differs), ...attributeFields()];
  byId("facets").replaceChildren(...fields.map(facetOf).filter(Boolean));
  const count = filters.reduce((sum, filter) => sum + partsOf(filter).length, 0) + (current().minProbability ? 1 : 0);
  byId("filter-count").textContent = count ? `· ${count}` : "";
}

// A facet of the language is shown only where there are several.
function differs(field) {
  return field !== "language" || filterOn(field).any_of.length || filterOn(field).none_of.length || new Set(nearby.hits.flatMap((hit) => valuesOf(hit, field))).size > 1;
}

function attributeFields() {
  const names = new Set(nearby.hits.flatMap(({ company }) => Object.keys(company.attributes ?? {})));
  for (const { field } of current().filters) if (field.startsWith("attributes.")) names.add(field.slice("attributes.".length));
  return [...names].sort().map((name) => `attributes.${name}`);
}

function valuesOf({ company, language }, field) {
  const value = field.startsWith("attributes.") ? company.attributes?.[field.slice("attributes.".length)] : { language, ...company }[field];
  return (Array.isArray(value) ? value : [value]).filter((each) => each !== undefined && each !== null && each !== "");
}

function facetOf(field) {
  const values = nearby.hits.flatMap((hit) => valuesOf(hit, field));
  const filter = filterOn(field);
  if (values.length && values.every((value) => typeof value === "number")) return range(field, values);
  const counts = new Map([...filter.any_of, ...filter.none_of].map((value) => [value, 0]));
  for (const value of values.map(String)) counts.set(value, (counts.get(value) ?? 0) + 1);
  if (!counts.size || (field.startsWith("attributes.") && counts.size > MOST_VALUES)) return null;
  return choices(field, [...counts].sort((one, other) => other[1] - one[1] || one[0].localeCompare(other[0])));
}

// ---- One facet

function choices(field, counts) {
  const filter = filterOn(field);
  const chosen = new Set([...filter.any_of, ...filter.none_of]);
  const shown = opened.has(field) ? counts : counts.filter(([value], place) => place < FEW || chosen.has(value));
  const rest = counts.length - shown.length;
  return el("div", { role: "group", "aria-label": nameOfField(field), class: "facet" }, el("h2", {}, nameOfField(field)),
    shown.map(([value, count]) => choice(field, value, count)),
    el("input", { class: "other", placeholder: `another, not among the ${NEARBY} nearest`, "aria-label": `Another ${nameOfField(field)}`,
      onchange: ({ target }) => { const value = target.value.trim(); if (value && !chosen.has(value)) toggle(field, value, "any_of"); } }),
    (rest > 0 || opened.has(field)) && counts.length > FEW && button(rest > 0 ? `${rest} more` : "fewer", () => {
      if (!opened.delete(field)) opened.add(field);
      showFacets();
      byId("facets").querySelector(`[aria-label="${CSS.escape(nameOfField(field))}"] .link`)?.focus();
    }, { class: "link", "aria-label": `${rest > 0 ? `${rest} more` : "Fewer"} of ${nameOfField(field)}` }));
}

function choice(field, value, count) {
  const filter = filterOn(field);
  const isOut = filter.none_of.includes(value);
  const box = el("input", { type: "checkbox", "data-field": field, value, onchange: () => toggle(field, value, "any_of") });
  box.checked = filter.any_of.includes(value);
  return el("div", { class: isOut ? "choice out" : "choice" },
    el("label", {}, box, el("span", {}, value), el("small", {}, String(count || ""))),
    el("button", { type: "button", class: "not", "data-field": field, value, "aria-pressed": String(isOut), "aria-label": `Not ${value}`, title: `Not ${value}`,
      onclick: () => toggle(field, value, "none_of") }, "not"));
}

async function toggle(field, value, side) {
  const filter = filterOn(field);
  const other = side === "any_of" ? "none_of" : "any_of";
  const values = filter[side].includes(value) ? filter[side].filter((each) => each !== value) : [...filter[side], value];
  await change({ ...filter, [side]: values, [other]: filter[other].filter((each) => each !== value) });
  // The boxes were built anew: give the keyboard its place back.
  const kind = side === "any_of" ? "input" : "button";
  document.querySelector(`#facets ${kind}[data-field="${CSS.escape(field)}"][value="${CSS.escape(value)}"]`)?.focus();
}

function range(field, values) {
  const filter = filterOn(field);
  const end = (name, words, hint) => {
    const id = `${field}-${name}`;
    const box = el("input", { type: "number", step: "any", id, placeholder: hint, "aria-label": `${nameOfField(field)} ${words}`, value: filter[name] ?? null });
    box.addEventListener("change", () => {
      const changed = { ...filter, [name]: box.value === "" ? undefined : Number(box.value) };
      change(changed).then(() => byId(id)?.focus());
    });
    return box;
  };
  return el("div", { role: "group", "aria-label": nameOfField(field), class: "facet" }, el("h2", {}, nameOfField(field)),
    el("p", { class: "range" }, end("at_least", "at least", Math.min(...values)), el("span", {}, "to"), end("at_most", "at most", Math.max(...values))));
}

// ---- The filters of the question

const filterOn = (field) => current().filters.find((each) => each.field === field) ?? { field, any_of: [], none_of: [] };

function change(filter) {
  const others = current().filters.filter(({ field }) => field !== filter.field);
  return go({ filters: partsOf(filter).length ? [...others, filter] : others });
}

// What one filter says, each part with the way to take it back.
function partsOf(filter) {
  const { field, any_of = [], none_of = [] } = filter;
  const without = (side, value) => () => change({ ...filter, [side]: filter[side].filter((each) => each !== value) });
  return [
    ...any_of.map((value) => ({ words: value, drop: without("any_of", value) })),
    ...none_of.map((value) => ({ words: `not ${value}`, drop: without("none_of", value) })),
    ...LIMITS.filter(({ name }) => filter[name] !== undefined).map(({ name, words }) => (
      { words: `${nameOfField(field)} ${words} ${filter[name]}`, drop: () => change({ ...filter, [name]: undefined }) })),
  ];
}

export const wordsOfFilters = (filters) => filters.flatMap(partsOf).map(({ words }) => words);

export function showApplied() {
  const { filters, minProbability, rank } = current();
  const parts = filters.flatMap(partsOf);
  if (minProbability) parts.push({ words: `at least ${Math.round(minProbability * 100)} % likely`, drop: () => go({ minProbability: null }) });
  if (rank !== RANKS[0]) parts.push({ words: `ranked by ${RANK_WORDS[rank].toLowerCase()}`, drop: () => go({ rank: RANKS[0] }) });
  byId("active").replaceChildren(...parts.map(({ words, drop }) =>
    el("button", { type: "button", class: "chip", "aria-label": `Remove filter ${words}`, onclick: () => drop().then(() => byId("results-title").focus()) },
      words, el("small", { "aria-hidden": "true" }, "✕"))));
}

export const dropFilters = () => go({ filters: [], minProbability: null });
