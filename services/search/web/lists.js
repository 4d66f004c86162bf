// Saved lists: a question with a name, and which of its hits are new since one last looked; or companies (shortlists.js).

import { ProblemError, ask, isKind, isMissing } from "./ask.js";
import { button, byId, counted, el, say } from "./dom.js";
import { nameOf, readNames } from "./names.js";
import { softly, toast } from "./problems.js";
import { addToShortlist, keepShortlists, namesOfShortlists, openShortlist, readShortlists } from "./shortlists.js";
import { current, go, note, questionOf, stateOf } from "./state.js";

const pathOf = (name) => `/lists/${encodeURIComponent(name)}`;
const OF_QUESTION = "A list keeps the question: companies, filters and exclusions. Open it later to see which hits are new.";
const OF_COMPANIES = "A list of companies can be excluded, downloaded and compared. Type a new name, or choose a list to add to it.";
const MOST_NAMED = 3; // companies of a list's question
let saving = null; // what the dialog is to save: a question, or {companies}
let agreed = null; // the name of a list that may be replaced
let last = null; // {name, about}: what was saved last, and about which companies or words

export async function lookForLists() {
  try {
    const { lists } = await ask("/lists");
    for (const id of ["open-lists", "save"]) byId(id).hidden = false;
    await keepShortlists(lists);
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
  }
}

// An address that only names a list: its question. A list of companies has none: it is opened, and false returned.
export async function questionOfList(name, signal) {
  const { question } = await ask(pathOf(name), { signal });
  note(question ? { ...stateOf(question), list: name } : { list: "" });
  if (!question) await openShortlist(name);
  return Boolean(question);
}

export async function newSinceLook(name, signal) {
  try {
    const fresh = await newHits(name, signal);
    if (fresh.length) {
      toast(`${counted(fresh.length, "company is", "companies are")} new on “${name}”.`, { label: "Mark as seen", act: () => markAsSeen(name) });
    }
    return fresh;
  } catch (error) {
    if (!isMissing(error)) throw error;
    return [];
  }
}

async function newHits(name, signal) {
  const { hits } = await ask(`${pathOf(name)}/hits`, { params: { reasons: 0 }, signal });
  return hits.filter((hit) => hit.new).map(({ company }) => company.id);
}

const look = (name) => ask(`${pathOf(name)}/looked`, { body: {} });

const markAsSeen = softly(async (name) => {
  await look(name);
  for (const each of document.querySelectorAll("#hits .new")) each.hidden = true;
  say("Marked as seen");
});

// ---- Saving

export function openSaving(question = null) {
  saving = question ?? questionOf(current());
  showSaving("Save this question as a list", OF_QUESTION);
  // The same list again only for the same companies: Enter would replace what everybody sees under that name.
  byId("list-name").value = (!question && current().list) || (last?.about === aboutOf(saving) ? last.name : "");
  byId("list-name").select();
}

// The lists of companies that there are, to be chosen by a click.
function showExisting() {
  const choose = (name) => () => { byId("list-name").value = name; askNothing(); byId("list-name").focus(); };
  byId("existing").replaceChildren(...namesOfShortlists().map((name) => button(name, choose(name), { class: "chip" })));
}

export function openSavingCompanies(companies) {
  saving = { companies };
  showSaving(`Add ${counted(companies.length, "company", "companies")} to a list`, OF_COMPANIES);
  showExisting();
  byId("list-name").value = "";
}

function showSaving(title, words) {
  byId("saving-title").textContent = title;
  byId("saving-note").textContent = words;
  askNothing();
  byId("existing").replaceChildren();
  byId("saving").showModal();
  byId("list-name").focus();
}

function askNothing() {
  agreed = null;
  byId("saving-error").textContent = "";
  byId("saving").querySelector(".primary").textContent = "Save";
}

// All users share a list, so what it holds is replaced only by a second press. Companies are added to a list of companies.
function mayReplace(name, list, hasAgreed) {
  const isKept = saving.companies ? list?.companies : list?.question && isSame(list.question, saving);
  if (!list || isKept || hasAgreed) return true;
  agreed = name;
  const replacing = saving.companies ? counted(saving.companies.length, "company", "companies") : "this question";
  byId("saving-error").textContent = list.companies
    ? `“${name}” is a list of ${counted(list.companies.length, "company", "companies")}. Replace it with ${replacing}? Links and lists that exclude it no longer work then. Or choose another name.`
    : `“${name}” is the saved list of a question. Replace it with ${replacing}? Or choose another name.`;
  byId("saving").querySelector(".primary").textContent = "Replace it";
  return false;
}

async function save(event) {
  event.preventDefault();
  const name = byId("list-name").value.trim();
  if (!name) return;
  const hasAgreed = agreed === name; // before anything is waited for: Enter pressed twice is no answer
  if (saving.companies) {
    await saveCompanies(name, hasAgreed);
    return;
  }
  let before;
  try {
    before = await listBefore(name);
    if (!mayReplace(name, before, hasAgreed)) return;
    await ask(pathOf(name), { method: "PUT", body: { question: saving } });
    await look(name);
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    byId("saving-error").textContent = `${error.problem.title}: ${error.problem.detail}`;
    return;
  }
  last = { name, about: aboutOf(saving) };
  byId("saving").close();
  byId("paste").close();
  const saved = stateOf(saving);
  if (JSON.stringify(saved.anchors) === JSON.stringify(current().anchors)) note({ list: name });
  else await go({ ...saved, list: name });
  toast(`Saved as “${name}”.`);
  say(`Saved as ${name}`);
  if (before?.companies) await readShortlists();
}

