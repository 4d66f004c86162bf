// Verdicts: which hits are competitors and which are not. They are kept, and come back as labelled pairs.

import { ask, download, isMissing } from "./ask.js";
import { byId, counted, el, say } from "./dom.js";
import { softly, toast } from "./problems.js";

export const COMPETITOR = "competitor";
export const NOT_COMPETITOR = "not_competitor";
export const UNSURE = "unsure"; // cannot be told: no label, whatever others say
export const WITHDRAWN = "withdrawn"; // events are only ever added; this one says that the last verdict is void

let verdicts = new Map(); // verdict by hit id, for the anchor
let about = null; // {anchor: company or null, generation, bundle}
const steps = []; // {anchor, hit, before}: what can be undone, the last one first
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

export function undo() {
  const step = steps.pop();
  if (step && step.anchor === about?.anchor?.id) save(step.hit, step.before ?? WITHDRAWN, { isUndo: true });
}

const save = softly(async (hit, verdict, { isUndo = false } = {}) => {
  const { id, name } = hit.company;
  const before = verdicts.get(id);
  setVerdict(id, verdict);
  try {
    await sendVerdict({
      anchor: about.anchor.id, hit: id, verdict, rank: hit.rank, score: hit.score, probability: hit.probability,
      generation: about.generation, bundle_id: about.bundle,
    });
  } catch (error) {
    setVerdict(id, before);
    throw error;
  }
  if (!isUndo) steps.push({ anchor: about.anchor.id, hit, before });
  const done = { [COMPETITOR]: "accepted", [NOT_COMPETITOR]: "rejected", [WITHDRAWN]: "has no verdict now" }[verdict];
  say(`${name} ${done}`);
  toast(`${name} ${done}.`, !isUndo && { label: "Undo", act: undo });
  await showPairCount();
});

function setVerdict(id, verdict) {
  if (verdict === undefined || verdict === WITHDRAWN) verdicts.delete(id);
  else verdicts.set(id, verdict);
  onVerdict();
}

// ---- Labelled pairs

export const showPairCount = softly(async () => {
  const link = byId("pairs");
  try {
    const count = await countPairs();
    link.textContent = `${counted(count, "labelled pair")} ↓`;
    link.title = "Download the labelled pairs as CSV, ready for training";
    link.hidden = count === 0;
    byId("open-judge").hidden = false;
  } catch (error) {
    if (!isMissing(error)) throw error;
    link.hidden = true;
    byId("open-judge").hidden = true;
  }
});

async function countPairs() {
  const response = await ask("/feedback/pairs", { params: { format: "jsonl", sides: "ids" }, accept: "application/x-ndjson" });
  const lines = (await response.text()).split("\n").filter(Boolean).map((line) => JSON.parse(line));
  return lines.filter(({ label }) => label !== null && label !== "").length;
}

export const downloadPairs = softly((event) => {
  event.preventDefault();
  return download("/feedback/pairs", { params: { format: "csv" }, name: "pairs.csv" });
});
