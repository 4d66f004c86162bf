// The question on the page. The address carries all of it, so every view can be shared and gone back to:
//   ?company=ID | text=WORDS   an anchor (repeatable); weight=2 after it is its weight
//   unlike=ID | unlike_text=   a negative
//   segment=3                  the line of business of the company before it
//   country= industry= tag=    any of these; filter= takes FIELD=VALUE, !=, >=, <=, > and <, like the API
//   exclude_list=              a saved list of companies that are left out; repeatable
//   exclude=                   repeatable; more than a few go into the part after #, which browsers
//                              send to no server, so that no limit on addresses is met
//   rank= min_probability= k= map= list= sort=
//   view=table, columns=  as a table, and with which columns; without them as the reader looked last

const FEW_EXCLUSIONS = 20;
const LONGEST_GET = 2_000; // characters; longer questions are posted, and so are those with more than these
const [MOST_CONDITIONS, MOST_EXCLUDED] = [20, 100];
// The limits of a range: numbers, or levels of an ordinal attribute.
export const LIMITS = [
  { name: "at_least", sign: ">=", words: "≥" }, { name: "at_most", sign: "<=", words: "≤" },
  { name: "above", sign: ">", words: ">" }, { name: "below", sign: "<", words: "<" },
];
const SORTED = /^-?(rank|probability|score|name|country|industry|domain|attributes\..+)$/;
const CONDITION = /^([A-Za-z0-9_.-]+?)(!?=|[<>]=|[<>](?!=))(.*\S.*)$/s; // FIELD, sign, value
const [LEAST_WEIGHT, MOST_WEIGHT] = [0.001, 1000];
const DIRECT = { country: "country", industry: "industry", tag: "tags" };

export const MAX_ANCHORS = 10;
export const DEFAULT_K = 25;
// Beside what they do, "comparable" counts size and country.
export const RANK_WORDS = { comparable: "Comparable", business: "Business", cosine: "Cosine" };
export const RANKS = Object.keys(RANK_WORDS);
const EMPTY = Object.freeze({
  anchors: [], negatives: [], filters: [], exclude: [], excludeLists: [], rank: "comparable", minProbability: null, k: DEFAULT_K, map: null, list: "",
  sort: "", view: "rows", columns: null, ignored: [], // parts of the address that mean nothing
});
const VIEW = "similarity-view"; // localStorage: {view, columns}, as the reader looked last

let state = EMPTY;
let onChange = async () => {};

export const current = () => state;

export function follow(listener) {
  onChange = listener;
  window.addEventListener("popstate", () => { state = readAddress(); onChange(); });
  state = readAddress();
}

// Another question: a step that Back undoes. A saved list that was changed is a question of its own.
export function go(change) {
  state = { ...state, list: "", ignored: [], ...change };
  history.pushState(null, "", addressOf(state));
  return onChange();
}

// A place that was left, as in a link.
export function visit(address) {
  history.pushState(null, "", address);
  state = readAddress();
  return onChange();
}

// Another order, view or columns; the last two are how the next answer looks, too.
export function keepView(change) {
  note(change);
  try {
    localStorage.setItem(VIEW, JSON.stringify({ view: state.view, columns: state.columns }));
  } catch {
    // The browser keeps nothing: the address does.
  }
}

function lastView() {
  try {
    const { view, columns } = JSON.parse(localStorage.getItem(VIEW) ?? "{}");
    return { view: view === "table" ? view : EMPTY.view, columns: Array.isArray(columns) ? columns.map(String) : null };
  } catch {
    return { view: EMPTY.view, columns: null };
  }
}

// The same question seen otherwise (the map, a list's name): no step back.
export function note(change) {
  state = { ...state, ...change };
  history.replaceState(null, "", addressOf(state));
}

// Typed names as the ids that the answer found: a list keeps ids, and is not saved by a similar name.
export function noteIds({ anchors, negatives = [] }) {
  const withIds = (asked, found) => asked.map((each) => {
    const id = found.find(({ company, asked: typed }) => company && typed === each.company)?.company.id;
    return id && id !== each.company ? { ...each, company: id } : each;
  });
  const named = { anchors: withIds(state.anchors, anchors), negatives: withIds(state.negatives, negatives) };
  const isOther = ["anchors", "negatives"].some((role) => named[role].some((each, place) => each !== state[role][place]));
  if (isOther) note(named);
}

