// What to judge next: one pair at a time, with both descriptions side by side, by click or by a single key.

import { ProblemError, ask } from "./ask.js";
import { byId, counted, el } from "./dom.js";
import { COMPETITOR, NOT_COMPETITOR, UNSURE, WITHDRAWN, judgedFor, refreshVerdicts, sendVerdict, showPairCount } from "./feedback.js";
import { areKeysOn } from "./keys.js";
import { facts, siteLink } from "./links.js";
import { softly } from "./problems.js";

const AT_ONCE = 10;
const MOST = 100; // of one answer
const LATELY = ""; // of whatever companies were judged or saved last
const SAID = { [COMPETITOR]: "competitors", [NOT_COMPETITOR]: "no competitors", [UNSURE]: "cannot be told" };

let pairs = []; // still to be judged, the shown one first, each with the `source` of the answer it came in
let shown = null; // the pair whose two descriptions are to be seen: only that one can be judged
let unread = null; // the pair that could not be shown; it can be skipped
let passed = new Set(); // keys of pairs that were skipped
let done = []; // {pair, verdict}: what can be undone, the last one last
let asked = 0; // answers to older requests are thrown away
let isBusy = false;
const companies = new Map(); // what was read of companies, by id

const keyOf = ({ anchor, hit }) => [anchor.id, hit.id].sort().join(" ");

const VERDICTS = [
  { key: "a", verdict: COMPETITOR, words: "Competitors", style: "good" },
  { key: "r", verdict: NOT_COMPETITOR, words: "No competitors", style: "bad" },
  { key: "c", verdict: UNSURE, words: "Cannot tell" },
];
const ACTS = { s: () => skip(), u: () => undo() };

export function startJudging() {
  byId("judge-verdicts").prepend(...VERDICTS.map(({ key, verdict, words, style }) =>
    button(words, key, () => judge(verdict), `quiet ${style ?? ""}`)), button("Skip", "s", skip, "quiet"));
  byId("open-judge").addEventListener("click", open);
  byId("judge-of").addEventListener("change", () => { passed = new Set(); next(); });
  byId("judge-undo").addEventListener("click", () => undo());
  byId("judge").addEventListener("keydown", onKey);
  byId("judge").addEventListener("close", () => { if (done.length) refreshVerdicts(); });
}

const button = (words, key, onclick, style) => el("button", { type: "button", class: style, "aria-keyshortcuts": key, onclick: () => onclick() },
  words, " ", el("kbd", { "aria-hidden": "true" }, key));

function open() {
  const about = judgedFor();
  byId("judge-of").replaceChildren(
    ...(about ? [el("option", { value: about.id }, about.name)] : []), el("option", { value: LATELY }, "companies judged or saved last"));
  [done, passed] = [[], new Set()];
  said("");
  byId("judge").showModal();
  byId("pair").focus();
  next();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("select") || !areKeysOn()) return;
  const verdict = VERDICTS.find(({ key }) => key === event.key);
  const act = verdict ? () => judge(verdict.verdict) : ACTS[event.key];
  if (!act) return;
  event.preventDefault();
  if (!event.repeat) act(); // a key held down would judge pairs that nobody has read
}

// ---- Which pair

const next = softly(async () => {
  const mine = (asked += 1);
  byId("judge").setAttribute("aria-busy", "true");
  clear();
  pairs = []; // those of another choice are no longer wanted
  const anchor = byId("judge-of").value;
  const params = { k: Math.min(AT_ONCE + passed.size, MOST), ...(anchor === LATELY ? {} : { anchor }) };
  try {
    const found = await ask("/feedback/next", { params });
    if (mine !== asked) return;
    const source = { generation: found.generation, bundle: found.model.bundle_id };
    pairs = found.pairs.filter((pair) => !passed.has(keyOf(pair))).slice(0, AT_ONCE).map((pair) => ({ ...pair, source }));
    await show();
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    if (mine === asked) showFailure("No pair can be suggested.", error.problem);
  } finally {
    if (mine === asked) byId("judge").removeAttribute("aria-busy");
  }
});

// What stood there is gone before the next is read: a key must never meet a pair that nobody has seen.
function clear() {
  shown = null;
  unread = null;
  byId("pair").replaceChildren();
  byId("judge-why").textContent = "";
}

