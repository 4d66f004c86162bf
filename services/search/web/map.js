// The neighbourhood as a map: the vectors of what is asked and found, laid flat on their two main axes.

import { ask, isMissing } from "./ask.js";
import { byId, say, svg } from "./dom.js";
import { goToCompany } from "./links.js";
import { rowOf } from "./results.js";
import { current, requestFor } from "./state.js";

const EDGE = 26; // pixels between the outermost points and the frame
const NARROWEST = 300;
const [LOWEST, HIGHEST] = [260, 440]; // of the drawing; it is as high as its points need
const MOST_POINTS = 60;
const LABEL = { size: 11, wide: 6.3, bold: 7.2, gap: 4 };
export const isWide = matchMedia("(min-width: 1360px)");

let dots = []; // {point, node} in the order of the ranking
let drawn = null; // the answer that is drawn
let box = { scale: 1, left: 0, top: 0, width: NARROWEST, height: LOWEST }; // how points become places
let at = 0; // the one that Tab reaches; the arrows move it

export const isWanted = () => current().map ?? isWide.matches;

export async function loadMap(signal) {
  const wanted = isWanted();
  byId("answer").classList.toggle("with-map", wanted);
  byId("map-toggle").setAttribute("aria-pressed", String(wanted));
  byId("map").hidden = !wanted;
  if (!wanted) return;
  const state = current();
  const { path, params, body } = requestFor("/map", { ...state, k: Math.min(state.k, MOST_POINTS) });
  try {
    drawn = await ask(path, { params, body, signal });
    draw(drawn);
  } catch (error) {
    if (!isMissing(error)) throw error;
    for (const id of ["map", "map-toggle"]) byId(id).hidden = true;
    byId("answer").classList.remove("with-map");
  }
}

// One unit is one pixel, so that names are as large as other words whatever the width.
export function redraw() {
  if (drawn && !byId("map").hidden && byId("plot").clientWidth !== box.width) draw(drawn);
}

function draw({ points, explained }) {
  fit(points);
  const hits = points.filter(({ role }) => role === "hit");
  const others = points.filter(({ role }) => role !== "hit");
  dots = [...others, ...hits].map((point) => ({ point, node: dotOf(point) }));
  at = 0;
  if (dots.length) dots[0].node.setAttribute("tabindex", "0");
  const label = `Map of ${points.length} companies; the list says the same in words. Arrow keys move from one to the next.`;
  const [lines, names] = labelled(dots.map(({ point }) => point));
  byId("plot").replaceChildren(svg("svg", { viewBox: `0 0 ${box.width} ${box.height}`, role: "group", "aria-label": label, onkeydown: onKey },
    svg("g", { "aria-hidden": "true", class: "leaders" }, ...lines),
    ...[...dots].reverse().map(({ node }) => node),
    svg("g", { "aria-hidden": "true", class: "labels" }, ...names)));
  byId("map-note").textContent = `Near means alike. These two axes hold ${Math.round(explained * 100)} % of the differences; the ranking uses all of them.`;
}

// One scale for both axes, so that distances on the map can be compared.
function fit(points) {
  const span = (values) => [Math.min(...values), Math.max(...values)];
  const [[left, right], [bottom, top]] = [span(points.map((point) => point.x)), span(points.map((point) => point.y))];
  const width = Math.max(byId("plot").clientWidth, NARROWEST);
  const [wide, high] = [Math.max(right - left, 0.01), Math.max(top - bottom, 0.01)];
  const scale = Math.min((width - 2 * EDGE) / wide, (HIGHEST - 2 * EDGE) / high);
  const height = Math.max(LOWEST, scale * high + 2 * EDGE);
  box = { scale, width, height, left: left - (width / scale - wide) / 2, top: top + (height / scale - high) / 2 };
}

const x = (point) => (point.x - box.left) * box.scale;
const y = (point) => (box.top - point.y) * box.scale;
const radius = (point) => (point.role === "hit" ? 3.5 + 5 * strength(point) : 8);
const strength = ({ probability, score }) => Math.max(0, Math.min(1, probability ?? score ?? 0));

