// Notes: a few words with a verdict. A note is part of the verdict and is taken back with it.

import { byId, el } from "./dom.js";
import { noteOf, saveNote, verdictOf } from "./feedback.js";
import { toast } from "./problems.js";

let noted = null; // the hit whose note the dialog is about

export function startNotes() {
  byId("noting").querySelector("form").addEventListener("submit", () => saveNote(noted, byId("note").value.trim()));
  byId("note").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      byId("noting").querySelector(".primary").click();
    }
  });
}

export function editNote(hit) {
  const { id, name } = hit.company;
  if (!verdictOf(id)) return toast(`Accept or reject ${name} first: a note belongs to a verdict.`);
  noted = hit;
  byId("noting-title").textContent = `Note on ${name}`;
  byId("note").value = noteOf(id);
  byId("noting").showModal();
  return byId("note").focus();
}

export const noteLine = (hit) => el("p", { class: "noted" }, el("span", { class: "hidden" }, "Note: "), el("span", { class: "noted-words" }, noteOf(hit.company.id)));

export const noteButton = (hit) => el("button", { type: "button", class: "small note-button", title: "A note with the verdict (n)",
  "aria-label": `Note on ${hit.company.name}`, onclick: () => editNote(hit) }, "✎ note");