const asSeen = () => ({ ...EMPTY, k: state.k, map: state.map, sort: state.sort, view: state.view, columns: state.columns });
export const onlyAbout = (company) => ({ ...asSeen(), anchors: [{ company, weight: 1 }] });
export const onlyWords = (text) => ({ ...asSeen(), anchors: [{ text, weight: 1 }] });

// ---- The address

export function addressOf({ anchors, negatives, filters, exclude, excludeLists, rank, minProbability, k, map, list, sort, view, columns }) {
  const params = new URLSearchParams();
  for (const { company, text, weight, segment } of anchors) {
    params.append(...(company ? ["company", company] : ["text", text]));
    if (weight !== 1) params.append("weight", weight);
    if (segment) params.append("segment", segment);
  }
  for (const { company, text, segment } of negatives) {
    params.append(...(company ? ["unlike", company] : ["unlike_text", text]));
    if (segment) params.append("segment", segment);
  }
  for (const pair of filterParams(filters)) params.append(...pair);
  for (const name of excludeLists) params.append("exclude_list", name);
  const few = exclude.length <= FEW_EXCLUSIONS;
  if (few) for (const each of exclude) params.append("exclude", each);
  if (rank !== EMPTY.rank) params.set("rank", rank);
  if (minProbability) params.set("min_probability", minProbability);
  if (k !== DEFAULT_K) params.set("k", k);
  if (map !== null) params.set("map", Number(map));
  if (list) params.set("list", list);
  if (sort) params.set("sort", sort);
  if (view !== EMPTY.view) params.set("view", view);
  if (view !== EMPTY.view && columns) params.set("columns", columns.join(","));
  const query = params.toString();
  return `/${query ? `?${query}` : ""}${few ? "" : `#${new URLSearchParams(exclude.map((each) => ["exclude", each]))}`}`;
}

function readAddress({ search, hash } = location) {
  const read = { ...structuredClone(EMPTY), ...lastView() };
  const filters = new Map();
  let last = null; // anchor or negative
  for (const [name, value] of [...new URLSearchParams(search), ...new URLSearchParams(hash.slice(1))]) {
    if (!value.trim() && name !== "columns") continue;
    if (name === "company" || name === "text") read.anchors.push(last = { [name]: value, weight: 1 });
    else if (name === "weight" && read.anchors.length && Number(value) >= LEAST_WEIGHT && Number(value) <= MOST_WEIGHT) read.anchors.at(-1).weight = Number(value);
    else if (name === "unlike") read.negatives.push(last = { company: value });
    else if (name === "unlike_text") read.negatives.push(last = { text: value });
    else if (name === "segment" && last?.company && /^[1-9]$/.test(value)) last.segment = Number(value);
    else if (name in DIRECT) addCondition(filters, DIRECT[name], "=", value);
    else if (name === "filter" && CONDITION.test(value)) addCondition(filters, ...CONDITION.exec(value).slice(1));
    else if (name === "exclude") read.exclude.push(value);
    else if (name === "exclude_list") read.excludeLists.push(value);
    else if (name === "rank" && RANKS.includes(value)) read.rank = value;
    else if (name === "min_probability" && Number(value) >= 0 && Number(value) <= 1) read.minProbability = Number(value);
    else if (name === "k" && Number.isInteger(Number(value)) && Number(value) >= 1 && Number(value) <= 250) read.k = Number(value);
    else if (name === "map") read.map = value === "1";
    else if (name === "list") read.list = value;
    else if (name === "sort" && SORTED.test(value)) read.sort = value === "rank" ? "" : value;
    else if (name === "view") read.view = value === "table" ? value : EMPTY.view;
    else if (name === "columns") read.columns = value.split(",").filter(Boolean);
    else read.ignored.push(`${name}=${value}`);
  }
  for (const role of ["anchors", "negatives"]) {
    read.ignored.push(...read[role].splice(MAX_ANCHORS).map(({ company, text }) => `${company ?? text} (more than ${MAX_ANCHORS})`));
  }
  return { ...read, filters: [...filters.values()] };
}

