// Verdicts: which hits are competitors and which are not. They are kept, and come back as labelled pairs.

import { ProblemError, ask, download, isKind, isMissing } from "./ask.js";
import { byId, counted, el, say } from "./dom.js";
import { softly, toast } from "./problems.js";

export const COMPETITOR = "competitor";
export const NOT_COMPETITOR = "not_competitor";
export const UNSURE = "unsure"; // cannot be told: no label, whatever others say
export const WITHDRAWN = "withdrawn"; // events are only ever added; this one says that the last verdict is void
const COUNT_AGAIN = 3_000; // milliseconds until a service that was too busy is asked for the count of pairs again

let verdicts = new Map(); // {verdict, note} by hit id, for the anchor
let about = null; // {anchor: company or null, generation, bundle}
const steps = []; // {of, changes}: what can be undone, the last one last; `of` is what the page was about
let changes = 0; // how often this page changed a verdict, so that an older answer does not undo one
const sending = new Set(); // requests that save a verdict: an answer to another request may still lack it
let onVerdict = () => {};

export const rejected = () => [...verdicts].filter(([, { verdict }]) => verdict === NOT_COMPETITOR).map(([id]) => id);
export const verdictOf = (id) => verdicts.get(id)?.verdict;
export const noteOf = (id) => verdicts.get(id)?.note ?? "";
export const judgedFor = () => (document.body.classList.contains("no-verdicts") ? null : about?.anchor ?? null);
export const countOf = (ids) => ({
  accepted: ids.filter((id) => verdictOf(id) === COMPETITOR).length,
  rejected: ids.filter((id) => verdictOf(id) === NOT_COMPETITOR).length,
});

export function followVerdicts(listener) {
  onVerdict = listener;
}

// Verdicts are about the first company that was asked about; words of one's own have no verdicts.
export async function loadVerdicts(answer, signal) {
  const anchor = answer.anchors.find(({ company }) => company)?.company ?? null;
  if (anchor?.id !== about?.anchor?.id) verdicts = new Map();
  about = { anchor, generation: answer.generation, bundle: answer.model.bundle_id };
  document.body.classList.toggle("no-verdicts", !anchor);
  if (anchor) await readVerdicts(anchor, signal);
}

// After verdicts that were given elsewhere than beside the hits.
export const refreshVerdicts = softly(async () => {
  if (judgedFor()) await readVerdicts(judgedFor());
});

async function readVerdicts(anchor, signal) {
  try {
    let found, seen;
    do {
      seen = changes;
      await Promise.allSettled(sending);
      found = await ask("/feedback", { params: { anchor: anchor.id, limit: 1 }, signal });
    } while (seen !== changes);
    if (judgedFor()?.id !== anchor.id) return; // the page went on to another company
    verdicts = new Map(found.verdicts.map(({ hit, verdict, note }) => [hit, { verdict, note }]));
  } catch (error) {
    document.body.classList.add("no-verdicts");
    if (!isMissing(error)) throw error;
  }
  onVerdict();
}

export function sendVerdict(body) {
  const sent = ask("/feedback", { body }).finally(() => sending.delete(sent));
  sending.add(sent);
  return sent;
}

export function verdictButtons(hit) {
  const { name } = hit.company;
  const part = (verdict, sign, word, label) => el("button", {
    type: "button", class: `verdict ${verdict}`, "data-verdict": verdict, "aria-pressed": "false", "aria-label": label, title: label,
    onclick: () => judge(hit, verdict),
  }, el("span", { "aria-hidden": "true" }, sign), el("span", { class: "verdict-word" }, word));
  return [part(COMPETITOR, "✓", "Accept", `Accept ${name}`), part(NOT_COMPETITOR, "✕", "Reject", `Reject ${name}`)];
}

export function showVerdict(row, id) {
  const verdict = verdictOf(id);
  row.classList.toggle("accepted", verdict === COMPETITOR);
  row.classList.toggle("rejected", verdict === NOT_COMPETITOR);
  for (const each of row.querySelectorAll("[data-verdict]")) each.setAttribute("aria-pressed", String(each.dataset.verdict === verdict));
  for (const each of row.querySelectorAll(".noted-words")) each.textContent = noteOf(id);
  for (const each of row.querySelectorAll(".noted")) each.hidden = !noteOf(id);
  for (const each of row.querySelectorAll(".note-button")) each.hidden = !verdict;
}

export const accept = (hit) => judge(hit, COMPETITOR);
export const reject = (hit) => judge(hit, NOT_COMPETITOR);

// The same verdict a second time takes it back. Another verdict keeps the note.
function judge(hit, verdict) {
  const { id } = hit.company;
  return save([{ hit, after: verdictOf(id) === verdict ? null : { verdict, note: noteOf(id) } }]);
}

