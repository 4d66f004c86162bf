// The lines of business of the company that is asked about: chips that ask about one of them only.

import { ask, isKind } from "./ask.js";
import { byId, button, el } from "./dom.js";
import { current, go } from "./state.js";

const LONGEST = 60; // characters of a chip; the rest is in its title

export async function loadSegments({ anchors }, signal) {
  const [{ company, segment }] = anchors;
  if (anchors.length > 1 || !company) return;
  let segments;
  try {
    ({ segments } = await ask(`/segments/${encodeURIComponent(company.id)}`, { params: { resolve: "exact" }, signal }));
  } catch (error) {
    if (isKind(error, "encoder-not-loaded", "unknown-company")) return; // deleted since: the ranking is still there
    throw error;
  }
  if (!segments.length) return;
  const chip = (words, number, title) => button(words, () => only(number), {
    class: "chip", title, "aria-pressed": String(number === (segment?.number ?? null)) });
  byId("segments").replaceChildren(
    el("h2", {}, "Lines of business"),
    el("p", { class: "chips" }, chip("All of it", null, "The whole description"),
      ...segments.map(({ number, text }) => chip(`${number}. ${shortened(text)}`, number, text))));
}

function only(number) {
  const [{ segment, ...whole }] = current().anchors;
  return go({ anchors: [number === null ? whole : { ...whole, segment: number }] }).then(() => byId("question-title").focus());
}

export const shortened = (text, longest = LONGEST) => (text.length > longest ? `${text.slice(0, longest).replace(/ \S*$/, "")} …` : text);
