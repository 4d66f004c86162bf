// What went wrong, in words, with what can be done about it.

import { byId, button, el } from "./dom.js";
import { companyChip } from "./links.js";
import { ProblemError, manners } from "./ask.js";

// `further`: buttons with something else to do about it.
export function showProblem(problem, retry, further = []) {
  byId("start").hidden = true;
  const choices = problem.candidates ?? problem.suggestions ?? [];
  const box = el("section", { class: problem.candidates ? "problem candidates" : "problem" },
    el("h1", {}, problem.title),
    el("p", { class: "detail" }, inWords(problem.detail)),
    offences(problem),
    choices.length > 0 && el("p", { class: "chips" }, choices.map(companyChip)),
    further.length > 0 && el("p", { class: "chips" }, further),
    (problem.status === 0 || problem.status >= 500 || problem.status === 401 || problem.status === 429)
      && el("p", { class: "chips" }, button("Try again", retry)));
  byId("message").replaceChildren(box);
}

// The words about a single one are the detail already.
const offences = ({ errors = [] }) => errors.length > 1
  && el("ul", {}, errors.map(({ parameter, reason }) => el("li", {}, inWords(`${parameter}: ${reason}`))));

// "anchors[0].weight: must be …" names members of the API.
const ROLES = { anchors: "company", negatives: "unlike company", exclude: "excluded company" };
const MEMBERS = { company: "name", text: "description", segment: "line of business" };

const inWords = (words) => words.replace(/\b(anchors|negatives|exclude)\[(\d+)\](?:\.(\w+))?:/g, (_, role, place, member = "company") =>
  `the ${MEMBERS[member] ?? member} of ${ROLES[role]} ${Number(place) + 1}`);

export const clearProblem = () => byId("message").replaceChildren();

// Part of the answer may be missing (a company among several that nobody knows); the rest stands. Warnings come first.
// Of exclusions only the number is told: a pasted list may hold thousands that are not in the index.
// A suggestion takes the place of what was missed or read as another company; the rest of the question stays.
export function showMisses(misses, { remove, replace }, warnings = [], namesakes = []) {
  const excluded = misses.filter(({ role }) => role === "exclude");
  const others = misses.filter(({ role }) => role !== "exclude");
  const instead = (miss, companies = []) => companies.length > 0
    && el("p", { class: "chips" }, companies.map((company) => button(company.name, () => replace(miss, company), { class: "chip" })));
  byId("misses").replaceChildren(
    ...warnings.map((each) => el("p", { class: "note" }, each)),
    ...namesakes.map((each) => instead(each, each.others)),
    ...others.map((miss) => el("div", { class: "miss" },
      el("p", {}, el("strong", {}, miss.asked), ` is left out: ${miss.detail} `, button("Remove it", () => remove([miss]), { class: "link" })),
      instead(miss, miss.suggestions))));
  if (excluded.length) {
    byId("misses").append(
      el("p", { class: "note" }, `${excludedWords(excluded)} `, button("Forget", () => remove(excluded), { class: "link" })),
      ...excluded.slice(0, 3).map((miss) => instead(miss, miss.suggestions)).filter(Boolean));
  }
}

function excludedWords(misses) {
  const some = misses.slice(0, 3).map(({ asked }) => asked).join(", ");
  const rest = misses.length > 3 ? ` and ${(misses.length - 3).toLocaleString("en")} more` : "";
  return `Excluded, but not in the index under that name: ${some}${rest}.`;
}

// A short word at the foot of the window, with something to do about it.
let leaving = 0;

export function toast(words, action = null) {
  const box = byId("toast");
  clearTimeout(leaving);
  box.replaceChildren(el("span", {}, words), ...(action ? [button(action.label, () => { closeToast(); action.act(); }, { class: "link" })] : []));
  // An open dialog makes all else unreachable; what it is told belongs into it.
  (document.querySelector("dialog[open]") ?? document.body).append(box);
  box.hidden = false;
  leaving = setTimeout(function leave() {
    if (box.contains(document.activeElement) || box.matches(":hover")) leaving = setTimeout(leave, 2000);
    else closeToast();
  }, 8000);
}

function closeToast() {
  byId("toast").hidden = true;
}

// For what happens beside the ranking: the ranking stays, the toast says what failed.
export function softly(act) {
  return async (...given) => {
    try {
      return await act(...given);
    } catch (error) {
      if (error.name === "AbortError") return null;
      if (!(error instanceof ProblemError)) throw error;
      const words = `${error.problem.title}: ${error.problem.detail}`;
      toast(words);
      byId("status").textContent = words;
      return null;
    }
  };
}

export function mindManners() {
  manners.key = askForKey;
  manners.waiting = (seconds) => {
    byId("ask").classList.toggle("patient", seconds > 0);
    if (!seconds) return closeToast();
    toast(`The service asks for a pause. Going on in ${seconds} s.`);
  };
}

// No header can carry other signs, and what is pasted may hold some that nobody sees.
const IS_KEY = /^[!-~]*$/;
const keyTyped = () => byId("key").value.replace(/[\s\u200B-\u200F\u2060\uFEFF]/g, "");

function askForKey(wasRefused) {
  const dialog = byId("key-needed");
  byId("key-title").textContent = wasRefused ? "The service does not know this key" : "This service asks for a key";
  byId("key").value = "";
  byId("key").oninput = () => byId("key").setCustomValidity(IS_KEY.test(keyTyped()) ? "" : "This is no key of the service: copy it again.");
  byId("key").oninput();
  dialog.returnValue = "";
  dialog.showModal();
  byId("key").focus();
  return new Promise((resolve) => {
    dialog.querySelector("form").onsubmit = () => { dialog.returnValue = "given"; };
    dialog.onclose = () => resolve(dialog.returnValue === "given" ? keyTyped() : null);
  });
}
