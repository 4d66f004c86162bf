"use strict";

// The address is the state: everything shown follows from it, so every view can be shared and gone back to.
// ?company=ID or ?text=WORDS, with k=, country= and industry= (both repeatable).

const FILTERS = ["country", "industry"];
const DEFAULT_K = "25";
const EXAMPLES = ["Nike", "Spotify", "Toyota", "Siemens", "Pfizer", "Netflix"];

const byId = (id) => document.getElementById(id);

function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== ""));
  return node;
}

// ---- Asking the service

class ProblemError extends Error {
  constructor(problem) {
    super(problem.detail);
    this.problem = problem;
  }
}

async function ask(path, params, signal) {
  let response;
  try {
    response = await fetch(`${path}?${new URLSearchParams(params)}`, { signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ProblemError({ title: "The service does not answer", status: 0, detail: "It may have been stopped. Start it again, then retry." });
  }
  const body = await response.json().catch(() => null);
  if (response.ok && body) return body;
  throw new ProblemError(body ?? { title: "Unexpected answer", status: response.status, detail: `The service answered with status ${response.status}.` });
}

// ---- State

let state = readAddress();
let shown = null; // the answer on the page
let facets = { key: "", hits: [] }; // what the filters are built from: the same question without filters
let current = new AbortController();

function readAddress() {
  const params = new URLSearchParams(location.search);
  const k = params.get("k");
  return {
    company: params.get("company") ?? "",
    text: params.get("text") ?? "",
    k: [...byId("k").options].some((option) => option.text === k) ? k : DEFAULT_K,
    country: params.getAll("country"),
    industry: params.getAll("industry"),
  };
}

function addressOf({ company, text, k, country, industry }) {
  const params = new URLSearchParams();
  if (company) params.set("company", company);
  else if (text) params.set("text", text);
  if (k !== DEFAULT_K) params.set("k", k);
  for (const value of country) params.append("country", value);
  for (const value of industry) params.append("industry", value);
  const query = params.toString();
  return query ? `/?${query}` : "/";
}

function go(change) {
  state = { ...state, ...change };
  history.pushState(null, "", addressOf(state));
  return load();
}

const goToCompany = (company) => go({ company, text: "", country: [], industry: [] }).then(toTop);
const goToText = (text) => go({ company: "", text, country: [], industry: [] }).then(toTop);

function toTop() {
  window.scrollTo(0, 0);
  if (shown) byId("anchor-name").focus({ preventScroll: true });
}

// ---- Loading

async function load() {
  current.abort();
  current = new AbortController();
  const { signal } = current;
  showForm();
  if (!state.company && !state.text) return showStart();
  byId("start").hidden = true;
  document.body.classList.add("waiting");
  byId("results").setAttribute("aria-busy", "true");
  try {
    const [answer, unfiltered] = await Promise.all([question(true, signal), unfilteredHits(signal)]);
    facets = unfiltered ?? { key: facetKey(), hits: answer.hits };
    showAnswer(answer);
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof ProblemError)) throw error;
    showProblem(error.problem);
  } finally {
    if (current.signal === signal) {
      document.body.classList.remove("waiting");
      byId("results").removeAttribute("aria-busy");
    }
  }
}

function question(filtered, signal) {
  const params = [["k", state.k]];
  if (filtered) for (const name of FILTERS) for (const value of state[name]) params.push([name, value]);
  if (state.company) return ask(`/similar/${encodeURIComponent(state.company)}`, params, signal);
  return ask("/similar", [["text", state.text], ...params], signal);
}

const facetKey = () => JSON.stringify([state.company, state.text, state.k]);

async function unfilteredHits(signal) {
  if (facets.key === facetKey()) return facets;
  if (FILTERS.every((name) => state[name].length === 0)) return null;
  return { key: facetKey(), hits: (await question(false, signal)).hits };
}

// ---- Showing

function showForm() {
  if (state.company || state.text) setMode(state.text ? "text" : "company");
  byId("search").value = "";
  byId("words").value = state.text;
  byId("k").value = state.k;
  byId("message").replaceChildren();
  closeOptions();
}

async function showStart() {
  shown = null;
  document.body.classList.remove("waiting");
  document.title = "Company similarity";
  byId("answer").hidden = true;
  byId("start").hidden = false;
  byId("status").textContent = "";
  const examples = await exampleCompanies().catch(() => []);
  byId("examples").replaceChildren(...(examples.length ? ["Try ", ...examples.map((each) => companyChip(each))] : []));
}