function addCondition(filters, field, sign, value) {
  const filter = filters.get(field) ?? { field, any_of: [], none_of: [] };
  if (sign === "=") filter.any_of.push(value);
  else if (sign === "!=") filter.none_of.push(value);
  else filter[LIMITS.find((each) => each.sign === sign).name] = Number.isFinite(Number(value)) ? Number(value) : value;
  filters.set(field, filter);
}

function filterParams(filters) {
  const params = [];
  for (const { field, any_of = [], none_of = [], ...limits } of filters) {
    const direct = Object.keys(DIRECT).find((name) => DIRECT[name] === field);
    for (const value of any_of) params.push(direct ? [direct, value] : ["filter", `${field}=${value}`]);
    for (const value of none_of) params.push(["filter", `${field}!=${value}`]);
    for (const { name, sign } of LIMITS) if (limits[name] !== undefined) params.push(["filter", `${field}${sign}${limits[name]}`]);
  }
  return params;
}

// ---- The API's question

// The body of POST /similar; only what is not the default.
export function questionOf({ anchors, negatives, filters, exclude, excludeLists, rank, minProbability, k }) {
  const question = { anchors, k, rank };
  if (negatives.length) question.negatives = negatives;
  if (filters.length) question.filters = filters;
  if (exclude.length) question.exclude = exclude;
  if (excludeLists.length) question.exclude_lists = excludeLists;
  if (minProbability) question.min_probability = minProbability;
  return question;
}

export function stateOf(question) {
  const { anchors = [], negatives = [], filters = [], exclude = [], exclude_lists = [], rank = "business", min_probability = null, k = DEFAULT_K } = question;
  const filled = (each) => (each.company ? { company: each.company, ...(each.segment ? { segment: each.segment } : {}) } : { text: each.text });
  return {
    ...asSeen(), exclude, excludeLists: exclude_lists, rank, k, minProbability: min_probability,
    anchors: anchors.map((anchor) => ({ ...filled(anchor), weight: anchor.weight ?? 1 })),
    negatives: negatives.map(filled),
    filters: filters.map(({ field, any_of, none_of, ...limits }) => ({
      field, any_of: any_of ?? [], none_of: none_of ?? [],
      ...Object.fromEntries(LIMITS.map(({ name }) => [name, limits[name]]).filter(([, limit]) => limit !== null && limit !== undefined)),
    })),
  };
}

// How to ask `path` (/similar or /map): by GET where the address can carry the question, else by POST.
export function requestFor(path, asked, extra = {}) {
  const { anchors, negatives, filters, exclude, excludeLists, rank, minProbability, k } = asked;
  const [first, ...others] = anchors;
  // Several companies are posted: the one in a path must be known, and of a list any may have been deleted.
  const isPlain = !others.length && first.weight === 1 && !first.segment && negatives.every(({ company, segment }) => company && !segment);
  const isShort = exclude.length <= MOST_EXCLUDED && filterParams(filters).length <= MOST_CONDITIONS;
  const params = [["k", k], ["rank", rank], ...filterParams(filters)];
  if (first.text) params.unshift(["text", first.text]);
  for (const { company } of negatives) params.push(["unlike", company]);
  for (const each of exclude) params.push(["exclude", each]);
  for (const name of excludeLists) params.push(["exclude_list", name]);
  if (minProbability) params.push(["min_probability", minProbability]);
  for (const [name, value] of Object.entries(extra)) params.push([name, value]);
  const address = first.company ? `${path}/${encodeURIComponent(first.company)}` : path;
  const length = address.length + new URLSearchParams(params).toString().length;
  const takesText = path === "/similar";
  if (isPlain && isShort && length < LONGEST_GET && (first.company || takesText)) return { path: address, params };
  const { format, fields, ...body } = extra;
  return { path, params: format ? { format } : {}, body: { ...questionOf(asked), ...body, ...(fields ? { fields: fields.split(",") } : {}) } };
}
