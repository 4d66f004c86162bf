// The ranking: a row a hit, pages as they come, one row at a time the current one.

import { byId, el } from "./dom.js";
import { showVerdict, verdictButtons } from "./feedback.js";
import { companyLink, siteLink } from "./links.js";
import { markAnchors } from "./question.js";
import { because, fact, marked, otherShared, phrasesOf } from "./reasons.js";
import { MAX_ANCHORS, current, go } from "./state.js";

const MOST_REASONS = 50; // of one page, the API's limit
const STEP = 5; // reasons are asked for in steps, so that scrolling does not ask for each row

let rows = []; // {hit, page, place, node}
let pages = []; // {cursor, reasons}: how many reasons each page has been asked for
let chosen = null; // the current row
let isNew = new Set(); // ids that a saved list has not shown before
let wanted = () => {}; // (page, reasons)
const onScreen = new IntersectionObserver(seen, { rootMargin: "120px" });

export const shownHits = () => rows.map(({ hit }) => hit);
export const chosenRow = () => chosen;
export const rowOf = (id) => rows.find(({ hit }) => hit.company.id === id);

export function showHits(answer, { onWanted }) {
  onScreen.disconnect();
  wanted = onWanted;
  rows = [];
  pages = [];
  chosen = null;
  isNew = new Set();
  byId("hits").replaceChildren();
  const calibrated = answer.hits.some(({ probability }) => probability !== null);
  byId("match-head").textContent = calibrated ? "Likely competitor" : "Cosine";
  byId("none").hidden = answer.hits.length > 0;
  markAnchors([]);
  addPage(answer, "");
  byId("provenance").textContent = provenance(answer, calibrated);
}

export function addPage(answer, cursor) {
  const page = pages.push({ cursor, reasons: 0 }) - 1;
  const added = answer.hits.map((hit, place) => ({ hit, page, place, node: null }));
  for (const row of added) {
    row.node = rowNode(row);
    onScreen.observe(row.node);
  }
  rows.push(...added);
  byId("hits").append(...added.map(({ node }) => node));
  byId("more").hidden = !answer.next_cursor;
  if (!chosen && rows.length) rows[0].node.tabIndex = 0;
}

// The same hits again, now with their phrases.
export function addReasons(page, { hits, warnings = [] }) {
  if (warnings.length) {
    wanted = () => {}; // it would only be said again
    byId("provenance").append(` · ${warnings.join(" ")}`);
  }
  for (const hit of hits) {
    const row = rows.find((each) => each.page === page && each.hit.company.id === hit.company.id);
    if (!row || !hit.reason?.phrases) continue;
    row.hit.reason = hit.reason;
    row.node.querySelector(".because").replaceChildren(...(because(hit) ?? []));
    row.node.querySelector(".about-hit p").replaceChildren(...marked(hit.company.description ?? "", phrasesOf(hit, "hit")));
  }
  const speaking = chosen ?? rows[0];
  if (speaking) markAnchors(speaking.hit.reason?.phrases);
}

export function showNew(ids) {
  isNew = new Set(ids);
  for (const { hit, node } of rows) node.querySelector(".new").hidden = !isNew.has(hit.company.id);
}

function seen(entries) {
  const deepest = new Map();
  for (const { isIntersecting, target } of entries) {
    const row = isIntersecting && rows.find(({ node }) => node === target);
    if (row) deepest.set(row.page, Math.max(deepest.get(row.page) ?? 0, row.place + 1));
  }
  for (const [page, count] of deepest) {
    const reasons = Math.min(Math.ceil(count / STEP) * STEP, MOST_REASONS);
    if (reasons <= pages[page].reasons) continue;
    pages[page].reasons = reasons;
    wanted(pages[page].cursor, page, reasons);
  }
}

function provenance({ hits, approximate, took_ms, generation, model }, calibrated) {
  const meaning = !hits.length ? "" : calibrated
    ? "The percentage is the chance of being a competitor, estimated from the cosine of the two descriptions. "
    : "The cosine says how alike two descriptions are; it is no probability. ";
  const how = approximate ? "Approximate search" : "Every company compared";
  return `${meaning}${how} in ${took_ms.toFixed(1)} ms · index ${generation} · encoder ${model.encoder_id}`;
}