async function exampleCompanies() {
  const found = await Promise.all(EXAMPLES.map((q) => ask("/companies", { q, limit: 1 })));
  const known = found.flatMap(({ query, companies }) => companies.filter(({ name }) => name.startsWith(query)));
  return known.length ? known : (await ask("/companies", { q: "a", limit: 6 })).companies;
}

function companyChip(company) {
  const where = [company.domain, company.country].filter(Boolean).join(" · ");
  return companyLink(company, "chip", company.name, where ? el("small", {}, where) : null);
}

function companyLink(company, style, ...children) {
  const href = addressOf({ ...state, company: company.id, text: "", country: [], industry: [] });
  const onclick = (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    goToCompany(company.id);
  };
  return el("a", { href, class: style, onclick }, ...children);
}

function siteLink(domain, style) {
  if (!domain) return null;
  return el("a", { href: `https://${domain}`, class: style, target: "_blank", rel: "noopener noreferrer" }, domain);
}

function showProblem(problem) {
  shown = null;
  byId("answer").hidden = true;
  byId("start").hidden = true;
  document.title = `${problem.title} · Company similarity`;
  const choices = problem.candidates ?? problem.suggestions ?? [];
  const box = el("section", { class: problem.candidates ? "problem choice" : "problem" }, el("h1", {}, problem.title), el("p", { class: "detail" }, problem.detail));
  if (choices.length) box.append(el("p", { class: "chips" }, ...choices.map(companyChip)));
  if (problem.status === 0 || problem.status >= 500) {
    box.append(el("p", { class: "chips" }, el("button", { type: "button", class: "quiet", onclick: refresh }, "Try again")));
  }
  byId("message").replaceChildren(box);
}

function showAnswer(answer) {
  shown = answer;
  byId("answer").hidden = false;
  const name = answer.company?.name ?? "your description";
  document.title = `${answer.company ? `Competitors of ${name}` : "Companies like your description"} · Company similarity`;
  byId("results-title").textContent = answer.company ? "Competitors" : "Companies like it";
  byId("status").textContent = `${answer.hits.length} companies like ${name}`;
  showAnchor(answer);
  showFilters();
  showHits(answer);
}

function showAnchor({ company, text, language, warning, updated_at, redirected_from }) {
  const heading = el("h1", { id: "anchor-name", tabindex: "-1" }, company?.name ?? "Your description");
  const facts = company ? [company.country, company.industry].filter(Boolean).map((fact) => el("span", {}, fact)) : [];
  const site = company ? siteLink(company.domain, null) : null;
  byId("anchor").replaceChildren(
    heading,
    el("p", { class: "facts" }, ...facts, site),
    el("p", { class: "about", lang: language === "und" ? null : language, dir: "auto", tabindex: "0" }, company?.description ?? text),
    ...(warning ? [el("p", { class: "tag" }, warning)] : []),
    ...(company ? [el("p", { class: "note" }, anchorNote(company, updated_at, redirected_from))] : []),
  );
}

function anchorNote(company, updatedAt, redirectedFrom) {
  const parts = [`id ${company.id}`, `as of ${updatedAt.slice(0, 10)}`];
  if (redirectedFrom) parts.unshift(`found as “${redirectedFrom}”`);
  if (company.aliases.length) parts.unshift(`also ${company.aliases.slice(0, 4).join(", ")}`);
  return parts.join(" · ");
}

function showFilters() {
  byId("facets").replaceChildren(...FILTERS.map((name) => facetGroup(name, countValues(name))));
  const chosen = FILTERS.flatMap((name) => state[name].map((value) => [name, value]));
  byId("filter-count").textContent = chosen.length ? `· ${chosen.length}` : "";
  const chips = chosen.map(([name, value]) =>
    el("button", { type: "button", class: "chip", "aria-label": `Remove filter ${value}`, onclick: () => toggle(name, value) }, value, el("small", { "aria-hidden": "true" }, "✕")));
  byId("active").replaceChildren(...chips);
}

function countValues(name) {
  const counts = new Map(state[name].map((value) => [value, 0]));
  for (const { company } of facets.hits) if (company[name]) counts.set(company[name], (counts.get(company[name]) ?? 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1] || one[0].localeCompare(other[0]));
}

