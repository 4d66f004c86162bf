// Verdicts: which hits are competitors and which are not. They are kept, and come back as labelled pairs.

import { ProblemError, ask, download, isMissing } from "./ask.js";
import { byId, counted, el, say } from "./dom.js";
import { softly, toast } from "./problems.js";

export const COMPETITOR = "competitor";
export const NOT_COMPETITOR = "not_competitor";
export const UNSURE = "unsure"; // cannot be told: no label, whatever others say
export const WITHDRAWN = "withdrawn"; // events are only ever added; this one says that the last verdict is void

let verdicts = new Map(); // verdict by hit id, for the anchor
let about = null; // {anchor: company or null, generation, bundle}
const steps = []; // {of, hit, before}: what can be undone, the last one last; `of` is what the page was about
let onVerdict = () => {};

export const rejected = () => [...verdicts].filter(([, verdict]) => verdict === NOT_COMPETITOR).map(([id]) => id);
export const judgedFor = () => (document.body.classList.contains("no-verdicts") ? null : about?.anchor ?? null);
export const countOf = (ids) => ({
  accepted: ids.filter((id) => verdicts.get(id) === COMPETITOR).length,
  rejected: ids.filter((id) => verdicts.get(id) === NOT_COMPETITOR).length,
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
    const found = await ask("/feedback", { params: { anchor: anchor.id, limit: 1 }, signal });
    verdicts = new Map(found.verdicts.map(({ hit, verdict }) => [hit, verdict]));
  } catch (error) {
    document.body.classList.add("no-verdicts");
    if (!isMissing(error)) throw error;
  }
  onVerdict();
}

export const sendVerdict = (body) => ask("/feedback", { body });

export function verdictButtons(hit) {
  const { name } = hit.company;
  const part = (verdict, sign, word, label) => el("button", {
    type: "button", class: `verdict ${verdict}`, "data-verdict": verdict, "aria-pressed": "false", "aria-label": label, title: label,
    onclick: () => judge(hit, verdict),
  }, el("span", { "aria-hidden": "true" }, sign), el("span", { class: "verdict-word" }, word));
  return [part(COMPETITOR, "✓", "Accept", `Accept ${name}`), part(NOT_COMPETITOR, "✕", "Reject", `Reject ${name}`)];
}

export function showVerdict(row, id) {
  const verdict = verdicts.get(id);
  row.classList.toggle("accepted", verdict === COMPETITOR);
  row.classList.toggle("rejected", verdict === NOT_COMPETITOR);
  for (const each of row.querySelectorAll("[data-verdict]")) each.setAttribute("aria-pressed", String(each.dataset.verdict === verdict));
}

export const accept = (hit) => judge(hit, COMPETITOR);
export const reject = (hit) => judge(hit, NOT_COMPETITOR);

// The same verdict a second time takes it back.
function judge(hit, verdict) {
  if (!about?.anchor || document.body.classList.contains("no-verdicts")) return null;
  return save(hit, verdicts.get(hit.company.id) === verdict ? WITHDRAWN : verdict);
}

export const undo = () => takeBack(steps.at(-1));

// Also when the page is about another company by now.
function takeBack(step) {
  const place = steps.lastIndexOf(step);
  if (place < 0) return null; // nothing to take back, or taken back already
  steps.splice(place, 1);
  return save(step.hit, step.before ?? WITHDRAWN, { of: step.of, undoes: step });
}

const save = softly(async (hit, verdict, { of = about, undoes = null } = {}) => {
  const { id, name } = hit.company;
  const before = verdicts.get(id);
  setVerdict(of, id, verdict);
  try {
    await sendVerdict({
      anchor: of.anchor.id, hit: id, verdict, rank: hit.rank, score: hit.score, probability: hit.probability,
      generation: of.generation, bundle_id: of.bundle,
    });
  } catch (error) {
    setVerdict(of, id, before);
    if (undoes) steps.push(undoes);
    throw error;
  }
  const step = { of, hit, before };
  if (!undoes) steps.push(step);
  const done = { [COMPETITOR]: "accepted", [NOT_COMPETITOR]: "rejected", [WITHDRAWN]: "has no verdict now" }[verdict];
  const words = isShown(of) ? `${name} ${done}` : `${name} ${done}, as a competitor of ${of.anchor.name}`;
  say(words);
  toast(`${words}.`, !undoes && { label: "Undo", act: () => takeBack(step) });
  await showPairCount();
});

const isShown = (of) => of.anchor.id === about?.anchor?.id;

function setVerdict(of, id, verdict) {
  if (!isShown(of)) return;
  if (verdict === undefined || verdict === WITHDRAWN) verdicts.delete(id);
  else verdicts.set(id, verdict);
  onVerdict();
}

// ---- Labelled pairs

let counting = null; // how many there are, while that is asked
let isOutdated = false; // another verdict has come since it was asked

// Beside everything else: it is asked once at a time, and where the service is too busy the last count stays.
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
    if (!isMissing(error)) return;
    link.hidden = true;
    byId("open-judge").hidden = true;
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
