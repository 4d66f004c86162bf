// Search as you type: an ARIA combobox over GET /companies.

import { ProblemError, ask } from "./ask.js";
import { byId, el } from "./dom.js";
import { facts, goToCompany } from "./links.js";
import { showProblem } from "./problems.js";
import { recentSearches } from "./recent.js";
import { visit } from "./state.js";

const PAUSE = 90; // milliseconds between the last key and the question

let options = []; // {act, parts}: what choosing it does, and what it shows
let active = -1;
let typing = new AbortController();
let timer = 0;

const box = () => byId("search");

export function startCombobox() {
  box().addEventListener("input", suggest);
  box().addEventListener("keydown", onKey);
  box().addEventListener("blur", closeOptions);
  box().addEventListener("click", suggestRecent);
}

export function submitCombobox() {
  const typed = box().value.trim();
  if (active >= 0) options[active].act();
  else if (typed) goToCompany(typed);
}

export function closeOptions() {
  clearTimeout(timer);
  typing.abort();
  options = [];
  active = -1;
  byId("options").hidden = true;
  box().setAttribute("aria-expanded", "false");
  box().removeAttribute("aria-activedescendant");
}

function suggest() {
  clearTimeout(timer);
  typing.abort();
  const q = box().value.trim();
  if (q) timer = setTimeout(() => find(q), PAUSE);
  else closeOptions();
}

// An empty box offers what was asked before.
function suggestRecent() {
  if (box().value.trim() || !byId("options").hidden) return;
  const recent = recentSearches();
  if (recent.length) openOptions(recent.map(({ title, address }) => ({ act: () => visit(address), parts: [el("span", {}, title), el("span", { class: "where" }, "recent")] })));
}

async function find(q) {
  typing = new AbortController();
  try {
    const { companies } = await ask("/companies", { params: { q, limit: 8 }, signal: typing.signal });
    openOptions(companies.map((company) => ({
      act: () => goToCompany(company.id),
      parts: [el("span", {}, ...typedPart(company.name, q), ...otherName(company, q)), el("span", { class: "where" }, facts(company))],
    })));
  } catch (error) {
    if (error instanceof ProblemError) showProblem(error.problem, suggest);
    else if (error.name !== "AbortError") throw error;
  }
}

function openOptions(found) {
  options = found;
  active = -1;
  const items = found.map(({ act, parts }, position) =>
    el("li", { role: "option", id: `option-${position}`, "aria-selected": "false", onmousedown: (event) => { event.preventDefault(); act(); } }, ...parts));
  if (!items.length) items.push(el("li", { class: "nothing", role: "option", "aria-disabled": "true" }, "No company found"));
  byId("options").replaceChildren(...items);
  byId("options").hidden = false;
  box().setAttribute("aria-expanded", "true");
  box().removeAttribute("aria-activedescendant");
}

// The alias that was typed, where the name does not say why it is here.
function otherName({ name, aliases = [] }, q) {
  const alias = aliases.find((each) => each.toLowerCase().includes(q.toLowerCase()));
  return alias && !name.toLowerCase().includes(q.toLowerCase()) ? [el("small", {}, " also ", ...typedPart(alias, q))] : [];
}

function typedPart(name, q) {
  const at = name.toLowerCase().indexOf(q.toLowerCase());
  return at < 0 ? [name] : [name.slice(0, at), el("b", {}, name.slice(at, at + q.length)), name.slice(at + q.length)];
}

function move(step) {
  if (!options.length) return;
  // One place before the first option stands for the typed text itself.
  active = ((active + 1 + step + options.length + 1) % (options.length + 1)) - 1;
  [...byId("options").children].forEach((item, position) => item.setAttribute("aria-selected", String(position === active)));
  if (active < 0) return box().removeAttribute("aria-activedescendant");
  box().setAttribute("aria-activedescendant", `option-${active}`);
  byId(`option-${active}`).scrollIntoView({ block: "nearest" });
}

function onKey(event) {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    if (byId("options").hidden) (box().value.trim() ? suggest : suggestRecent)();
    else move(event.key === "ArrowDown" ? 1 : -1);
  } else if (event.key === "Escape") {
    event.preventDefault();
    if (byId("options").hidden) box().value = "";
    closeOptions();
  }
}