function facetGroup(name, counts) {
  const boxes = counts.map(([value, count]) => {
    const box = el("input", { type: "checkbox", name, value, onchange: () => toggle(name, value) });
    box.checked = state[name].includes(value);
    return el("label", {}, box, el("span", {}, value), el("small", {}, String(count || "")));
  });
  return el("div", { role: "group", "aria-label": name }, el("h2", {}, name[0].toUpperCase() + name.slice(1)), ...boxes);
}

async function toggle(name, value) {
  const chosen = state[name].includes(value) ? state[name].filter((each) => each !== value) : [...state[name], value];
  await go({ [name]: chosen });
  // The boxes were built anew: give the keyboard its place back.
  document.querySelector(`#facets input[name="${name}"][value="${CSS.escape(value)}"]`)?.focus();
}

function showHits({ hits, approximate, took_ms, generation, model }) {
  const calibrated = hits.some(({ probability }) => probability !== null);
  byId("match-head").textContent = calibrated ? "Likely competitor" : "Cosine";
  byId("hits").replaceChildren(...hits.map((hit) => hitRow(hit)));
  byId("none").hidden = hits.length > 0;
  const meaning = calibrated
    ? "The percentage is the chance of being a competitor, estimated from the cosine of the two descriptions. "
    : "The cosine says how alike two descriptions are; it is no probability. ";
  const how = approximate ? "Approximate search" : "Every company compared";
  byId("provenance").textContent = `${meaning}${how} in ${took_ms.toFixed(1)} ms · index ${generation} · encoder ${model.encoder_id}`;
}

function hitRow({ rank, company, score, probability, language, warning }) {
  const share = probability ?? Math.max(score, 0);
  const bar = el("i");
  bar.style.width = `${share * 100}%`; // set by script, because the security policy allows no inline styles
  return el("li", { class: "row" },
    el("span", { class: "rank" }, String(rank)),
    el("div", { class: "what" },
      companyLink(company, "name", company.name),
      siteLink(company.domain, "site"),
      warning ? el("span", { class: "tag", title: warning }, `not English: ${language}`) : null,
      description(company, rank, language)),
    el("div", { class: "place" }, el("span", { class: "country" }, company.country), el("span", { class: "industry" }, company.industry)),
    el("span", { class: "match" },
      probability === null ? score.toFixed(2) : `${Math.round(share * 100)} %`,
      el("span", { class: "track", "aria-hidden": "true" }, bar),
      probability === null ? null : el("small", {}, `cosine ${score.toFixed(2)}`)));
}

function description(company, rank, language) {
  const id = `about-${rank}`;
  const button = el("button", { type: "button", class: "link more", "aria-controls": id, "aria-label": `Description of ${company.name}` });
  const box = el("div", { class: "about-hit" },
    el("p", { id, lang: language === "und" ? null : language, dir: "auto" }, company.description), button);
  const set = (open) => {
    box.classList.toggle("short", !open);
    button.setAttribute("aria-expanded", String(open));
    button.textContent = open ? "less" : "more";
  };
  set(byId("expand").getAttribute("aria-pressed") === "true");
  button.addEventListener("click", () => set(button.getAttribute("aria-expanded") !== "true"));
  return box;
}

// ---- Search as you type: an ARIA combobox

let options = [];
let active = -1;
let typing = new AbortController();
let timer = 0;

function suggest() {
  clearTimeout(timer);
  typing.abort();
  const q = byId("search").value.trim();
  if (!q) return closeOptions();
  timer = setTimeout(async () => {
    typing = new AbortController();
    try {
      const { companies } = await ask("/companies", { q, limit: 8 }, typing.signal);
      openOptions(companies);
    } catch (error) {
      if (error instanceof ProblemError) showProblem(error.problem);
      else if (error.name !== "AbortError") throw error;
    }
  }, 90);
}

function openOptions(companies) {
  options = companies;
  active = -1;
  const items = companies.map((company, position) =>
    el("li", { role: "option", id: `option-${position}`, "aria-selected": "false", onmousedown: (event) => { event.preventDefault(); choose(position); } },
      el("span", {}, company.name),
      el("span", { class: "where" }, [company.country, company.industry].filter(Boolean).join(" · "))));
  if (!items.length) items.push(el("li", { class: "nothing", role: "option", "aria-disabled": "true" }, "No company found"));
  byId("options").replaceChildren(...items);
  byId("options").hidden = false;
  byId("search").setAttribute("aria-expanded", "true");
  byId("search").removeAttribute("aria-activedescendant");
}