async function saveCompanies(name, hasAgreed) {
  let before;
  let done;
  try {
    before = await listBefore(name); // others may have saved it since this page was opened
    if (!mayReplace(name, before, hasAgreed)) return;
    done = await addToShortlist(name, saving.companies, before?.companies);
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    byId("saving-error").textContent = `${error.problem.title}: ${error.problem.detail}`;
    return;
  }
  byId("saving").close();
  byId("paste").close();
  await readShortlists();
  await openShortlist(name);
  const undo = softly(async () => {
    byId("shortlist").close();
    await done.undo();
    await readShortlists();
  });
  toast(done.words, before?.question ? null : { label: "Undo", act: undo });
}

// As the service keeps them: with ids and with what is there by default.
const isSame = (one, other) => JSON.stringify(stateOf(one)) === JSON.stringify(stateOf(other));

const aboutOf = ({ anchors }) => JSON.stringify(anchors.map(({ company, text, segment }) => [company ?? text, segment]));

async function listBefore(name) {
  try {
    return await ask(pathOf(name));
  } catch (error) {
    if (!isKind(error, "unknown-list")) throw error;
    return null;
  }
}

// ---- All lists

export const openLists = softly(async () => {
  const { lists } = await ask("/lists");
  await keepShortlists(lists);
  const none = el("li", { class: "nothing" }, "No list yet. Ask for something, then “Save list”.");
  byId("all-lists").replaceChildren(...(lists.length ? lists.map(listItem) : [none]));
  if (!byId("lists").open) byId("lists").showModal();
  await Promise.all([countNew(), nameAll(lists)]);
});

function listItem(list) {
  const open = softly(async () => {
    byId("lists").close();
    if (list.size !== null) return openShortlist(list.name);
    const { question } = await whole(list);
    return go({ ...stateOf(question), list: list.name });
  });
  const fresh = el("span", { class: "new", "data-list": list.name, hidden: true });
  return el("li", {},
    el("div", {}, button(list.name, open, { class: "link name" }), fresh, el("p", { class: "note", "data-about": list.name }, summary(list))),
    button("Delete", () => remove(list), { "aria-label": `Delete ${list.name}` }));
}

// Among all lists a long question is left out; the list itself has it.
const whole = (list) => (list.question ? list : ask(pathOf(list.name)));

// The names come at once; what is new on them takes a question each, all asked with one request.
const countNew = softly(async () => {
  const { lists } = await ask("/lists", { params: { new: true } });
  const counts = new Map(lists.map((list) => [list.name, list.new]));
  for (const place of byId("all-lists").querySelectorAll("[data-list]")) {
    const count = counts.get(place.dataset.list);
    place.textContent = `${count} new`;
    place.hidden = !count;
  }
});

// The ids come at once; their names take a request each.
const nameAll = softly(async (lists) => {
  await readNames(lists.flatMap(({ question }) => [question?.anchors ?? [], question?.negatives ?? []].flatMap((asked) => asked.slice(0, MOST_NAMED)))
    .map(({ company }) => company).filter(Boolean));
  for (const list of lists) {
    const place = byId("all-lists").querySelector(`[data-about="${CSS.escape(list.name)}"]`);
    if (place) place.textContent = summary(list);
  }
});

function namesOf(asked) {
  const name = ({ company, text, segment }) =>
    (company ? `${nameOf(company)}${segment ? ` (line of business ${segment})` : ""}` : `“${text.slice(0, 40)}”`);
  const names = asked.slice(0, MOST_NAMED).map(name).join(" + ");
  return asked.length > MOST_NAMED ? `${names} and ${asked.length - MOST_NAMED} more` : names;
}

function summary({ question, size, saved_at, saved_by }) {
  const saved = `saved ${saved_at.slice(0, 10)} by ${saved_by}`;
  if (size !== null) return `${counted(size, "company", "companies")} · ${saved}`;
  if (!question) return saved;
  const parts = [namesOf(question.anchors)];
  if (question.negatives?.length) parts.push(`unlike ${namesOf(question.negatives)}`);
  if (question.filters?.length) parts.push(counted(question.filters.length, "filter"));
  if (question.exclude?.length) parts.push(`${question.exclude.length} excluded`);
  if (question.exclude_lists?.length) parts.push(`without ${question.exclude_lists.map((each) => `“${each}”`).join(", ")}`);
  return [...parts, saved].join(" · ");
}

const remove = softly(async (list) => {
  if (!confirm(`Delete “${list.name}” for everybody?`)) return;
  await ask(pathOf(list.name), { method: "DELETE" });
  say(`${list.name} deleted`);
  if (current().list === list.name) note({ list: "" });
  await openLists();
});

export function startLists() {
  byId("open-lists").addEventListener("click", openLists);
  byId("save").addEventListener("click", () => openSaving());
  byId("saving").querySelector("form").addEventListener("submit", save);
  byId("list-name").addEventListener("input", askNothing);
}
