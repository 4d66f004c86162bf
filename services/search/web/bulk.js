// Several rows at once: tick them, or all without a verdict from a probability on, and accept or reject them in one step.

import { byId } from "./dom.js";
import { COMPETITOR, NOT_COMPETITOR, judgeAll, verdictOf } from "./feedback.js";
import { shownHits, tickWhere, tickedHits } from "./results.js";

export function startBulk() {
  byId("tick-all").addEventListener("change", ({ target: { checked } }) => tickWhere(() => checked));
  byId("tick-from").addEventListener("change", ({ target }) => {
    const least = Number(target.value) / 100;
    if (target.value === "" || !target.checkValidity()) return;
    const isLikely = ({ probability }) => (probability ?? -1) >= least;
    tickWhere((hit) => isLikely(hit) && !verdictOf(hit.company.id));
    if (!tickedHits().length) byId("tick-count").textContent = shownHits().some(isLikely) ? "All that likely have a verdict" : "None is that likely";
  });
  byId("tick-from").addEventListener("keydown", (event) => { if (event.key === "Enter") event.target.blur(); });
  byId("accept-ticked").addEventListener("click", () => judge(COMPETITOR));
  byId("reject-ticked").addEventListener("click", () => judge(NOT_COMPETITOR));
  byId("untick").addEventListener("click", () => { clear(); byId("tick-all").focus(); });
  document.addEventListener("ticks", show);
}

async function judge(verdict) {
  const hits = tickedHits();
  for (const each of document.querySelectorAll("#ticked button")) each.disabled = true; // a second click would repeat it
  await judgeAll(hits, verdict);
  for (const each of document.querySelectorAll("#ticked button")) each.disabled = false;
  clear();
  byId("tick-all").focus();
}

function clear() {
  tickWhere(() => false);
}

function show() {
  const [count, all] = [tickedHits().length, shownHits().length];
  byId("tick-count").textContent = count ? `${count} selected` : "";
  if (!count && document.activeElement !== byId("tick-from")) byId("tick-from").value = "";
  byId("tick-all").checked = count > 0 && count === all;
  byId("tick-all").indeterminate = count > 0 && count < all;
  byId("ticked").hidden = count === 0;
  byId("bulk").hidden = all === 0;
  byId("tick-likely").hidden = !shownHits().some(({ probability }) => probability !== null);
}
