// The page: from the address to an answer, and the parts around it. Nothing is built; the browser loads it as it is.

import { ProblemError, ask, download, isKind } from "./ask.js";
import { closeOptions, startCombobox, submitCombobox } from "./combobox.js";
import { button, byId, counted, el, lastly, say } from "./dom.js";
import { countOf, downloadPairs, followVerdicts, judgedFor, loadVerdicts, rejected, showPairCount, showVerdict } from "./feedback.js";
import { dropFilters, loadFacets, showApplied } from "./filters.js";
import { openAdding, startAdding } from "./adding.js";
import { loadAttributes } from "./attributes.js";
import { startBulk } from "./bulk.js";
import { startJudging } from "./judge.js";
import { startDialogs, startKeys } from "./keys.js";
import { companyChip, toTop } from "./links.js";
import { lookForLists, newSinceLook, openLists, openSavingCompanies, questionOfList, startLists } from "./lists.js";
import { isWanted, isWide, loadMap, redraw, spotlight } from "./map.js";
import { clearLocated, showLocatedVerdict, startLocating } from "./locate.js";
import { startMatching } from "./match.js";
import { clearProblem, mindManners, showMisses, showProblem, softly, toast } from "./problems.js";
import { startNotes } from "./notes.js";
import { remember, showRecent, startRecent } from "./recent.js";
import { showQuestion, titleOf } from "./question.js";
import { addPage, addReasons, openAll, rowOf, showHits, showNew, showRows, shownHits } from "./results.js";
import { loadSegments, shortened } from "./segments.js";
import { isShortlist, markListed, readShortlists, startShortlists } from "./shortlists.js";
import { isReversed, labelOf, sortKey } from "./sorting.js";
import { DEFAULT_K, addressOf, current, follow, go, note, noteIds, onlyWords, requestFor } from "./state.js";
import { startTable } from "./table.js";
import { hideLess, showView, startView } from "./view.js";

const EXAMPLES = ["Nike", "Spotify", "Toyota", "Siemens", "Pfizer", "Netflix"];
const SKELETON_ROWS = 8;
const MOST_ROWS = 250; // of one answer
const MOST_REASONS = 50;

let answer = null; // the first page of what is shown
let asked = null; // the question of the answer, with the names as they were typed: its cursors belong to no other
let cursor = null; // of the next page
let loading = new AbortController();
const attributes = loadAttributes(); // before the first rows: their order and columns depend on it

// ---- From the address to an answer

async function load() {
  loading.abort();
  loading = new AbortController();
  const { signal } = loading;
  showForm();
  clearProblem();
  if (!current().anchors.length && !current().list) return showStart();
  wait(true);
  try {
    if (!current().anchors.length && !(await questionOfList(current().list, signal))) return load(); // a list of companies shows itself
    showForm();
    const question = current();
    const [found] = await Promise.all([similar(question, { reasons: 0 }, signal), attributes]);
    if (loading.signal !== signal) return; // of a question that was left
    asked = question;
    noteIds(found);
    showAnswer(found, signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof ProblemError)) throw error;
    if (loading.signal !== signal) return; // of a question that was left
    answer = null;
    byId("answer").hidden = true;
    document.title = `${error.problem.title} · Company similarity`;
    const typed = isKind(error, "unknown-company", "contested-name", "too-few-words") ? current().anchors[0]?.company : null;
    const isOfSegment = isKind(error, "invalid-request") && error.problem.errors?.some(({ parameter }) => parameter === "segment");
    const isOfNegative = isKind(error, "invalid-request") && error.problem.errors?.some(({ parameter }) => ["negatives", "unlike"].includes(parameter));
    const isOfFilter = isKind(error, "invalid-request") && current().filters.length;
    const isOfList = isKind(error, "unknown-list", "wrong-kind-of-list") && current().excludeLists.length;
    const isListGone = isKind(error, "unknown-list") && !current().anchors.length;
    showProblem(error.problem, load, [
      isListGone && button("Saved lists", openLists),
      typed && button("Describe it instead", () => describe(typed)),
      typed && isKind(error, "unknown-company", "contested-name") && button("Add it", softly(() => openAdding(typed))),
      isOfSegment && button("Ask about the whole company", () => go(wholes())),
      ...(isOfNegative ? current().negatives.map((each) => button(`No longer unlike ${shortened(each.company ?? each.text)}`,
        () => go({ negatives: current().negatives.filter((one) => one !== each) }))) : []),
      isOfList && button("No longer exclude it", softly(dropMissingLists)),
      isOfFilter && button("Remove the filters", dropFilters),
    ].filter(Boolean));
    if (typed) byId("search").value = typed; // to be corrected
    if (isListGone) showStart();
  } finally {
    if (loading.signal === signal) wait(false);
  }
}

