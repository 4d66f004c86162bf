// The ranking: pages as they come, in the chosen order, as rows or as a table, one row at a time the current one.

import { byId } from "./dom.js";
import { because, marked, phrasesOf } from "./reasons.js";
import { markAnchors } from "./question.js";
import { open, rowNode } from "./row.js";
import { sorted } from "./sorting.js";
import { current } from "./state.js";
import { showTableHead, tableRow } from "./table.js";

const MOST_REASONS = 50; // of one page, the API's limit
const STEP = 5; // reasons are asked for in steps, so that scrolling does not ask for each row

// What each reading estimates the probability from (docs/ranking.md).
const EVIDENCE = {
  comparable: "the two descriptions (cosine and shared words), industry, size and country",
  business: "the two descriptions (cosine and shared words) and industry",
  cosine: "the cosine of the two descriptions",
};
const READ = "Only the first 128 tokens of a description (about 70 English words) are read, as one: a company in several lines of business counts as a mixture of them.";
const OF_PART = " For one line of business of the company that is asked about, the industry does not count.";

let rows = []; // {hit, page, place, node, ticked}, by rank
let pages = []; // {cursor, reasons}: how many reasons each page has been asked for
let chosen = null; // the current row
let isNew = new Set(); // ids that a saved list has not shown before
let wanted = () => {}; // (page, reasons)
let said = []; // the warnings of the ranking, which are shown above it
const onScreen = new IntersectionObserver(seen, { rootMargin: "120px" });

export const shownHits = () => rows.map(({ hit }) => hit);
export const chosenRow = () => chosen;
export const rowOf = (id) => rows.find(({ hit }) => hit.company.id === id);
export const tickedHits = () => rows.filter(({ ticked }) => ticked).map(({ hit }) => hit);

const isTable = () => current().view === "table";

export function showHits(answer, { onWanted }) {
  wanted = onWanted;
  said = answer.warnings ?? [];
  rows = [];
  pages = [];
  chosen = null;
  isNew = new Set();
  const calibrated = answer.hits.some(({ probability }) => probability !== null);
  byId("match-head").textContent = calibrated ? "Likely competitor" : "Cosine";
  byId("none").hidden = answer.hits.length > 0;
  markAnchors([]);
  addPage(answer, "");
  byId("provenance").textContent = provenance(answer, calibrated);
}

export function addPage(answer, cursor) {
  const page = pages.push({ cursor, reasons: 0 }) - 1;
  rows.push(...answer.hits.map((hit, place) => ({ hit, page, place, node: null, ticked: false })));
  byId("more").hidden = !answer.next_cursor;
  showRows();
}

// All rows again: the order, the view or its columns are others, or rows have come.
export function showRows() {
  const inOrder = sorted(rows);
  onScreen.disconnect();
  for (const id of ["hits", "head"]) byId(id).hidden = isTable();
  for (const id of ["table-part", "columns"]) byId(id).hidden = !isTable() || !rows.length;
  byId("expand").hidden = isTable();
  if (isTable()) showTableHead(shownHits());
  for (const row of rows) {
    row.node = isTable() ? tableRow(row, happening(row)) : rowNode(row, happening(row));
    row.node.querySelector(".new").hidden = !isNew.has(row.hit.company.id);
    row.node.classList.toggle("current", row === chosen);
    if (!isTable()) onScreen.observe(row.node);
  }
  byId("hits").replaceChildren(...(isTable() ? [] : inOrder.map(({ node }) => node)));
  byId("table-rows").replaceChildren(...(isTable() ? inOrder.map(({ node }) => node) : []));
  const reachable = chosen ?? inOrder[0];
  if (reachable) reachable.node.tabIndex = 0;
  document.dispatchEvent(new CustomEvent("ticks"));
}

const happening = (row) => ({
  focus: () => choose(row),
  enter: () => hover(row),
  leave: () => hover(null),
  tick: (isTicked) => tick([row], () => isTicked),
});

// The same hits again, now with their phrases.
export function addReasons(page, { hits, warnings = [] }) {
  const further = warnings.filter((each) => !said.includes(each));
  if (further.length) {
    wanted = () => {}; // it would only be said again
    byId("provenance").append(` · ${further.join(" ")}`);
  }
  for (const hit of hits) {
    const row = rows.find((each) => each.page === page && each.hit.company.id === hit.company.id);
    if (!row || !hit.reason?.phrases) continue;
    row.hit.reason = hit.reason;
    row.node.querySelector(".because")?.replaceChildren(...(because(hit) ?? []));
    row.node.querySelector(".about-hit p")?.replaceChildren(...marked(hit.company.description ?? "", phrasesOf(hit, "hit")));
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

function provenance({ anchors, hits, approximate, took_ms, generation, model }, calibrated) {
  const meaning = !hits.length ? "" : calibrated
    ? `The percentage is the chance of being a competitor, estimated from ${EVIDENCE[current().rank]}. `
    : "The cosine says how alike two descriptions are; it is no probability. ";
  const how = approximate ? "Approximate search" : "Every company compared";
  return `${meaning}${READ}${anchors.some(({ segment }) => segment) ? OF_PART : ""} ${how} in ${took_ms.toFixed(1)} ms · index ${generation} · encoder ${model.encoder_id}`;
}

const openable = (node) => node.querySelector(".about-hit");

export const openAll = (isOpen) => rows.map(({ node }) => openable(node)).filter(Boolean).forEach((box) => open(box, isOpen));

export const toggleDescription = ({ node }) => node.querySelector(".more")?.click();

// ---- Ticked rows

function tick(which, isMeant) {
  for (const row of which) {
    row.ticked = isMeant(row.hit);
    row.node.querySelector(".tick").checked = row.ticked;
  }
  document.dispatchEvent(new CustomEvent("ticks"));
}

export const tickWhere = (isMeant) => tick(rows, isMeant);

export function toggleTick(row) {
  const isTicked = !row.ticked;
  tick([row], () => isTicked);
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
  const inOrder = sorted(rows);
  const at = chosen ? inOrder.indexOf(chosen) + step : 0;
  goToRow(inOrder[Math.max(0, Math.min(rows.length - 1, at))]);
}

export function goToRow(row) {
  row?.node.focus();
  row?.node.scrollIntoView({ block: "nearest" });
}
