// "Add it": a company that the index lacks, from a small form, where the caller may write.

import { ProblemError, ask, isKind } from "./ask.js";
import { byId, el } from "./dom.js";
import { companyLink, goToCompany } from "./links.js";

const LONGEST_ID = 64;
const PATIENCE = 30; // seconds until a write that a stream takes over is to be seen

let added = ""; // the id that this form has written: its text can be corrected, and nobody else's company is replaced

const pathOf = (id) => `/companies/${encodeURIComponent(id)}`;

export function startAdding() {
  byId("adding-form").addEventListener("submit", add);
  byId("new-name").addEventListener("input", showId);
}

export async function openAdding(name) {
  added = "";
  for (const id of ["new-description", "new-website"]) byId(id).value = "";
  byId("new-name").value = name;
  showId();
  fail("");
  byId("adding-form").hidden = true;
  byId("adding-denied").hidden = true;
  const words = await whyNot();
  byId("adding-form").hidden = words !== null;
  byId("adding-denied").hidden = words === null;
  byId("adding-denied").textContent = words ?? "";
  if (!byId("adding").open) byId("adding").showModal();
  if (words === null) byId("new-description").focus();
}

// Why this caller cannot add companies; null if they can. A write without content is refused in any case, and the
// refusal says whether a complete one would be.
async function whyNot() {
  try {
    await ask(pathOf(idOf("probe")), { method: "PUT", body: {} });
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    if (isKind(error, "invalid-request")) return null;
    if (isKind(error, "writes-off")) return `Companies cannot be added here: ${error.problem.detail}.`;
    if (error.problem.status === 403 || error.problem.status === 401) return "Your key may not add companies. Ask the person who runs this service for a key with the scope “write”, or to add the company.";
    return `${error.problem.title}: ${error.problem.detail}`;
  }
  return null;
}

// Letters and digits of the name; of a name without any in Latin script, a number that is always the same.
export function idOf(name) {
  const plain = name.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
  if (plain) return plain.slice(0, LONGEST_ID);
  return `company-${[...name].reduce((sum, each) => (Math.imul(sum, 31) + each.codePointAt(0)) >>> 0, 7).toString(36)}`;
}

function showId() {
  byId("new-id").textContent = idOf(byId("new-name").value.trim());
}

async function add(event) {
  event.preventDefault();
  const [name, description, domain] = ["new-name", "new-description", "new-website"].map((id) => byId(id).value.trim());
  const id = idOf(name);
  const submit = byId("adding-form").querySelector(".primary");
  submit.disabled = true;
  fail("");
  try {
    const existing = await stored(id) ?? await stored(name);
    if (existing && existing.id !== added) return fail("There is a company with this id or name already: ", linkTo(existing, `${existing.name} (${existing.id})`));
    const written = await ask(pathOf(id), { method: "PUT", body: { name, description, ...(domain ? { domain } : {}) } });
    added = id;
    if (written.status) await untilStored(written.status);
    if (written.warnings.length) return fail(`It is stored, but ${written.warnings.join("; ")}. `, linkTo({ id }, "Show it as it is"));
    byId("adding").close();
    return await goToCompany(id);
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    const { title, detail, errors = [] } = error.problem;
    return fail([`${title}.`, detail, ...errors.map(({ parameter, reason }) => `${parameter}: ${reason}`)].join(" "));
  } finally {
    submit.disabled = false;
  }
}

const linkTo = (company, words) => el("span", { onclick: () => byId("adding").close() }, companyLink(company, null, words));

async function stored(id) {
  try {
    return (await ask(pathOf(id), { params: { resolve: "exact" } })).company;
  } catch (error) {
    if (isKind(error, "unknown-company", "contested-name")) return null; // several have the name: so may another one
    throw error;
  }
}

async function untilStored(status) {
  for (let waited = 0; waited < PATIENCE; waited += 1) {
    if ((await ask(status)).outcome !== "accepted") return;
    await new Promise((resolve) => { setTimeout(resolve, 1000); });
  }
}

function fail(...words) {
  byId("adding-error").replaceChildren(...words);
}