async function dropMissingLists() {
  await readShortlists();
  await go({ excludeLists: current().excludeLists.filter(isShortlist) });
}

// The question about whole companies: a description that has changed may have other lines of business.
const wholes = () => Object.fromEntries(["anchors", "negatives"].map((role) => [role, current()[role].map(({ segment, ...rest }) => rest)]));

async function similar(question, extra, signal) {
  const { path, params, body } = requestFor("/similar", question, extra);
  return ask(path, { params, body, signal });
}

function wait(isWaiting) {
  if (isWaiting) byId("start").hidden = true;
  document.body.classList.toggle("waiting", isWaiting);
  byId("results").toggleAttribute("aria-busy", isWaiting);
  document.body.classList.toggle("first", isWaiting && !answer);
  if (isWaiting && !answer) showSkeleton();
  else byId("skeleton").hidden = true;
}

function showSkeleton() {
  byId("answer").hidden = false;
  byId("skeleton").replaceChildren(...Array.from({ length: SKELETON_ROWS }, () => el("div", { class: "row" }, el("i"), el("b"), el("i"), el("i"))));
  byId("skeleton").hidden = false;
  for (const id of ["hits", "facets", "active", "misses"]) byId(id).replaceChildren();
  byId("question").replaceChildren(el("div", { class: "bones", "aria-hidden": "true" }, el("b"), ...Array.from({ length: 5 }, () => el("i"))));
  byId("provenance").textContent = "";
  byId("more").hidden = true;
}

function showAnswer(found, signal) {
  answer = found;
  cursor = found.next_cursor;
  byId("answer").hidden = false;
  const title = titleOf(found);
  const isCompany = Boolean(found.anchors[0].company);
  document.title = `${isCompany ? `Competitors of ${title}` : "Companies like your description"} · Company similarity`;
  byId("results-title").textContent = isCompany ? "Competitors" : "Companies like it";
  say(`${counted(found.hits.length, "company", "companies")} like ${title}`);
  showQuestion(found);
  showApplied();
  showMisses(found.misses ?? [], { remove: removeMisses, replace: replaceMiss }, [...ignoredWords(), ...found.warnings], namesakes(found));
  clearLocated();
  showHits(found, { onWanted: (page, place, reasons) => softly(findReasons)(page, place, reasons, signal) });
  showView(found);
  showTally();
  remember(title.replace(/^Your description/, () => `“${shortened(found.anchors[0].text)}”`));
  // Each of these stands by itself: one that fails says so and leaves the ranking as it is.
  softly(loadVerdicts)(found, signal);
  softly(loadFacets)(found, signal);
  softly(loadSegments)(found, signal);
  softly(loadMap)(signal);
  softly(hideLess)(signal);
  if (current().list) softly(async () => showNew(await newSinceLook(current().list, signal)))();
}

async function findReasons(pageCursor, place, reasons, signal) {
  try {
    addReasons(place, await similar(asked, { reasons, ...(pageCursor ? { cursor: pageCursor } : {}) }, signal));
  } catch (error) {
    if (!isGone(error)) throw error;
    toast("These companies come without reasons: the service has changed since.", { label: "Ask again", act: load });
  }
}

// The service was started anew, or has another model: the rest of this ranking is gone.
const isGone = (error) => isKind(error, "wrong-cursor", "cursor-expired");

const moreButton = () => byId("more").querySelector("button");

const showMore = softly(async () => {
  if (document.body.classList.contains("waiting")) return null; // the question is another one by now
  const { signal } = loading;
  const after = cursor;
  moreButton().disabled = true; // a second click would bring the same companies again
  let found;
  try {
    found = await similar(asked, { reasons: 0, cursor: after }, signal);
  } catch (error) {
    if (!isGone(error)) throw error;
    await load();
    return toast("The ranking begins anew: the service has changed since.");
  } finally {
    moreButton().disabled = false;
  }
  const first = shownHits().length;
  addPage(found, after);
  cursor = found.next_cursor;
  showView(answer);
  showTally();
  shownHits()[first] && rowOf(shownHits()[first].company.id).node.focus();
  return say(`${counted(found.hits.length, "more company", "more companies")}`);
});