async function show() {
  const [pair] = pairs;
  clear();
  for (const id of ["pair", "judge-why", "judge-verdicts"]) byId(id).hidden = !pair;
  byId("judge-none").hidden = Boolean(pair);
  if (!pair) return;
  let both;
  try {
    both = await Promise.all([pair.anchor.id, pair.hit.id].map(read));
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    if (pairs[0] !== pair) return;
    unread = pair;
    showFailure(`${pair.anchor.name} and ${pair.hit.name} cannot be shown.`, error.problem);
    return;
  }
  if (pairs[0] !== pair) return; // judged meanwhile
  shown = pair;
  byId("pair").replaceChildren(...both.map(card));
  byId("judge-why").textContent = pair.why.join("; ");
  byId("judge").scrollTo(0, 0);
  if (pairs[1]) for (const { id } of [pairs[1].anchor, pairs[1].hit]) read(id).catch(() => {});
}

const again = softly(async () => {
  byId("pair").focus(); // the button goes, and keys would go nowhere
  if (pairs.length) await show();
  else await next();
});

// One of the two may have been deleted since, or the service is gone.
function showFailure(words, { title, detail }) {
  byId("pair").hidden = false;
  byId("judge-none").hidden = true;
  byId("judge-verdicts").hidden = !unread;
  byId("pair").replaceChildren(el("p", { class: "none" }, `${words} ${title}: ${detail} `,
    el("button", { type: "button", class: "link", onclick: again }, "Try again")));
}

// Its description belongs to a verdict, and the suggestion has only its name.
function read(id) {
  if (!companies.has(id)) {
    const reading = ask(`/companies/${encodeURIComponent(id)}`).then(({ company, language }) => ({ ...company, language }));
    reading.catch(() => companies.delete(id));
    companies.set(id, reading);
  }
  return companies.get(id);
}

function card(company, place) {
  const { name, domain, description, language } = company;
  return el("article", { "aria-labelledby": `pair-${place}` },
    el("h3", { id: `pair-${place}` }, name),
    el("p", { class: "facts" }, siteLink(domain, "site"), el("span", {}, facts(company))),
    el("p", { class: "words", lang: language === "und" ? null : language, dir: "auto" }, description));
}

// ---- What is said of it

const judge = (verdict) => once(async () => {
  const pair = shown;
  if (!pair) return;
  const step = { pair, verdict };
  await send(step, verdict);
  done.push(step);
  said(`${pair.anchor.name} and ${pair.hit.name}: ${SAID[verdict]}.`);
  advance(pair); // not waited for: until the next pair is there, the last verdict can be undone
  showPairCount();
});

const skip = () => once(async () => {
  const pair = shown ?? unread;
  if (!pair) return;
  passed.add(keyOf(pair));
  said(`${pair.anchor.name} and ${pair.hit.name}: skipped.`);
  advance(pair); // not waited for: until the next pair is there, the last verdict can be undone
});

const undo = () => once(async () => {
  const step = done.at(-1);
  if (!step) return;
  await send(step, WITHDRAWN);
  done.pop();
  asked += 1; // what may be on its way comes after this one
  byId("judge").removeAttribute("aria-busy");
  pairs.unshift(step.pair);
  said(`${step.pair.anchor.name} and ${step.pair.hit.name}: undone.`);
  await show();
  showPairCount();
});

async function advance(past) {
  pairs = pairs.filter((pair) => pair !== past);
  if (pairs.length) await show();
  else await next();
}

const send = ({ pair }, verdict) => sendVerdict({
  anchor: pair.anchor.id, hit: pair.hit.id, verdict, rank: pair.business_rank, score: pair.score, probability: pair.probability,
  generation: pair.source.generation, bundle_id: pair.source.bundle,
});

// One key held down is one verdict.
const once = softly(async (act) => {
  if (isBusy) return;
  isBusy = true;
  try {
    await act();
  } finally {
    isBusy = false;
  }
});

function said(words) {
  byId("judge-said").textContent = words;
  byId("judge-undo").hidden = done.length === 0;
  byId("judge-count").textContent = done.length ? `${counted(done.length, "pair")} judged` : "";
}
