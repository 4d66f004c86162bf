// How the ranking is seen: its order, the least probability, as rows or as a table.

import { ask } from "./ask.js";
import { byId, el } from "./dom.js";
import { shownHits } from "./results.js";
import { sortKey, sortOptions } from "./sorting.js";
import { RANKS, RANK_WORDS, current, go, keepView, requestFor } from "./state.js";

let change = () => {}; // after another order or view

export function startView(onChange) {
  change = onChange;
  byId("rank").addEventListener("change", ({ target }) => go({ rank: target.value }).then(() => byId("rank").focus()));
  byId("sort").addEventListener("change", ({ target }) => { keepView({ sort: target.value === "rank" ? "" : target.value }); change(); });
  for (const view of ["rows", "table"]) byId(`as-${view}`).addEventListener("click", () => { keepView({ view }); change(); });
}

export function showView({ hits }) {
  byId("view").hidden = !shownHits().length && !current().minProbability;
  byId("rank").replaceChildren(...RANKS.map((each) => el("option", { value: each, selected: each === current().rank }, RANK_WORDS[each])));
  byId("sort").replaceChildren(...sortOptions(shownHits()).map(({ key, label }) => el("option", { value: key, selected: key === sortKey() }, label)));
  for (const view of ["rows", "table"]) byId(`as-${view}`).setAttribute("aria-pressed", String(current().view === view));
  const calibrated = Boolean(current().minProbability) || hits.some(({ probability }) => probability !== null);
  const isThere = byId("likely");
  if (!calibrated) byId("least").replaceChildren();
  else if (!isThere) byId("least").replaceChildren(...leastLikely());
  else isThere.value = leastPercent();
}

const leastPercent = () => (current().minProbability ? Math.round(current().minProbability * 100) : "");

function leastLikely() {
  const box = el("input", { type: "number", id: "likely", min: 0, max: 100, step: 5, placeholder: "any", value: leastPercent(),
    onchange: () => go({ minProbability: box.value > 0 ? Math.min(Number(box.value), 100) / 100 : null }).then(() => byId("likely")?.focus()) });
  return [el("label", { for: "likely" }, "At least this likely, %"), box];
}

// How many of the first hits the least probability hides.
export async function hideLess(signal) {
  const { minProbability, k } = current();
  if (!minProbability) return;
  const { path, params, body } = requestFor("/similar", { ...current(), minProbability: null }, { reasons: 0, fields: "id" });
  const { hits } = await ask(path, { params, body, signal });
  const less = hits.filter(({ probability }) => probability !== null && probability < minProbability).length;
  if (hits.length) byId("active").append(el("span", { class: "note" }, `hides ${less} of the first ${Math.min(k, hits.length)}`));
}