function closeOptions() {
  clearTimeout(timer);
  typing.abort();
  options = [];
  active = -1;
  byId("options").hidden = true;
  byId("search").setAttribute("aria-expanded", "false");
  byId("search").removeAttribute("aria-activedescendant");
}

function move(step) {
  if (!options.length) return;
  // One place before the first option stands for the typed text itself.
  active = ((active + 1 + step + options.length + 1) % (options.length + 1)) - 1;
  [...byId("options").children].forEach((item, position) => item.setAttribute("aria-selected", String(position === active)));
  if (active < 0) return byId("search").removeAttribute("aria-activedescendant");
  byId("search").setAttribute("aria-activedescendant", `option-${active}`);
  byId(`option-${active}`).scrollIntoView({ block: "nearest" });
}

function choose(position) {
  const chosen = options[position];
  if (chosen) goToCompany(chosen.id);
}

function onSearchKey(event) {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    if (byId("options").hidden) suggest();
    else move(event.key === "ArrowDown" ? 1 : -1);
  } else if (event.key === "Escape") {
    event.preventDefault();
    if (byId("options").hidden) byId("search").value = "";
    closeOptions();
  }
}

function onSubmit(event) {
  event.preventDefault();
  if (mode() === "text") {
    const text = byId("words").value.trim();
    if (text && !byId("ask-words").disabled) goToText(text);
    return;
  }
  const typed = byId("search").value.trim();
  if (active >= 0) choose(active);
  else if (typed) goToCompany(typed);
}

// ---- The two ways to ask

const mode = () => document.querySelector("input[name=mode]:checked").value;

function setMode(value) {
  document.querySelector(`input[name=mode][value=${value}]`).checked = true;
  byId("by-company").hidden = value !== "company";
  byId("by-text").hidden = value !== "text";
}

async function showReadiness() {
  try {
    const ready = await ask("/readyz", {});
    byId("corpus").textContent = `${ready.companies.toLocaleString("en")} companies`;
    byId("ask-words").disabled = !ready.free_text;
    if (!ready.free_text) byId("words-note").textContent = `Not available: ${ready.free_text_reason}.`;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    if (!state.company && !state.text) showProblem(error.problem);
  }
}

// ---- Taking it along

function downloadCsv() {
  const columns = ["rank", "id", "name", "domain", "country", "industry", "score", "probability", "description"];
  const rows = shown.hits.map((hit) => columns.map((column) => cell(hit[column] ?? hit.company[column] ?? "")).join(","));
  const blob = new Blob([`\ufeff${columns.join(",")}\r\n${rows.join("\r\n")}\r\n`], { type: "text/csv" });
  const link = el("a", { href: URL.createObjectURL(blob), download: `competitors-${shown.company?.id ?? "description"}.csv` });
  link.click();
  URL.revokeObjectURL(link.href);
}

function cell(value) {
  // A leading quote keeps spreadsheets from running a company's words as a formula.
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return `"${text.replaceAll('"', '""')}"`;
}

// ---- Beginning

function start() {
  byId("filters").open = matchMedia("(min-width: 761px)").matches;
  byId("ask").addEventListener("submit", onSubmit);
  byId("search").addEventListener("input", suggest);
  byId("search").addEventListener("keydown", onSearchKey);
  byId("search").addEventListener("blur", closeOptions);
  byId("words").addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) onSubmit(event); });
  for (const radio of document.querySelectorAll("input[name=mode]")) {
    radio.addEventListener("change", () => { setMode(radio.value); byId(radio.value === "text" ? "words" : "search").focus(); });
  }
  byId("k").addEventListener("change", (event) => go({ k: event.target.value }));
  byId("csv").addEventListener("click", downloadCsv);
  byId("none").querySelector("button").addEventListener("click", () => go({ country: [], industry: [] }));
  byId("expand").addEventListener("click", ({ currentTarget: button }) => {
    button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
    if (shown) showHits(shown);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.matches("input:not([type=radio]), textarea, select")) return;
    event.preventDefault();
    setMode("company");
    byId("search").focus();
  });
  window.addEventListener("popstate", () => { state = readAddress(); load(); });
  if (!state.company && !state.text && matchMedia("(min-width: 761px)").matches) byId("search").focus();
  refresh();
}

function refresh() {
  showReadiness();
  load();
}

start();
