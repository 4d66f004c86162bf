// Shortlists: saved lists of companies. Which hits are on one, and a dialog that compares one with a ranking or a list.

import { ProblemError, ask, download, isKind } from "./ask.js";
import { button, byId, counted, el, say } from "./dom.js";
import { countOf, judgedFor } from "./feedback.js";
import { wordsOfFilters } from "./filters.js";
import { companyLink, siteLink } from "./links.js";
import { softly, toast } from "./problems.js";
import { nameOf } from "./question.js";
import { rowOf, shownHits } from "./results.js";
import { RANK_WORDS, current, go, requestFor } from "./state.js";

const COMPARED = 50; // hits of the ranking that a list is compared with
const RANKED = 250; // hits that have a rank there (MAX_HITS of the service)
const MOST_ROWS = 200; // of one part of the dialog
const pathOf = (name) => `/lists/${encodeURIComponent(name)}`;

let shortlists = new Map(); // ids by name
let shown = null; // {name, other}: the list in the dialog, and the list that it is compared with

export const isShortlist = (name) => shortlists.has(name);
export const namesOfShortlists = () => [...shortlists.keys()];

// Of all saved lists, those that hold companies. Among all lists the ids of a long one are left out.
export async function keepShortlists(lists) {
  const found = lists.filter(({ size }) => typeof size === "number");
  const whole = await Promise.all(found.map((list) => (list.companies ? list : ask(pathOf(list.name)).catch(unread(list)))));
  shortlists = new Map(whole.filter(Boolean).map(({ name, companies }) => [name, new Set(companies)]));
  markListed();
  if (byId("shortlist").open) showChoices(); // the page may open the list in its address before it has read all lists
}

// One list that cannot be read hides no other; it is a list all the same, unless it is gone.
const unread = (list) => (error) => {
  if (!(error instanceof ProblemError)) throw error;
  return isKind(error, "unknown-list") ? null : { ...list, companies: [] };
};

export const readShortlists = async () => keepShortlists((await ask("/lists")).lists);

// ---- Beside the ranking

const acceptedHits = () => shownHits().map(({ company }) => company.id).filter((id) => countOf([id]).accepted);

// The lists that each hit is on, and how many accepted hits can be added to one.
export function markListed() {
  for (const { company } of shownHits()) {
    const title = rowOf(company.id).node.querySelector(".title");
    const names = [...shortlists.keys()].filter((name) => shortlists.get(name).has(company.id));
    title?.querySelector(".listed")?.remove();
    if (names.length) title?.append(el("span", { class: "site listed" }, `on ${names.map((name) => `“${name}”`).join(", ")}`));
  }
  const count = acceptedHits().length;
  byId("add-to-list").hidden = byId("save").hidden || !count;
  byId("add-to-list").textContent = `Add ${counted(count, "accepted company", "accepted companies")} to a list`;
}

// Adds to a shortlist that holds the ids `listed`, or begins one. Returns how to take that back, and in which words it was done.
export async function addToShortlist(name, companies, listed) {
  if (!listed) {
    await ask(pathOf(name), { method: "PUT", body: { companies } });
    const undo = async () => {
      const { size } = await change(name, { remove: companies }); // others may have added to it
      if (!size) await ask(pathOf(name), { method: "DELETE" });
    };
    return { words: `${counted(companies.length, "company", "companies")} saved as “${name}”.`, undo };
  }
  const added = companies.filter((id) => !listed.includes(id));
  await change(name, { add: added });
  return { words: `${counted(added.length, "company", "companies")} added to “${name}”.`, undo: () => change(name, { remove: added }) };
}

const change = (name, body) => ask(`${pathOf(name)}/companies`, { body });

// ---- One list

export const openShortlist = softly(async (name, other = "") => {
  shown = { name, other };
  const compared = other ? await besideList(name, other) : await besideRanking(name) ?? await alone(name);
  byId("shortlist-title").textContent = name;
  byId("shortlist-about").textContent = compared.words;
  byId("shortlist-parts").replaceChildren(...compared.parts.filter(({ members }) => members.length).map(partNode));
  showChoices();
  const dialog = byId("shortlist");
  if (!dialog.open) dialog.showModal();
  say(`${name}: ${byId("shortlist-about").textContent}`);
});