// What was asked for and may also mean other companies.
const namesakes = ({ anchors, negatives }) => [["anchor", anchors], ["negative", negatives]].flatMap(([role, named]) =>
  named.filter(({ others }) => others.length).map(({ company, others }) => ({ role, asked: company.id, others })));

function ignoredWords() {
  const { ignored } = current();
  return ignored.length ? [`Ignored in the address: ${ignored.join(", ")}.`] : [];
}

function removeMisses(misses) {
  const change = {};
  for (const [role, place] of [["anchor", "anchors"], ["negative", "negatives"], ["exclude", "exclude"]]) {
    const gone = new Set(misses.filter((miss) => miss.role === role).map(({ asked }) => asked));
    if (gone.size) change[place] = current()[place].filter((each) => !gone.has(each.company ?? each.text ?? each));
  }
  go(change).then(() => byId("results-title").focus());
}

function replaceMiss({ role, asked }, { id }) {
  const place = { anchor: "anchors", negative: "negatives" }[role] ?? "exclude";
  go({ [place]: current()[place].map((each) => (each === asked ? id : each.company === asked ? { ...each, company: id } : each)) }).then(() => byId("results-title").focus());
}

// ---- The start

async function showStart() {
  answer = null;
  wait(false);
  document.title = "Company similarity";
  byId("answer").hidden = true;
  byId("start").hidden = false;
  say("");
  showRecent();
  const examples = await exampleCompanies().catch(() => []);
  byId("examples").replaceChildren(...(examples.length ? ["Try ", ...examples.map((each) => companyChip(each))] : []));
}

async function exampleCompanies() {
  const found = await Promise.all(EXAMPLES.map((q) => ask("/companies", { params: { q, limit: 1 } })));
  const known = found.flatMap(({ query, companies }) => companies.filter(({ name }) => name.toLowerCase().startsWith(query.toLowerCase())));
  return known.length ? known : (await ask("/companies", { params: { q: "a", limit: 6 } })).companies;
}

const showReadiness = async () => {
  try {
    const ready = await ask("/readyz");
    byId("corpus").textContent = counted(ready.companies, "company", "companies");
    byId("ask-words").disabled = !ready.free_text;
    if (!ready.free_text) byId("words-note").textContent = `Not available: ${ready.free_text_reason}.`;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    if (!current().anchors.length) showProblem(error.problem, refresh);
  }
};

// ---- The form: by company, or in one's own words

const mode = () => document.querySelector("input[name=mode]:checked").value;

function setMode(value) {
  document.querySelector(`input[name=mode][value=${value}]`).checked = true;
  byId("by-company").hidden = value !== "company";
  byId("by-text").hidden = value !== "text";
}

function showForm() {
  const [first] = current().anchors;
  if (first) setMode(first.text ? "text" : "company");
  byId("search").value = "";
  byId("words").value = first?.text ?? "";
  const sizes = [...byId("k").options].map(({ text }) => Number(text));
  if (!sizes.includes(current().k)) byId("k").add(new Option(current().k));
  byId("k").value = current().k;
  closeOptions();
}

function onSubmit(event) {
  event.preventDefault();
  if (mode() === "company") return submitCombobox();
  const text = byId("words").value.trim();
  if (text && !byId("ask-words").disabled) go(onlyWords(text)).then(toTop);
  return null;
}

function describe(name) {
  setMode("text");
  byId("words").value = name; // it may be words that say what is meant; a name is typed over
  byId("words").placeholder = `What ${name} does`;
  byId("words").select();
}

function search() {
  setMode("company");
  byId("search").focus();
}

// On a narrow window it stands below the whole ranking.
async function showMap() {
  await loadMap(loading.signal);
  if (isWanted()) byId("map").scrollIntoView({ block: "nearest" });
}

// ---- Verdicts and taking it along

// The same companies in another order or view.
function rearranged() {
  showRows();
  showView(answer);
  showTally();
}

