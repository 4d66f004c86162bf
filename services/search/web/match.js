// A pasted list of names or domains, matched with the companies of the index.

import { openAdding } from "./adding.js";
import { ProblemError, ask } from "./ask.js";
import { button, byId, counted, el, say } from "./dom.js";
import { openSavingCompanies } from "./lists.js";
import { toTop } from "./links.js";
import { softly } from "./problems.js";
import { MAX_ANCHORS, current, go } from "./state.js";

let rows = []; // {key, chosen, box, node}: a line of the list (its key is what was written), and what was made of it

function openPaste() {
  byId("paste-error").textContent = "";
  byId("paste").showModal();
  byId("pasted").focus();
}

async function find(event) {
  event.preventDefault();
  const lines = byId("pasted").value.trim();
  byId("paste-error").textContent = lines ? "" : "Write or paste at least one name.";
  if (!lines) return byId("pasted").focus();
  try {
    show(await ask("/match", { body: new Blob([lines], { type: "text/plain" }) }));
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    byId("paste-error").textContent = `${error.problem.title}: ${error.problem.detail}`;
  }
  return null;
}

function show({ rows: answers, unused_columns: unused = [] }) {
  const before = [...rows]; // a line that is still there keeps what was made of it
  rows = answers.map((answer) => {
    const key = JSON.stringify(answer.asked);
    const at = before.findIndex((row) => row.key === key);
    return rowOf(answer, key, at < 0 ? null : before.splice(at, 1)[0]);
  });
  const found = answers.filter(({ id }) => id).length;
  byId("matched-title").textContent = `${found} of ${counted(answers.length, "line")} found${unused.length ? `; columns not used: ${unused.join(", ")}` : ""}`;
  byId("matches").replaceChildren(...rows.map(({ node }) => node));
  byId("matched").hidden = false;
  countChosen();
  byId("matched-title").focus();
  say(byId("matched-title").textContent);
  byId("paste-error").textContent = advice(answers, unused);
}

function advice(answers, unused) {
  if (unused.length && !answers.some(({ asked }) => asked.name)) return `No column is known to hold names. If “${unused[0]}” does, call it “name”.`;
  const cells = answers.map(({ asked }) => (asked.name ?? "").split(/[,;|]/).length); // many a name has a comma
  const separators = answers.length === 1 || cells.every((count) => count === cells[0]) ? /[,;|]/ : /;/;
  const several = answers.filter(({ id, asked }) => !id && separators.test(asked.name ?? ""));
  if (several.length > 1 && several.length === answers.length) return "If this is a table, its first line must name the columns: name, website, country. If it is a list, write one company per line.";
  return several.length ? "Write one company per line: a line with several finds nothing." : "";
}

function rowOf(answer, key, before) {
  const { asked, id, company, confidence, how, candidates = [], miss } = answer;
  // A bare website is both name and domain of a line, but was written once.
  const words = typeof asked === "string" ? asked : [...new Set(Object.values(asked ?? {}).filter(Boolean))].join(", ");
  const isKept = before?.chosen && [id, ...candidates.map((each) => each.id)].includes(before.chosen);
  const row = { key, chosen: isKept ? before.chosen : id };
  row.box = el("input", { type: "checkbox", "aria-label": `Use ${company?.name ?? words}`, disabled: !row.chosen, onchange: countChosen });
  row.box.checked = isKept ? before.box.checked : Boolean(id);
  const others = candidates.filter((each) => each.id !== id);
  const choice = others.length > 0 && el("select", { "aria-label": `Company for ${words}`, onchange: (event) => {
    row.chosen = event.target.value;
    row.box.disabled = !row.chosen;
    row.box.checked = Boolean(row.chosen);
    countChosen();
  } }, !id && el("option", { value: "" }, "Choose…"), ...[company, ...others].filter(Boolean).map((each) =>
    el("option", { value: each.id, selected: each.id === row.chosen }, [each.name, each.domain, each.country].filter(Boolean).join(" · "))));
  const where = company && [company.domain, company.country].filter(Boolean).join(" · ");
  row.node = el("tr", { class: id ? null : "missed" },
    el("td", {}, row.box), el("td", {}, words),
    el("td", {}, choice || (company ? [company.name, where && el("small", {}, ` ${where}`)] : el("span", { class: "note" }, "nothing found")),
      !id && miss && el("p", { class: "note" }, miss), !id && button("Add it", softly(() => addInstead(words)))),
    el("td", {}, id ? el("span", { title: how ? `by ${how}` : null }, `${Math.round(confidence * 100)} %`) : ""));
  return row;
}

// What was pasted stays for when the dialog is opened again.
function addInstead(name) {
  byId("paste").close();
  return openAdding(name);
}

const chosenIds = () => [...new Set(rows.filter(({ box }) => box.checked).map(({ chosen }) => chosen).filter(Boolean))];

function countChosen() {
  const count = chosenIds().length;
  const tooMany = count > MAX_ANCHORS;
  byId("as-anchors").disabled = !count || tooMany;
  byId("as-list").disabled = !count;
  byId("as-exclusions").disabled = !count || !current().anchors.length;
  byId("as-anchors").textContent = tooMany ? `Find companies like at most ${MAX_ANCHORS}` : `Find companies like ${count === 1 ? "this one" : `these ${count || ""}`.trim()}`;
  byId("as-exclusions").textContent = `Exclude ${count || "these"}`;
}

const asAnchors = () => chosenIds().map((company) => ({ company, weight: 1 }));

const firstBytes = (bytes) => String(new Uint8Array(bytes, 0, Math.min(2, bytes.byteLength)));

const IS_BINARY = "This is not a text file: save it as CSV (in Excel: CSV UTF-8), or paste its rows.";
const IS_WINDOWS = "This file is not UTF-8, so it was read as Windows-1252. If names look wrong, save it as UTF-8 (in Excel: CSV UTF-8).";

/**
 * The text of a file, and a remark: UTF-16 if a byte order mark says so, else UTF-8, else Windows-1252 as spreadsheets write it.
 * The text is null if the file is not text, such as Excel or Parquet: it contains zero bytes.
 */
function decoded(bytes) {
  const encoding = { "255,254": "utf-16le", "254,255": "utf-16be" }[firstBytes(bytes)] ?? "utf-8";
  if (encoding === "utf-8" && new Uint8Array(bytes).includes(0)) return [null, IS_BINARY];
  try {
    return [new TextDecoder(encoding, { fatal: true }).decode(bytes), ""];
  } catch {
    return [new TextDecoder("windows-1252").decode(bytes), IS_WINDOWS];
  }
}

export function startMatching() {
  byId("open-paste").addEventListener("click", openPaste);
  byId("paste-form").addEventListener("submit", find);
  byId("pasted-file").addEventListener("change", async ({ target }) => {
    const bytes = await target.files[0]?.arrayBuffer();
    target.value = "";
    if (!bytes) return;
    const [text, remark] = decoded(bytes);
    byId("pasted").value = text ?? byId("pasted").value;
    byId("paste-error").textContent = remark;
    byId("matched").hidden = true; // what was found was of another list
  });
  byId("as-anchors").addEventListener("click", () => {
    byId("paste").close();
    go({ anchors: asAnchors(), negatives: [] }).then(toTop);
  });
  byId("as-exclusions").addEventListener("click", () => {
    byId("paste").close();
    go({ exclude: [...new Set([...current().exclude, ...chosenIds()])] });
  });
  byId("as-list").addEventListener("click", () => openSavingCompanies(chosenIds()));
}