// Several hits at once, and one step to undo. Those that have this verdict stay as they are.
export function judgeAll(hits, verdict) {
  const others = hits.filter(({ company }) => verdictOf(company.id) !== verdict);
  if (!others.length) return toast("They have this verdict already.");
  return save(others.map((hit) => ({ hit, after: { verdict, note: noteOf(hit.company.id) } })));
}

export const saveNote = (hit, note) => save([{ hit, after: { verdict: verdictOf(hit.company.id), note } }]);

export const undo = () => takeBack(steps.at(-1));

// Also when the page is about another company by now.
function takeBack(step) {
  const place = steps.lastIndexOf(step);
  if (place < 0) return null; // nothing to take back, or taken back already
  steps.splice(place, 1);
  return save(step.changes.map(({ hit, before }) => ({ hit, after: before })), { of: step.of, undoes: step });
}

// `changes`: {hit, after}, where `after` is {verdict, note}, or null for none. What was saved before a failure stays.
const save = softly(async (changes, { of = about, undoes = null } = {}) => {
  if (!of?.anchor || (isShown(of) && document.body.classList.contains("no-verdicts"))) return;
  const done = [];
  try {
    for (const { hit, after } of changes) {
      if (changes.length > 1) say(`Saving ${done.length + 1} of ${changes.length}`);
      done.push({ hit, before: await saveOne(of, hit, after), after });
    }
  } catch (error) {
    if (undoes) steps.push({ of, changes: undoes.changes.slice(done.length) });
    throw error;
  } finally {
    const step = { of, changes: done };
    if (done.length && !undoes) steps.push(step);
    if (done.length) {
      const words = wordsFor(of, done);
      say(words);
      toast(words.replace(/\.?$/, "."), !undoes && { label: "Undo", act: () => takeBack(step) });
    }
  }
  await showPairCount();
});

async function saveOne(of, hit, after) {
  const { id } = hit.company;
  const before = isShown(of) ? verdicts.get(id) ?? null : null;
  setVerdict(of, id, after);
  try {
    await sendVerdict({
      anchor: of.anchor.id, hit: id, verdict: after?.verdict ?? WITHDRAWN, note: after?.note ?? "", rank: hit.rank, score: hit.score, probability: hit.probability,
      generation: of.generation, bundle_id: of.bundle,
    });
  } catch (error) {
    setVerdict(of, id, before);
    throw error;
  }
  return before;
}

function wordsFor(of, done) {
  const [{ hit, before, after }] = done;
  const isOnlyNote = after && before?.verdict === after.verdict;
  const isMixed = done.some((each) => each.after?.verdict !== after?.verdict);
  const did = isMixed ? "have their earlier verdicts" : isOnlyNote ? (after.note ? "noted" : "has no note now")
    : { [COMPETITOR]: "accepted", [NOT_COMPETITOR]: "rejected", [UNSURE]: "cannot be told" }[after?.verdict] ?? `${done.length > 1 ? "have" : "has"} no verdict now`;
  const others = after && !isMixed ? done.filter((each) => each.before && each.before.verdict !== after.verdict).length : 0;
  const words = `${done.length > 1 ? counted(done.length, "company", "companies") : hit.company.name} ${did}${done.length > 1 && others ? `; ${others} had another verdict` : ""}`;
  return isShown(of) ? words : `${words}, as a competitor of ${of.anchor.name}`;
}

const isShown = (of) => of.anchor.id === about?.anchor?.id;

function setVerdict(of, id, after) {
  if (!isShown(of)) return;
  changes += 1;
  if (after) verdicts.set(id, after);
  else verdicts.delete(id);
  onVerdict();
}

// ---- Labelled pairs

let counting = null; // how many there are, while that is asked
let isOutdated = false; // another verdict has come since it was asked

// Beside everything else: it is asked once at a time, and where the service is too busy the last count stays for a while.
export async function showPairCount() {
  isOutdated = true;
  counting ??= (async () => {
    for (; isOutdated; await countAgain()) isOutdated = false;
  })().finally(() => { counting = null; });
  await counting;
}

async function countAgain() {
  const link = byId("pairs");
  try {
    const count = await countPairs();
    link.textContent = `${counted(count, "labelled pair")} ↓`;
    link.title = "Download the labelled pairs as CSV, ready for training";
    link.hidden = count === 0;
    byId("open-judge").hidden = false;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    byId("open-judge").hidden = isMissing(error); // of a service that is only busy nothing is hidden
    if (isMissing(error)) link.hidden = true;
    if (isKind(error, "overloaded")) setTimeout(showPairCount, COUNT_AGAIN);
  }
}

async function countPairs() {
  const response = await ask("/feedback/pairs", { params: { format: "jsonl", sides: "ids" }, accept: "application/x-ndjson", isPatient: false });
  const lines = (await response.text()).split("\n").filter(Boolean).map((line) => JSON.parse(line));
  return lines.filter(({ label }) => label !== null && label !== "").length;
}

export const downloadPairs = softly((event) => {
  event.preventDefault();
  return download("/feedback/pairs", { params: { format: "csv" }, name: "pairs.csv" });
});
