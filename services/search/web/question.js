// What is asked: the companies to be like, those to be unlike, and what is left out, beside the ranking.

import { openAdding } from "./adding.js";
import { byId, button, counted, el } from "./dom.js";
import { companyLink, facts, siteLink } from "./links.js";
import { marked } from "./reasons.js";
import { shortened } from "./segments.js";
import { current, go } from "./state.js";

const WEIGHTS = [0.5, 1, 2, 3, 5];
const NAMED_EXCLUSIONS = 50;
const LONGEST_PART = 160; // characters of a line of business

let anchors = []; // of the answer, in its order: phrases name them by position

// With the line of business, if only that is asked about.
export const nameOf = ({ company, segment }) => (company ? `${company.name}${segment ? ` (${shortened(segment.text)})` : ""}` : "your description");

export const companiesAsked = () => anchors.map(({ company }) => company).filter(Boolean);

const together = (name, others) => (others.length ? `${name} + ${others.length}` : name);

export const titleOf = ({ anchors: [first, ...others] }) => together(first.company ? nameOf(first) : "Your description", others);

export function showQuestion(answer) {
  anchors = answer.anchors;
  const several = anchors.length > 1;
  byId("question").replaceChildren(
    el("h1", { id: "question-title", tabindex: "-1" }, together(anchors[0].company?.name ?? "Your description", anchors.slice(1))),
    ...anchors.map((anchor, position) => anchorCard(anchor, position, several)),
    ...negatives(answer.negatives ?? []),
    ...excludedLists(),
    ...exclusions());
}

// The phrases of the anchors that carry one hit's match.
export function markAnchors(phrases) {
  anchors.forEach((anchor, position) => {
    const about = byId(`anchor-${position}`);
    const own = (phrases ?? []).filter((phrase) => phrase.of === "anchor" && phrase.anchor === position);
    about?.replaceChildren(...marked(wordsOf(anchor), own));
  });
}

const wordsOf = (anchor) => anchor.company?.description ?? anchor.text ?? "";

// The part of the question that became this part of the answer, by its id or as it was typed.
const givenAs = (role, { asked, company, segment }, position) =>
  current()[role].find((each) => [company?.id, asked].includes(each.company ?? each.text) && each.segment === segment?.number)
    ?? current()[role][position];

function anchorCard(anchor, position, several) {
  const { company, language, segment, warning } = anchor;
  const asked = givenAs("anchors", anchor, position);
  return el("article", { class: several ? "anchor one-of" : "anchor" },
    several && el("div", { class: "anchor-head" },
      el("h2", {}, company ? companyLink(company, "name", company.name) : "Your description"),
      weight(asked, nameOf(anchor)),
      button("✕", () => without("anchors", asked), { class: "quiet icon", "aria-label": `No longer like ${nameOf(anchor)}` })),
    company && el("p", { class: "facts" }, facts(company) && el("span", {}, facts(company)), siteLink(company.domain, null)),
    segment && el("p", { class: "only", title: segment.text }, el("strong", {}, "Only this line of business: "), shortened(segment.text, LONGEST_PART),
      several && [" ", button("All of it", () => whole(asked), { class: "link", "aria-label": `All of ${company.name}` })]),
    el("p", { id: `anchor-${position}`, class: "about", lang: language === "und" ? null : language, dir: "auto", tabindex: "0", role: "group",
      "aria-label": `Description of ${nameOf(anchor)}` }, wordsOf(anchor)),
    warning && el("p", { class: "tag" }, warning),
    company && !several && el("p", { class: "note" }, provenance(anchor), isGuess(anchor) && [" · not it? ",
      button("Add it", () => openAdding(anchor.redirected_from), { class: "link", "aria-label": `Add ${anchor.redirected_from}` })]),
    company && !several && el("div", { id: "segments", class: "part" }));
}

const isGuess = ({ redirected_from, confidence }) => redirected_from && confidence < 1;

function provenance({ company, updated_at, redirected_from, confidence }) {
  const parts = [`id ${company.id}`, `as of ${(updated_at ?? "").slice(0, 10)}`];
  if (redirected_from) parts.unshift(`found as “${redirected_from}”${confidence < 1 ? ` (${Math.round(100 * confidence)} % sure)` : ""}`);
  if (company.aliases?.length) parts.unshift(`also ${company.aliases.slice(0, 4).join(", ")}`);
  return parts.join(" · ");
}

function weight(asked, name) {
  const known = [...new Set([...WEIGHTS, asked.weight])].sort((one, other) => one - other);
  const options = known.map((value) => el("option", { value, selected: value === asked.weight }, `× ${value}`));
  const onchange = (event) => {
    const changed = current().anchors.map((each) => (each === asked ? { ...each, weight: Number(event.target.value) } : each));
    go({ anchors: changed }).then(() => [...document.querySelectorAll("select.weight")].find((each) => each.ariaLabel === `Weight of ${name}`)?.focus());
  };
  return el("select", { class: "weight", "aria-label": `Weight of ${name}`, onchange }, ...options);
}

// An anchor without its line of business.
function whole(asked) {
  const { segment, ...rest } = asked;
  return go({ anchors: current().anchors.map((each) => (each === asked ? rest : each)) }).then(() => byId("question-title")?.focus());
}

const without = (role, gone) => go({ [role]: current()[role].filter((each) => each !== gone) }).then(() => byId("question-title")?.focus());

function negatives(found) {
  if (!found.length) return [];
  const chips = found.map((negative, position) => {
    const asked = givenAs("negatives", negative, position);
    return el("button", { type: "button", class: "chip", "aria-label": `No longer unlike ${nameOf(negative)}`, onclick: () => without("negatives", asked) },
      nameOf(negative), el("small", { "aria-hidden": "true" }, "✕"));
  });
  return [el("div", { class: "part" }, el("h2", {}, "Unlike"), el("p", { class: "chips" }, ...chips))];
}

function excludedLists() {
  const { excludeLists } = current();
  if (!excludeLists.length) return [];
  const chips = excludeLists.map((name) =>
    el("button", { type: "button", class: "chip", "aria-label": `No longer exclude the list ${name}`, onclick: () => without("excludeLists", name) },
      name, el("small", { "aria-hidden": "true" }, "✕")));
  return [el("div", { class: "part" }, el("h2", {}, "Without the companies on"), el("p", { class: "chips" }, ...chips))];
}

function exclusions() {
  const { exclude } = current();
  if (!exclude.length) return [];
  const chips = exclude.slice(0, NAMED_EXCLUSIONS).map((each) =>
    el("button", { type: "button", class: "chip", "aria-label": `No longer exclude ${each}`, onclick: () => without("exclude", each) },
      each, el("small", { "aria-hidden": "true" }, "✕")));
  return [el("details", { class: "part" },
    el("summary", {}, `${counted(exclude.length, "company", "companies")} excluded`),
    el("p", { class: "chips" }, ...chips, exclude.length > NAMED_EXCLUSIONS && `and ${exclude.length - NAMED_EXCLUSIONS} more`,
      button("Exclude none", () => go({ exclude: [] }), { class: "link" })))];
}