async function alone(name) {
  const { companies } = await ask(`${pathOf(name)}/companies`);
  return {
    words: "Ask about a company to see where these stand in its ranking.",
    parts: [{ title: counted(companies.length, "company", "companies"), members: companies, isOn: true }],
  };
}

async function besideList(name, other) {
  const { in_both, only_here, only_there } = await ask(`${pathOf(name)}/compare`, { params: { other } });
  return {
    words: `Beside the list “${other}”`,
    parts: [
      { title: "On both lists", members: in_both, isOn: true },
      { title: "Only on this list", members: only_here, isOn: true },
      { title: `Only on “${other}”`, members: only_there, isOn: false },
    ],
  };
}

// The list beside the ranking of the page. Only the exclusion of this list is left out: it would hide what is compared.
// null where the page has no ranking.
async function besideRanking(name) {
  if (!current().anchors.length) return null;
  try {
    return await rankedAsOnPage(name);
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    return null;
  }
}

async function rankedAsOnPage(name) {
  const question = { ...current(), k: RANKED, excludeLists: current().excludeLists.filter((each) => each !== name) };
  const { path, params, body } = requestFor("/similar", question, { reasons: 0, fields: "name,domain" });
  const [{ companies }, found] = await Promise.all([ask(`${pathOf(name)}/companies`), ask(path, { params, body })]);
  const hitOf = new Map(found.hits.flatMap((hit) => [hit.company.id, ...hit.duplicates].map((id) => [id, hit])));
  const members = companies.map((company) => ranked(company, hitOf.get(company.id))).sort((one, other) => (one.rank ?? Infinity) - (other.rank ?? Infinity));
  const [asked, unlike] = [found.anchors, found.negatives].map((each) => new Set(each.flatMap(({ company, duplicates }) => [company?.id, ...duplicates])));
  const others = members.filter(({ id, rank }) => !rank && !asked.has(id) && !unlike.has(id));
  const listed = new Set(members.map(({ rank }) => rank));
  return {
    words: `Beside the first ${COMPARED} ${wordsFor(found, question)}`,
    parts: [
      { title: "On the list and in the ranking", members: members.filter(({ rank }) => rank && rank <= COMPARED), isOn: true },
      { title: "On the list, further down in the ranking", members: members.filter(({ rank }) => rank > COMPARED), isOn: true },
      { title: `On the list, not among the first ${RANKED}`, members: others, isOn: true },
      { title: "On the list: the company you ask about", members: members.filter(({ id }) => asked.has(id)), isOn: true },
      { title: "On the list: the company you look away from", members: members.filter(({ id }) => unlike.has(id)), isOn: true },
      { title: "In the ranking, not on the list", members: found.hits.filter(({ rank }) => rank <= COMPARED && !listed.has(rank)).map((hit) => ranked(hit.company, hit)), isOn: false },
    ],
  };
}

// The question of the page in one line: whose competitors these are.
function wordsFor({ anchors, negatives }, { filters, exclude, excludeLists, minProbability, rank }) {
  const names = (some) => some.map(nameOf).join(" + ");
  return [
    anchors.some(({ company }) => company) ? `competitors of ${names(anchors)}` : "companies like your description",
    negatives.length && `unlike ${names(negatives)}`,
    ...wordsOfFilters(filters),
    exclude.length && `without ${counted(exclude.length, "company", "companies")}`,
    excludeLists.length && `without the lists ${excludeLists.map((each) => `“${each}”`).join(", ")}`,
    minProbability && `at least ${Math.round(minProbability * 100)} % likely`,
    `ranked by ${RANK_WORDS[rank].toLowerCase()}`,
  ].filter(Boolean).join(", ");
}

const ranked = (company, hit) => ({ ...company, rank: hit?.rank ?? null, score: hit?.score ?? null, probability: hit?.probability ?? null });

