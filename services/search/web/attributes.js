// What the index says about attributes: which have an order, and which is the size of a company.

import { ProblemError, ask } from "./ask.js";

let declared = { types: {}, size: null };

// Without them (an older service, or the index does not answer) words are sorted as words.
export async function loadAttributes() {
  try {
    declared = await ask("/attributes");
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
  }
}

const bare = (field) => field.replace("attributes.", "");

export const sizeField = () => declared.size && `attributes.${declared.size}`;

export const isOrdinal = (field) => declared.types[bare(field)]?.type === "ordinal";

// The place of a value among the levels; its first word will do, so "Large Cap" is the level "large". Else null.
export function levelOf(field, value) {
  const { levels } = declared.types[bare(field)];
  const text = String(value).trim().toLowerCase();
  const places = [text, text.split(" ")[0]].map((each) => levels.indexOf(each)).filter((place) => place >= 0);
  return places[0] ?? null;
}

export function nameOfField(field) {
  const name = bare(field).replaceAll("_", " ");
  return name[0].toUpperCase() + name.slice(1);
}
