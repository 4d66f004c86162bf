// Saved lists: a question with a name, and which of its hits are new since one last looked.

import { ProblemError, ask, isKind, isMissing } from "./ask.js";
import { button, byId, counted, el, say } from "./dom.js";
import { softly, toast } from "./problems.js";
import { current, go, note, questionOf, stateOf } from "./state.js";

const pathOf = (name) => `/lists/${encodeURIComponent(name)}`;
let saving = null; // what the dialog is to save: a question
let last = null; // {name, about}: what was saved last, and about which companies or words

export async function lookForLists() {
  try {
    await ask("/lists");
    for (const id of ["open-lists", "save"]) byId(id).hidden = false;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
  }
}

// An address that only names a list: its question.
export async function questionOfList(name, signal) {
  const { question } = await ask(pathOf(name), { signal });
  note({ ...stateOf(question), list: name });
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
  byId("saving-error").textContent = "";
  // The same list again only for the same companies: Enter would replace what everybody sees under that name.
  byId("list-name").value = (!question && current().list) || (last?.about === aboutOf(saving) ? last.name : "");
  byId("saving").showModal();
  byId("list-name").select();
}

async function save(event) {
  event.preventDefault();
  const name = byId("list-name").value.trim();
  if (!name) return;
  let replaced;
  let kept;
  try {
    replaced = await questionBefore(name);
    kept = (await ask(pathOf(name), { method: "PUT", body: { question: saving } })).question;
    await look(name);
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    byId("saving-error").textContent = `${error.problem.title}. ${error.problem.detail}`;
    return;
  }
  last = { name, about: aboutOf(saving) };
  byId("saving").close();
  byId("paste").close();
  const saved = stateOf(saving);
  if (JSON.stringify(saved.anchors) === JSON.stringify(current().anchors)) note({ list: name });
  else await go({ ...saved, list: name });
  if (replaced && !isSame(replaced, kept)) {
    toast(`Saved as “${name}”, in place of another question.`, { label: "Undo", act: () => putBack(name, replaced) });
  } else toast(`Saved as “${name}”.`);
  say(`Saved as ${name}`);
}

// As the service keeps them: with ids and with what is there by default.
const isSame = (one, other) => JSON.stringify(stateOf(one)) === JSON.stringify(stateOf(other));

const aboutOf = ({ anchors }) => JSON.stringify(anchors.map(({ company, text }) => company ?? text));

async function questionBefore(name) {
  try {
    return (await ask(pathOf(name))).question;
  } catch (error) {
    if (!isKind(error, "unknown-list")) throw error;
    return null;
  }
}

const putBack = softly(async (name, question) => {
  await ask(pathOf(name), { method: "PUT", body: { question } });
  if (current().list === name) note({ list: "" });
  say(`${name} restored`);
});

// ---- All lists

const openLists = softly(async () => {
  const { lists } = await ask("/lists");
  const none = el("li", { class: "nothing" }, "No list yet. Ask for something, then “Save list”.");
  byId("all-lists").replaceChildren(...(lists.length ? lists.map(listItem) : [none]));
  if (!byId("lists").open) byId("lists").showModal();
  await countNew();
});

function listItem(list) {
  const open = softly(async () => {
    const { question } = await whole(list);
    byId("lists").close();
    await go({ ...stateOf(question), list: list.name });
  });
  const fresh = el("span", { class: "new", "data-list": list.name, hidden: true });
  return el("li", {},
    el("div", {}, button(list.name, open, { class: "link name" }), fresh, el("p", { class: "note" }, summary(list))),
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

function summary({ question, saved_at, saved_by }) {
  const saved = `saved ${saved_at.slice(0, 10)} by ${saved_by}`;
  if (!question) return saved;
  const names = question.anchors.map(({ company, text }) => company ?? `“${text.slice(0, 40)}”`);
  const parts = [names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ")];
  if (question.filters?.length) parts.push(counted(question.filters.length, "filter"));
  if (question.exclude?.length) parts.push(`${question.exclude.length} excluded`);
  return [...parts, saved].join(" · ");
}

const remove = softly(async (list) => {
  const { question } = await whole(list);
  await ask(pathOf(list.name), { method: "DELETE" });
  toast(`“${list.name}” deleted.`, { label: "Undo", act: () => putBack(list.name, question) });
  if (current().list === list.name) note({ list: "" });
  await openLists();
});

export function startLists() {
  byId("open-lists").addEventListener("click", openLists);
  byId("save").addEventListener("click", () => openSaving());
  byId("saving").querySelector("form").addEventListener("submit", save);
}