function partNode({ title, members, isOn }) {
  const isRanked = members.some(({ rank }) => rank !== null);
  const isCalibrated = members.some(({ probability }) => probability !== null);
  const head = ["Company", ...(isRanked ? ["Rank", isCalibrated ? "Likely competitor" : "Cosine"] : [])].map((word) => el("th", { scope: "col" }, word));
  const rest = members.length - MOST_ROWS;
  return el("section", {}, el("h3", {}, `${title} `, el("small", {}, String(members.length))),
    el("table", {}, el("thead", {}, el("tr", {}, head, el("th", { scope: "col" }, el("span", { class: "hidden" }, isOn ? "Remove" : "Add")))),
      el("tbody", {}, members.slice(0, MOST_ROWS).map((member) => memberRow(member, isOn, isRanked)))),
    rest > 0 && el("p", { class: "note" }, `and ${rest.toLocaleString("en")} more, which the downloads have`));
}

function memberRow(member, isOn, isRanked) {
  const { id, name, domain, deleted, rank, score, probability } = member;
  const words = name || id;
  const match = score === null ? "" : probability === null ? `cosine ${score.toFixed(2)}` : `${Math.round(probability * 100)} % likely`;
  const label = isOn ? `Remove ${words} from the list` : `Add ${words} to the list`;
  const act = softly(async () => {
    await change(shown.name, isOn ? { remove: [id] } : { add: [id] });
    await openShortlist(shown.name, shown.other);
    byId("shortlist-title").focus();
    await readShortlists();
  });
  return el("tr", { class: deleted ? "missed" : null },
    el("td", {}, deleted ? [id, el("small", {}, " no longer in the index")] : [companyLink(member, "name", words), " ", siteLink(domain, "site")]),
    isRanked && [el("td", {}, rank ? String(rank) : ""), el("td", {}, match)],
    el("td", {}, button(isOn ? "✕" : "Add", act, { "aria-label": label, title: label, class: "quiet icon" })));
}

function showChoices() {
  const others = [...shortlists.keys()].filter((name) => name !== shown.name);
  byId("shortlist-other").replaceChildren(el("option", { value: "" }, "the ranking"),
    ...others.map((name) => el("option", { value: name, selected: name === shown.other }, name)));
  byId("shortlist-other").parentElement.hidden = !others.length;
  const isExcluded = current().excludeLists.includes(shown.name);
  byId("shortlist-exclude").disabled = !current().anchors.length;
  byId("shortlist-exclude").textContent = isExcluded ? "No longer exclude" : "Exclude from the ranking";
}

function excludeShown() {
  const { name } = shown;
  const { excludeLists } = current();
  byId("shortlist").close();
  go({ excludeLists: excludeLists.includes(name) ? excludeLists.filter((each) => each !== name) : [...excludeLists, name] })
    .then(() => byId("results-title").focus());
}

// The service ranks a list for the file by one company alone; whose ranks they are is said.
const downloadShown = (format) => softly(async () => {
  const company = current().anchors.find((each) => each.company)?.company;
  const params = company ? { format, company, rank: current().rank } : { format };
  await download(`${pathOf(shown.name)}/companies`, { params, name: `list.${format}` });
  toast(`“${shown.name}” downloaded.${company && !isPlain(current()) ? ` Its ranks are those among the competitors of ${judgedFor()?.name ?? company} alone, without the rest of the question.` : ""}`);
});

const isPlain = ({ anchors, negatives, filters, exclude, excludeLists, minProbability }) =>
  anchors.length === 1 && !anchors[0].segment && !minProbability && [negatives, filters, exclude, excludeLists].every((each) => !each.length);

export function startShortlists({ add }) {
  byId("add-to-list").addEventListener("click", () => add(acceptedHits()));
  byId("shortlist-other").addEventListener("change", ({ target }) => openShortlist(shown.name, target.value));
  byId("shortlist-exclude").addEventListener("click", excludeShown);
  byId("shortlist-csv").addEventListener("click", downloadShown("csv"));
  byId("shortlist-xlsx").addEventListener("click", downloadShown("xlsx"));
  byId("shortlist-parts").addEventListener("click", ({ target, metaKey, ctrlKey, shiftKey }) => {
    if (target.closest("a.name") && !metaKey && !ctrlKey && !shiftKey) byId("shortlist").close();
  });
}
