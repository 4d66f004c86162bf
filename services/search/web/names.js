// Names of companies by id, where an answer has only ids.

import { ProblemError, ask } from "./ask.js";

const MOST = 200; // ids that are looked up at once
const AT_ONCE = 6;
const names = new Map(); // by id

// One that has no company keeps its id.
export const nameOf = (id) => names.get(id) ?? id;

export async function readNames(ids) {
  const missing = [...new Set(ids)].filter((id) => !names.has(id)).slice(0, MOST);
  const readNext = async () => {
    for (let id = missing.pop(); id !== undefined; id = missing.pop()) await readName(id);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, readNext));
}

async function readName(id) {
  try {
    names.set(id, (await ask(`/companies/${encodeURIComponent(id)}`, { params: { resolve: "id" } })).company.name);
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
  }
}
