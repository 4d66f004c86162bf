// One row of the ranking: a company, why it is there, and what can be done about it.

import { byId, el } from "./dom.js";
import { showVerdict, verdictButtons } from "./feedback.js";
import { companyLink, siteLink } from "./links.js";
import { noteButton, noteLine } from "./notes.js";
import { toast } from "./problems.js";
import { because, fact, marked, otherShared, phrasesOf } from "./reasons.js";
import { MAX_ANCHORS, current, go } from "./state.js";

// `on`: what happens to the row, {focus, enter, leave, tick}.
export function rowNode(row, on) {
  const { hit } = row;
  const { rank, company, language, warning, duplicates = [] } = hit;
  const nameId = `name-${rank}`;
  const node = el("li", { class: "row", tabindex: "-1", "aria-labelledby": nameId, onfocusin: on.focus, onmouseenter: on.enter, onmouseleave: on.leave },
    el("span", { class: "rank" }, String(rank), tickBox(row, on)),
    el("div", { class: "what" },
      el("p", { class: "title" },
        companyLink(company, "name", el("span", { id: nameId }, company.name)),
        siteLink(company.domain, "site"),
        newTag(),
        warning ? el("span", { class: "tag", title: warning }, `not read: ${language}`)
          : !["en", "und"].includes(language) && el("span", { class: "tag", title: "language of the description" }, language),
        duplicates.length > 0 && el("span", { class: "site", title: duplicates.join(", ") }, `also stored as ${duplicates.join(", ")}`)),
      el("p", { class: "because" }, ...(because(hit) ?? [])),
      description(hit),
      noteLine(hit)),
    el("div", { class: "place" }, fact(hit, "country"), fact(hit, "industry"), ...otherShared(hit)),
    match(hit),
    el("div", { class: "act" }, ...verdictButtons(hit), ...anchorButtons(company), noteButton(hit)));
  showVerdict(node, company.id);
  return node;
}

export const newTag = () => el("span", { class: "new", hidden: true }, "new");

export function tickBox(row, on) {
  const box = el("input", { type: "checkbox", class: "tick", "aria-label": `Select ${row.hit.company.name}`, onchange: () => on.tick(box.checked) });
  box.checked = row.ticked;
  return box;
}

export const percent = (share) => `${Math.round(share * 100)} %`;

export function bar(share) {
  const filled = el("i");
  filled.style.width = `${Math.max(share, 0) * 100}%`;
  return el("span", { class: "track", "aria-hidden": "true" }, filled);
}

export function match({ score, probability }) {
  return el("span", { class: "match" },
    el("span", {}, probability === null ? score.toFixed(2) : percent(probability), probability !== null && el("span", { class: "likely" }, " likely")),
    bar(probability ?? score),
    el("small", {}, probability === null ? "cosine" : `cosine ${score.toFixed(2)}`));
}

function description(hit) {
  const { company, language, rank } = hit;
  const id = `about-${rank}`;
  const toggle = el("button", { type: "button", class: "link more", "aria-controls": id, "aria-label": `Description of ${company.name}` });
  const box = el("div", { class: "about-hit" },
    el("p", { id, lang: language === "und" ? null : language, dir: "auto" }, ...marked(company.description ?? "", phrasesOf(hit, "hit"))), toggle);
  open(box, byId("expand").getAttribute("aria-pressed") === "true");
  toggle.addEventListener("click", () => open(box, toggle.getAttribute("aria-expanded") !== "true"));
  return box;
}

export function open(box, isOpen) {
  const toggle = box.querySelector(".more");
  box.classList.toggle("short", !isOpen);
  toggle.setAttribute("aria-expanded", String(isOpen));
  toggle.textContent = isOpen ? "less" : "more";
}

export function anchorButtons({ id, name }) {
  return [
    el("button", { type: "button", class: "small", title: "Look for companies like this one, too (+)", "aria-label": `More like ${name}`, onclick: () => addAnchor(id) }, "+ like"),
    el("button", { type: "button", class: "small", title: "Look away from companies like this one (−)", "aria-label": `Unlike ${name}`, onclick: () => addNegative(id) }, "− unlike"),
  ];
}

export const addAnchor = (id) => add("anchors", "negatives", { company: id, weight: 1 });
export const addNegative = (id) => add("negatives", "anchors", { company: id });

// The service refuses a company that is both.
function add(role, other, added) {
  const isAnother = ({ company }) => company !== added.company;
  const { [role]: before, [other]: others } = current();
  if (!before.every(isAnother)) return null;
  if (before.length >= MAX_ANCHORS) return toast(`At most ${MAX_ANCHORS} companies: remove one first.`);
  return go({ [role]: [...before, added], [other]: others.filter(isAnother) });
}
