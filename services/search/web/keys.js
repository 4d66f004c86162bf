// The keyboard: one key an action on the current row, and a dialog that says which.

import { byId, el } from "./dom.js";
import { accept, reject, undo } from "./feedback.js";
import { goToCompany } from "./links.js";
import { editNote } from "./notes.js";
import { chosenRow, moveRow, toggleDescription, toggleTick } from "./results.js";
import { addAnchor, addNegative } from "./row.js";

const OFF = "similarity-keys-off"; // localStorage: whoever speaks to their computer switches single keys off

export const areKeysOn = () => byId("keys-on").checked;

const onRow = (act) => () => { const row = chosenRow(); if (row) act(row); };

const KEYS = [
  { keys: ["j", "ArrowDown"], shown: "j ↓", words: "Next company", act: () => moveRow(1), isHeld: true },
  { keys: ["k", "ArrowUp"], shown: "k ↑", words: "Previous company", act: () => moveRow(-1), isHeld: true },
  { keys: ["a"], shown: "a", words: "Accept: it is a competitor", act: onRow(({ hit }) => accept(hit)) },
  { keys: ["r"], shown: "r", words: "Reject: it is not", act: onRow(({ hit }) => reject(hit)) },
  { keys: ["n"], shown: "n", words: "Note with the verdict", act: onRow(({ hit }) => editNote(hit)) },
  { keys: ["x"], shown: "x", words: "Select it, to judge several at once", act: onRow(toggleTick) },
  { keys: ["u"], shown: "u", words: "Undo the last verdict", act: undo },
  { keys: ["+", "="], shown: "+", words: "Look for more like it, too", act: onRow(({ hit }) => addAnchor(hit.company.id)) },
  { keys: ["-", "−"], shown: "−", words: "Look away from companies like it", act: onRow(({ hit }) => addNegative(hit.company.id)) },
  { keys: ["e"], shown: "e", words: "Whole description", act: onRow(toggleDescription) },
  { keys: ["Enter"], shown: "Enter", words: "Ask about it", act: onRow(({ hit }) => goToCompany(hit.company.id)) },
  { keys: ["/"], shown: "/", words: "Search", act: null },
  { keys: ["?"], shown: "?", words: "These keys", act: () => byId("help").showModal() },
];

export function startKeys({ search }) {
  KEYS.find(({ shown }) => shown === "/").act = search;
  byId("keys").replaceChildren(...KEYS.flatMap(({ shown, words }) => [
    el("dt", {}, ...shown.split(" ").map((key) => el("kbd", {}, key))), el("dd", {}, words)]));
  byId("keys-on").checked = localStorage.getItem(OFF) === null;
  byId("keys-on").addEventListener("change", ({ target }) => (target.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1")));
  byId("open-help").addEventListener("click", () => byId("help").showModal());
  document.addEventListener("keydown", onKey);
}

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  // The choice of how many is of digits: letters mean what they mean everywhere.
  if (event.target.matches("input:not([type=radio], [type=checkbox]), textarea, select:not(#k)")) return;
  const known = KEYS.find(({ keys }) => keys.includes(event.key));
  if (!known) return;
  const isPlain = event.key.length === 1;
  if (isPlain ? !areKeysOn() : !event.target.matches("#hits > li, #table-rows > tr")) return;
  event.preventDefault();
  if (!event.repeat || known.isHeld) known.act(); // a key held down is one verdict
}

// A dialog's own buttons, and a click beside it, close it.
export function startDialogs() {
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.querySelector(".close").addEventListener("click", () => dialog.close());
    dialog.addEventListener("mousedown", (event) => { if (event.target === dialog) dialog.close(); });
  }
}