function showTally() {
  const hits = shownHits();
  for (const { company } of hits) showVerdict(rowOf(company.id).node, company.id);
  showLocatedVerdict();
  const { accepted, rejected: out } = countOf(hits.map(({ company }) => company.id));
  const part = answer?.anchors[0].segment;
  const about = (part || answer?.anchors.length > 1) && judgedFor();
  byId("tally").textContent = [
    current().list && `“${current().list}”`, `${counted(hits.length, "company", "companies")}${sortKey() === "rank" ? "" : ` by ${labelOf(sortKey()).toLowerCase()}`}`,
    accepted && `${accepted} accepted`, out && `${out} rejected`, about && `verdicts are about ${part ? "all of " : ""}${about.name}`,
  ].filter(Boolean).join(" · ");
  const rows = Math.min(hits.length - out, MOST_ROWS);
  byId("csv").title = byId("xlsx").title = [
    rows < hits.length - out ? `the first ${rows} companies` : counted(rows, "company", "companies"), out && `without the ${out} rejected`, filesOrder(),
  ].filter(Boolean).join(", ");
  markListed();
}

// The service writes the files, and only this page knows another order.
const filesOrder = () => (sortKey() === "rank" && !isReversed() ? "" : "in the order of the ranking");

// What is on the page, without what was rejected.
const downloadTable = (format) => softly(async () => {
  const out = rejected().filter((id) => rowOf(id));
  const rows = Math.min(shownHits().length - out.length, MOST_ROWS);
  if (rows < 1) return toast("There is no company to download.");
  const state = current();
  const wanted = { ...state, k: rows, exclude: [...state.exclude, ...out] };
  const name = answer.anchors[0].company?.id ?? "description";
  const { path, params, body } = requestFor("/similar", wanted, { reasons: Math.min(rows, MOST_REASONS), format });
  await download(path, { params, body, name: `competitors-${name}.${format}` });
  return toast(`${counted(rows, "company", "companies")} downloaded${[out.length && `without the ${out.length} rejected`, filesOrder()].filter(Boolean).map((each) => `, ${each}`).join("")}.`);
});

const share = softly(async () => {
  const address = new URL(addressOf(current()), location.href).href;
  try {
    await navigator.clipboard.writeText(address);
    toast("Link copied: it carries the whole question.");
  } catch {
    toast("Copy the address of this page: it carries the whole question.");
  }
});

// ---- Beginning

function start() {
  mindManners();
  startCombobox();
  startDialogs();
  startJudging();
  startLists();
  startShortlists({ add: openSavingCompanies });
  startMatching();
  startAdding();
  startBulk();
  startLocating();
  startNotes();
  startRecent();
  startTable(rearranged);
  startView(rearranged);
  startKeys({ search });
  followVerdicts(showTally);
  byId("filters").open = matchMedia("(min-width: 761px)").matches;
  byId("ask").addEventListener("submit", onSubmit);
  byId("words").addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) onSubmit(event); });
  for (const radio of document.querySelectorAll("input[name=mode]")) {
    radio.addEventListener("change", () => { setMode(radio.value); byId(radio.value === "text" ? "words" : "search").focus(); });
  }
  byId("k").addEventListener("change", (event) => go({ k: Number(event.target.value) || DEFAULT_K }));
  byId("csv").addEventListener("click", downloadTable("csv"));
  byId("xlsx").addEventListener("click", downloadTable("xlsx"));
  byId("share").addEventListener("click", share);
  byId("pairs").addEventListener("click", downloadPairs);
  moreButton().addEventListener("click", showMore);
  byId("none").querySelector("button").addEventListener("click", dropFilters);
  byId("skip").addEventListener("click", (event) => { event.preventDefault(); byId("results").focus(); });
  byId("map-toggle").addEventListener("click", () => { note({ map: !isWanted() }); softly(showMap)(); });
  byId("expand").addEventListener("click", ({ currentTarget: each }) => {
    const isOpen = each.getAttribute("aria-pressed") !== "true";
    each.setAttribute("aria-pressed", String(isOpen));
    openAll(isOpen);
  });
  isWide.addEventListener("change", () => { if (answer) softly(loadMap)(loading.signal); });
  window.addEventListener("resize", lastly(150, redraw));
  document.addEventListener("row", lastly(30, ({ detail }) => spotlight(detail)));
  document.addEventListener("key", lastly(30, () => {
    if (byId("message").hasChildNodes()) load();
    lookForLists();
    showPairCount();
  }));
  follow(load);
  if (!current().anchors.length && !current().list && matchMedia("(min-width: 761px)").matches) byId("search").focus();
  refresh();
}

function refresh() {
  showReadiness();
  load();
  lookForLists();
  showPairCount();
}

start();
