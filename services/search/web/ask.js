// Asking the service: problems as errors, the key of this tab, and patience where the service asks for it.

const KEY = "similarity-key"; // sessionStorage: forgotten with the tab
const LONGEST_WAIT = 120; // seconds; a longer wait is told, not sat out
const MOST_REFUSALS = 5; // of one request by a service that is too busy, before that is told

export class ProblemError extends Error {
  constructor(problem) {
    super(problem.detail);
    this.problem = problem;
  }
}

// What the page does about a missing key and a wait; page.js puts its own here.
export const manners = {
  key: async () => null, // asks for a key; null if none was given
  waiting: () => {}, // (seconds left, or 0)
};

let keyAsked = null; // several requests that lack a key ask for it once

// `isPatient`: waits where the service asks for it; what nobody waits for is given up instead.
export async function ask(path, { params = {}, body, method, signal, accept = "application/json", isPatient = true } = {}) {
  const query = new URLSearchParams(params).toString();
  const address = query ? `${path}?${query}` : path;
  const request = { method: method ?? (body === undefined ? "GET" : "POST"), signal, headers: { Accept: accept } };
  if (body !== undefined) {
    request.body = body instanceof Blob ? body : JSON.stringify(body);
    request.headers["Content-Type"] = body instanceof Blob ? body.type : "application/json";
  }
  const response = await answered(address, request, isPatient);
  if (response.status === 204) return null;
  if (response.ok && accept !== "application/json") return response;
  const answer = await response.json().catch(notJson);
  if (response.ok && answer) return answer;
  throw new ProblemError(problemOf(response, answer));
}

// A question that was left while its answer came has no answer; whatever else comes is none of ours.
function notJson(error) {
  if (error.name === "AbortError") throw error;
  return null;
}

async function answered(address, request, isPatient) {
  for (let refusals = 0; ; ) {
    const key = sessionStorage.getItem(KEY);
    if (key) request.headers.Authorization = `Bearer ${key}`;
    const response = await reached(address, request);
    const wait = Number(response.headers.get("Retry-After"));
    if (isPatient && response.status === 429 && wait <= LONGEST_WAIT) await sitOut(Math.max(wait, 1), request.signal);
    else if (isPatient && refusals < MOST_REFUSALS && await isBusy(response)) await sitOut(refusals += 1, request.signal);
    else if (response.status !== 401 || !(await newKey(key))) return response;
  }
}

// Too busy to begin: nothing was done. Other reasons of a 503 are not gone in seconds, or a write may have been done.
const isBusy = async (response) => response.status === 503
  && (await response.clone().json().catch(() => ({}))).type?.endsWith("#overloaded");

async function reached(address, request) {
  try {
    return await fetch(address, request);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ProblemError({ title: "The service does not answer", status: 0, detail: "It may have been stopped. Start it again, then retry." });
  }
}

async function newKey(refused) {
  if (sessionStorage.getItem(KEY) !== refused) return true; // another request has got one meanwhile
  keyAsked ??= manners.key(refused !== null).finally(() => { keyAsked = null; });
  const given = await keyAsked;
  if (!given) return false;
  sessionStorage.setItem(KEY, given);
  document.dispatchEvent(new CustomEvent("key")); // what was refused before it was given can be asked again
  return true;
}

async function sitOut(seconds, signal) {
  try {
    for (let left = Math.ceil(seconds); left > 0; left -= 1) {
      manners.waiting(left);
      await pause(1000, signal);
    }
  } finally {
    manners.waiting(0);
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });
}

function problemOf(response, answer) {
  if (answer?.title) return answer;
  return { title: "Unexpected answer", status: response.status, detail: `The service answered with status ${response.status}.` };
}

export const isKind = (error, ...kinds) => error instanceof ProblemError && kinds.some((kind) => error.problem.type?.endsWith(`#${kind}`));

// True where the service has no such part (it was started without it), or not for this key.
export const isMissing = (error) => error instanceof ProblemError
  && (isKind(error, "unknown-address") || [403, 405].includes(error.problem.status));

// Fetched, not followed: a link could not carry the key, and a refusal would leave the page.
export async function download(path, { params, body, name }) {
  const response = await ask(path, { params, body, accept: "*/*" }); // `params` say the format
  const named = /filename="?([^";]+)"?/.exec(response.headers.get("Content-Disposition") ?? "");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = named?.[1] ?? name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
