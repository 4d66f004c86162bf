// The order of the rows that are shown. The service ranks; this only arranges what has come.

import { isOrdinal, levelOf, nameOfField } from "./attributes.js";
import { current } from "./state.js";

const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
const TEXTS = ["name", "country", "industry", "domain"];

const isAttribute = (key) => key.startsWith("attributes.");

export function valueOf(hit, key) {
  if (key === "rank" || key === "probability" || key === "score") return hit[key];
  if (!isAttribute(key)) return hit.company[key];
  return hit.company.attributes?.[key.slice("attributes.".length)];
}

// What is compared: a number, or a word; null where it is missing.
function comparable(hit, key) {
  const value = valueOf(hit, key);
  if (value === undefined || value === null || value === "") return null;
  return isAttribute(key) && isOrdinal(key) ? levelOf(key, value) : value;
}

// Texts and ranks begin with the first, numbers and sizes with the largest; "-" before the key turns that round.
const beginsLow = (hits, key) => key === "rank" || TEXTS.includes(key) || (isAttribute(key) && !isOrdinal(key) && !isNumeric(hits, key));

const isNumeric = (hits, key) => hits.map((hit) => comparable(hit, key)).every((value) => value === null || typeof value === "number");

export const sortKey = () => current().sort.replace(/^-/, "") || "rank";
export const isReversed = () => current().sort.startsWith("-");

export function isAscending(hits) {
  return beginsLow(hits, sortKey()) !== isReversed();
}

export function sorted(rows) {
  const key = sortKey();
  const sign = isAscending(rows.map(({ hit }) => hit)) ? 1 : -1;
  if (key === "rank") return sign > 0 ? rows : [...rows].reverse();
  const compare = (one, other) => (typeof one === "number" && typeof other === "number" ? one - other : words.compare(String(one), String(other)));
  return rows.map((row) => ({ row, value: comparable(row.hit, key) }))
    .sort((one, other) => (one.value === null) - (other.value === null) || (one.value === null ? 0 : sign * compare(one.value, other.value)) || one.row.hit.rank - other.row.hit.rank)
    .map(({ row }) => row);
}

export const attributeKeys = (hits) => [...new Set(hits.flatMap(({ company }) => Object.keys(company.attributes ?? {})))].sort().map((name) => `attributes.${name}`);

// By cosine only where that is another order. The rank is the order of the probability already.
export function sortOptions(hits) {
  const differs = hits.some(({ score }, place) => place > 0 && score > hits[place - 1].score);
  return ["rank", ...(differs || sortKey() === "score" ? ["score"] : []), "name", "country", "industry", ...attributeKeys(hits)]
    .map((key) => ({ key, label: labelOf(key) }));
}

const LABELS = { rank: "Rank", probability: "Likely", score: "Cosine", name: "Name", country: "Country", industry: "Industry", domain: "Website", tags: "Tags", verdict: "Competitor?", note: "Note" };

export const labelOf = (key) => (Object.hasOwn(LABELS, key) ? LABELS[key] : nameOfField(key));
