// The ranking as a table: one line a company, with the columns that were chosen.

import { sizeField } from "./attributes.js";
import { byId, el } from "./dom.js";
import { noteOf, showVerdict, verdictButtons } from "./feedback.js";
import { companyLink, siteLink } from "./links.js";
import { noteButton } from "./notes.js";
import { bar, newTag, percent, tickBox } from "./row.js";
import { attributeKeys, isAscending, isReversed, labelOf, sortKey, valueOf } from "./sorting.js";
import { current, keepView } from "./state.js";

const NUMBERS = ["probability", "score"];
let change = () => {}; // after another order or another column
let columns = []; // that are shown

// The columns that there can be: those of the answer.
function possible(hits) {
  const calibrated = hits.some(({ probability }) => probability !== null);
  return [...(calibrated ? ["probability"] : []), "score", "country", "industry", "domain", "tags", ...attributeKeys(hits), "verdict", "note"];
}

function columnsOf(hits) {
  const usual = [hits.some(({ probability }) => probability !== null) ? "probability" : "score", "country", "industry", "domain", sizeField(), "verdict"];
  const wanted = current().columns ?? [...usual, sortKey()];
  const shown = possible(hits).filter((key) => wanted.includes(key));
  return [...shown.filter((key) => key === sortKey()), ...shown.filter((key) => key !== sortKey())]; // what sorts is not to be scrolled for
}

export function startTable(onChange) {
  change = onChange;
}

export function showTableHead(hits) {
  columns = columnsOf(hits);
  const sortedBy = sortKey();
  const heading = (key, label) => el("th", { scope: "col", class: classOf(key), "data-column": key, "aria-sort": key === sortedBy ? (isAscending(hits) ? "ascending" : "descending") : null },
    ["verdict", "note", "tags"].includes(key) ? label : el("button", { type: "button", "data-sort": key, onclick: () => sortBy(key) },
      label, key === sortedBy && el("span", { "aria-hidden": "true" }, isAscending(hits) ? " ↑" : " ↓")));
  byId("table-head").replaceChildren(
    el("th", { scope: "col" }, el("span", { class: "hidden" }, "Select")),
    heading("rank", "#"), heading("name", "Company"), ...columns.map((key) => heading(key, labelOf(key))));
  byId("column-choices").replaceChildren(...possible(hits).map((key) => {
    const box = el("input", { type: "checkbox", value: key, onchange: () => choose(hits, key, box.checked) });
    box.checked = columns.includes(key);
    return el("label", {}, box, labelOf(key));
  }));
}

function sortBy(key) {
  const isTurned = sortKey() === key && !isReversed();
  keepView({ sort: `${isTurned ? "-" : ""}${key}` });
  change();
  byId("table-head").querySelector(`[data-sort="${CSS.escape(key)}"]`).focus();
}

function choose(hits, key, isWanted) {
  keepView({ columns: possible(hits).filter((each) => (each === key ? isWanted : columns.includes(each))) });
  change();
  byId("column-choices").querySelector(`[value="${CSS.escape(key)}"]`).focus();
}

const classOf = (key) => (key === "rank" || NUMBERS.includes(key) ? "number" : null);

export function tableRow(row, on) {
  const { hit } = row;
  const nameId = `name-${hit.rank}`;
  const node = el("tr", { class: "line", tabindex: "-1", "aria-labelledby": nameId, onfocusin: on.focus, onmouseenter: on.enter, onmouseleave: on.leave },
    el("td", {}, tickBox(row, on)),
    el("td", { class: "number rank" }, String(hit.rank)),
    el("th", { scope: "row", title: hit.company.description },
      companyLink(hit.company, "name", el("span", { id: nameId }, hit.company.name)), newTag()),
    ...columns.map((key) => el("td", { class: classOf(key), "data-column": key, title: titleOf(hit, key) }, ...cell(hit, key))));
  showVerdict(node, hit.company.id);
  return node;
}

// What may be cut off, in full.
function titleOf(hit, key) {
  if (key === "note") return noteOf(hit.company.id) || null;
  const value = valueOf(hit, key);
  return typeof value === "string" || Array.isArray(value) ? String(value) || null : null;
}

function cell(hit, key) {
  const value = valueOf(hit, key);
  if (key === "probability") return value === null ? [] : [percent(value), bar(value)];
  if (key === "score") return [value.toFixed(2)];
  if (key === "domain") return [siteLink(value, "site")];
  if (key === "verdict") return [el("span", { class: "verdicts" }, ...verdictButtons(hit))];
  if (key === "note") return [noteButton(hit), " ", el("span", { class: "noted-words" }, noteOf(hit.company.id))];
  if (typeof value === "number") return [value.toLocaleString("en")];
  return [Array.isArray(value) ? value.join(", ") : String(value ?? "")];
}
