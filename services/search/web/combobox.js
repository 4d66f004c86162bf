// Search as you type: an ARIA combobox over GET /companies.

import { ProblemError, ask } from "./ask.js";
import { byId, el } from "./dom.js";
import { facts, goToCompany } from "./links.js";
import { showProblem } from "./problems.js";

const PAUSE = 90; // milliseconds between the last key and the question

let options = [];
let active = -1;
let typing = new AbortController();
let timer = 0;

const box = () => byId("search");

export function startCombobox() {
  box().addEventListener("input", suggest);
  box().addEventListener("keydown", onKey);
  box().addEventListener("blur", closeOptions);
}

export function submitCombobox() {
  const typed = box().value.trim();
  if (active >= 0) goToCompany(options[active].id);
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

async function find(q) {
  typing = new AbortController();
  try {
    const { companies } = await ask("/companies", { params: { q, limit: 8 }, signal: typing.signal });
    openOptions(companies, q);
  } catch (error) {
    if (error instanceof ProblemError) showProblem(error.problem, suggest);
    else if (error.name !== "AbortError") throw error;
  }
}

function openOptions(companies, q) {
  options = companies;
  active = -1;
  const items = companies.map((company, position) =>
    el("li", { role: "option", id: `option-${position}`, "aria-selected": "false", onmousedown: (event) => { event.preventDefault(); goToCompany(company.id); } },
      el("span", {}, ...typedPart(company.name, q), ...otherName(company, q)),
      el("span", { class: "where" }, facts(company))));
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
    if (byId("options").hidden) suggest();
    else move(event.key === "ArrowDown" ? 1 : -1);
  } else if (event.key === "Escape") {
    event.preventDefault();
    if (byId("options").hidden) box().value = "";
    closeOptions();
  }
}