// ---- One row

function rowNode(row) {
  const { hit } = row;
  const { rank, company, language, warning, duplicates = [] } = hit;
  const nameId = `name-${rank}`;
  const node = el("li", { class: "row", tabindex: "-1", "aria-labelledby": nameId, onfocusin: () => choose(row), onmouseenter: () => hover(row), onmouseleave: () => hover(null) },
    el("span", { class: "rank" }, String(rank)),
    el("div", { class: "what" },
      el("p", { class: "title" },
        companyLink(company, "name", el("span", { id: nameId }, company.name)),
        siteLink(company.domain, "site"),
        el("span", { class: "new", hidden: true }, "new"),
        warning && el("span", { class: "tag", title: warning }, `not English: ${language}`),
        duplicates.length > 0 && el("span", { class: "site", title: duplicates.join(", ") }, `also stored as ${duplicates.join(", ")}`)),
      el("p", { class: "because" }, ...(because(hit) ?? [])),
      description(hit)),
    el("div", { class: "place" }, fact(hit, "country"), fact(hit, "industry"), ...otherShared(hit)),
    match(hit),
    el("div", { class: "act" }, ...verdictButtons(hit), ...anchorButtons(company)));
  showVerdict(node, company.id);
  return node;
}

function match({ score, probability }) {
  const share = probability ?? Math.max(score, 0);
  const bar = el("i");
  bar.style.width = `${share * 100}%`;
  return el("span", { class: "match" },
    el("span", {}, probability === null ? score.toFixed(2) : `${Math.round(share * 100)} %`, probability !== null && el("span", { class: "likely" }, " likely")),
    el("span", { class: "track", "aria-hidden": "true" }, bar),
    probability !== null && el("small", {}, `cosine ${score.toFixed(2)}`));
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

function open(box, isOpen) {
  const toggle = box.querySelector(".more");
  box.classList.toggle("short", !isOpen);
  toggle.setAttribute("aria-expanded", String(isOpen));
  toggle.textContent = isOpen ? "less" : "more";
}

export const openAll = (isOpen) => rows.forEach(({ node }) => open(node.querySelector(".about-hit"), isOpen));

export const toggleDescription = ({ node }) => node.querySelector(".more").click();

function anchorButtons({ id, name }) {
  return [
    el("button", { type: "button", class: "small", title: "Look for companies like this one, too (+)", "aria-label": `More like ${name}`, onclick: () => addAnchor(id) }, "+ like"),
    el("button", { type: "button", class: "small", title: "Look away from companies like this one (−)", "aria-label": `Unlike ${name}`, onclick: () => addNegative(id) }, "− unlike"),
  ];
}

export function addAnchor(id) {
  const { anchors } = current();
  if (anchors.length < MAX_ANCHORS && !anchors.some(({ company }) => company === id)) return go({ anchors: [...anchors, { company: id, weight: 1 }] });
  return null;
}

export function addNegative(id) {
  const { negatives } = current();
  if (negatives.length < MAX_ANCHORS && !negatives.some(({ company }) => company === id)) return go({ negatives: [...negatives, { company: id }] });
  return null;
}

// ---- The current row

function choose(row) {
  if (chosen === row) return;
  rows.forEach(({ node }) => { node.tabIndex = -1; });
  chosen?.node.classList.remove("current");
  chosen = row;
  row.node.tabIndex = 0;
  row.node.classList.add("current");
  hover(row);
}

function hover(row) {
  const speaking = row ?? chosen ?? rows[0];
  if (speaking) markAnchors(speaking.hit.reason?.phrases);
  document.dispatchEvent(new CustomEvent("row", { detail: row?.hit.company.id ?? chosen?.hit.company.id ?? null }));
}

export function moveRow(step) {
  const at = chosen ? rows.indexOf(chosen) + step : 0;
  const next = rows[Math.max(0, Math.min(rows.length - 1, at))];
  next?.node.focus();
  next?.node.scrollIntoView({ block: "nearest" });
}