function dotOf(point) {
  const words = point.role === "hit" ? `${point.name}, ${chance(point)}` : `${point.name}, ${point.role === "anchor" ? "asked for" : "to be unlike"}`;
  const shape = point.role === "negative"
    ? svg("rect", { x: x(point) - 6, y: y(point) - 6, width: 12, height: 12 })
    : svg("circle", { cx: x(point), cy: y(point), r: radius(point), "fill-opacity": point.role === "hit" ? 0.25 + 0.75 * strength(point) : 1 });
  return svg("a", { class: `dot ${point.role}`, href: point.role === "hit" || point.id ? `/?company=${encodeURIComponent(point.id ?? "")}` : null, tabindex: "-1", "aria-label": words, "data-id": point.id,
    onclick: (event) => follow(event, point), onfocus: () => spotlight(point.id) }, svg("title", {}, words), shape);
}

const chance = ({ probability, score }) => (probability === null || probability === undefined ? `cosine ${score?.toFixed(2)}` : `${Math.round(probability * 100)} % likely`);

// To its row, where everything about it is; what has no row (an anchor) is asked about.
function follow(event, point) {
  if (event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  const row = rowOf(point.id);
  if (row) {
    row.node.focus();
    row.node.scrollIntoView({ block: "center" });
  } else if (point.id) goToCompany(point.id);
}

function onKey(event) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!step || !dots.length) return;
  event.preventDefault();
  event.stopPropagation();
  dots[at].node.setAttribute("tabindex", "-1");
  at = (at + step + dots.length) % dots.length;
  dots[at].node.setAttribute("tabindex", "0");
  dots[at].node.focus();
  say(dots[at].node.getAttribute("aria-label"));
}

export function spotlight(id) {
  for (const { point, node } of dots) node.classList.toggle("lit", point.id === id && id !== null);
  for (const each of byId("plot").querySelectorAll(".labels text")) each.classList.toggle("lit", each.dataset.id === id);
}

// ---- Names: the strongest first, each where it covers nothing; further off, with a line to its dot, if need be

const LINE = LABEL.size + 3;
const REACHES = [0, 10, 24];

function labelled(points) {
  const taken = points.map((point) => around(x(point), y(point), radius(point), radius(point)));
  const [lines, names] = [[], []];
  for (const point of points) {
    const name = point.name.length > 24 ? `${point.name.slice(0, 22)}…` : point.name;
    const place = places(point, name.length * (point.role === "hit" ? LABEL.wide : LABEL.bold)).find((each) => isInside(each) && !taken.some((other) => overlap(each, other)));
    if (place) taken.push(place);
    if (place?.isFar) lines.push(leader(point, place));
    names.push(nameAt(point, name, place));
  }
  return [lines, names];
}

const around = (cx, cy, wide, high) => ({ left: cx - wide, right: cx + wide, top: cy - high, bottom: cy + high });

function places(point, width) {
  return REACHES.flatMap((reach) => {
    const away = radius(point) + LABEL.gap + reach;
    const slope = reach || radius(point);
    const [right, left] = [x(point) + away + width / 2, x(point) - away - width / 2];
    const [above, below] = [y(point) - away - LINE / 2 + 2, y(point) + away + LINE / 2 - 2];
    return [[right, y(point)], [left, y(point)], [x(point), below], [x(point), above], [right, y(point) - slope], [right, y(point) + slope], [left, y(point) - slope], [left, y(point) + slope]]
      .map(([cx, cy]) => ({ ...around(cx, cy, width / 2, LINE / 2), isFar: reach > 0 }));
  });
}

function leader(point, { left, right, top, bottom }) {
  const nearest = { x: Math.max(left, Math.min(right, x(point))), y: Math.max(top, Math.min(bottom, y(point))) };
  return svg("line", { x1: x(point), y1: y(point), x2: nearest.x, y2: nearest.y });
}

function nameAt(point, name, place) {
  const half = (name.length * LABEL.bold) / 2 + LABEL.gap;
  const where = place
    ? { x: place.left, y: place.bottom - 3.5, "text-anchor": "start" }
    : { x: Math.max(half, Math.min(box.width - half, x(point))), y: Math.max(LINE, y(point) - radius(point) - 4), "text-anchor": "middle" };
  return svg("text", { ...where, "data-id": point.id, class: place ? point.role : `${point.role} crowded` }, name);
}

const isInside = ({ left, right, top, bottom }) => left >= 3 && right <= box.width - 3 && top >= 3 && bottom <= box.height - 3;
const overlap = (one, other) => one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
