// Where a company is in the ranking, and why: its rank however deep, or what removes it.

import { ProblemError, ask, isKind } from "./ask.js";
import { button, byId, counted, el, say } from "./dom.js";
import { showVerdict, verdictButtons } from "./feedback.js";
import { nameOfField } from "./attributes.js";
import { companyLink, facts, siteLink } from "./links.js";
import { nameOf, readNames } from "./names.js";
import { softly } from "./problems.js";
import { because } from "./reasons.js";
import { goToRow, rowOf } from "./results.js";
import { anchorButtons, match, percent } from "./row.js";
import { current, go, questionOf } from "./state.js";

const LAST_RANK = 1000;
const BY_QUESTION = ["exclude", "filter", "min_probability"]; // what can be changed, and the company then has a rank

let shown = null; // what was located last

export function startLocating() {
  byId("locate").addEventListener("submit", (event) => {
    event.preventDefault();
    const typed = byId("where").value.trim();
    if (typed) locate(typed);
  });
}

export function clearLocated() {
  shown = null;
  byId("where").value = "";
  byId("located").replaceChildren();
}

export function showLocatedVerdict() {
  if (shown) showVerdict(byId("located"), shown.company.id);
}

async function find(company, state) {
  const { k, ...question } = questionOf(state);
  return ask("/similar/locate", { body: { ...question, company } });
}

const locate = softly(async (typed) => {
  const state = current();
  let found;
  try {
    found = await find(typed, state);
  } catch (error) {
    if (!isKind(error, "unknown-company", "contested-name")) throw error;
    return showCandidates(error.problem);
  }
  const canBeChanged = found.removed_by.length > 0 && found.removed_by.every(({ by }) => BY_QUESTION.includes(by));
  const free = canBeChanged ? await find(found.company.id, { ...state, filters: [], exclude: [], minProbability: null }) : null;
  await readNames(found.removed_by.map((each) => each.company).filter((id) => id && !rowOf(id)));
  if (state === current()) show(found, free);
  return null;
});

function showCandidates({ title, detail, candidates, suggestions = [] }) {
  shown = null;
  fill(el("p", {}, el("strong", {}, title), ": ", detail),
    el("p", { class: "chips" }, ...(candidates ?? suggestions).map(({ id, name }) => button(name, () => locate(id), { class: "chip" }))));
}

function show(found, free) {
  shown = found;
  const { company, rank } = found;
  const isItself = found.removed_by.some((each) => each.by === "anchor" && each.company === company.id); // no competitor, whatever its cosine
  const words = [...placeOf(found), ...found.removed_by.map(wordsFor), ...(free ? placeOf(free).map((each) => `Without ${withoutWhat(found)}: ${each}`) : [])];
  fill(
    el("div", { class: "located-head" },
      el("p", { class: "title" }, companyLink(company, "name", company.name), siteLink(company.domain, "site"), el("span", { class: "site" }, facts(company))),
      ...(isItself ? [] : [match(found), el("span", { class: "verdicts" }, ...verdictButtons(found)), el("span", {}, ...anchorButtons(company))])),
    ...words.map((each) => el("p", {}, each)),
    el("p", { class: "because" }, ...((!isItself && because({ ...found })) || [])),
    ...found.warnings.map((each) => el("p", { class: "note" }, each)),
    rank && el("p", {}, whereToLook(company.id, rank)));
  showLocatedVerdict();
  say(`${company.name}: ${words.join(" ")}`);
}

function fill(...parts) {
  byId("located").replaceChildren(el("section", { class: "located", "aria-label": "Where it is in this ranking" },
    button("✕", () => { clearLocated(); byId("where").focus(); }, { class: "quiet icon", "aria-label": "Close" }), ...parts));
}

// Its place in words; none where something removes it.
function placeOf({ rank, nearer, removed_by, approximate }) {
  if (removed_by.length) return [];
  if (rank) return [`Rank ${rank.toLocaleString("en")}.`];
  if (nearer === null) return [`Beyond rank ${LAST_RANK.toLocaleString("en")}, where the ranking ends.`];
  const others = `${counted(nearer, "company is", "companies are")} nearer`;
  if (approximate && nearer < LAST_RANK) return [`No rank: the approximate search leaves it out, though only ${others}.`];
  return [`Beyond rank ${LAST_RANK.toLocaleString("en")}, where the ranking ends: ${others}.`];
}

const withoutWhat = ({ removed_by }) => [...new Set(removed_by.map(({ by }) => ({ exclude: "exclusions", filter: "filters", min_probability: "the minimum" })[by]))].join(" and ");

function wordsFor({ by, company, field }) {
  const same = company && company !== shown.company.id ? `It counts as the same company as ${nameIn(company)} (same website or text), which ` : "";
  const own = (words) => (same ? `${same}${words}.` : `It ${words}.`);
  if (by === "anchor") return same ? own("is what you ask about") : "This is the company that you ask about: it has no rank in its own ranking.";
  if (by === "negative") return same ? own("you look away from") : "You look away from it.";
  if (by === "exclude") return same ? own("you exclude") : "You exclude it.";
  if (by === "duplicate") return `Folded into ${nameIn(company)}: the same company, by website or text.`;
  if (by === "filter") return `Removed by the filter on ${nameOfField(field).toLowerCase()}: it has ${valueIn(field)}.`;
  return `Removed by the minimum probability: ${percent(shown.probability)} is below ${percent(current().minProbability)}.`;
}

const nameIn = (id) => rowOf(id)?.hit.company.name ?? nameOf(id);

function valueIn(field) {
  const { company } = shown;
  const value = field.startsWith("attributes.") ? company.attributes[field.slice("attributes.".length)] : company[field];
  return [value].flat().filter((each) => each !== undefined && each !== "").join(", ") || "none";
}

function whereToLook(id, rank) {
  const row = rowOf(id);
  if (row) return button("Go to its row", () => goToRow(row), { class: "link" });
  const k = [...byId("k").options].map(({ text }) => Number(text)).filter((each) => each >= rank).sort((one, other) => one - other)[0];
  return k && button(`Show the first ${k}`, async () => { await go({ k }); goToRow(rowOf(id)); }, { class: "link" });
}
