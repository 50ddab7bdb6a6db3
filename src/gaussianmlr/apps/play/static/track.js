// Scores along a film up to the current frame: one line per digit, its ± sigma, and the line at zero.
import { make } from "/static/base.js";
import { heading, showOrder } from "/static/play/answers.js";
import { colour, ticks, unitOf } from "/static/web/charts.js";

const WIDTH = 560, HEIGHT = 300, LEFT = 44, RIGHT = 30, TOP = 14, BOTTOM = 52, LINE = 18;
const NUMBERS = ["monotonicity", "linearity", "drift"];
let made = 0;

/** One column per model: its order, curves, and the numbers shown at the end. */
export function makeTrack(model, index) {
  const order = make("p", { class: "order", "data-part": "order" });
  const svg = make("svg", { class: "curves", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "data-part": "track" });
  const note = make("p", { class: "soft small" });
  const values = Object.fromEntries(NUMBERS.map((name) => [name, make("dd", { class: "number", "data-number": name }, "–")]));
  const numbers = make("dl", { class: "numbers" },
    ...NUMBERS.map((name) => make("div", {}, make("dt", {}, name), values[name])));
  const box = make("section", { class: "card column", "aria-labelledby": `track-${index}`, "data-model": index },
    heading(model, `track-${index}`), order, make("div", {}, svg, note), numbers);
  return { box, order, svg, note, values, model, index };
}

/** Draw the scores of a whole film, hidden until `showFrame` uncovers them. */
export function drawTrack(track, film, answer) {
  const { significance, sigma } = answer;
  const frames = significance.length;
  const ends = significance.flatMap((row, t) => row.flatMap((mu, k) => (sigma ? [mu - sigma[t][k], mu + sigma[t][k]] : [mu])));
  const [low, high] = [Math.min(-0.5, ...ends), Math.max(0.5, ...ends)];
  const x = (t) => LEFT + (WIDTH - LEFT - RIGHT) * t / (frames - 1);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low);
  const nodes = [...axes(film, x, y, low, high)];
  const name = `seen-${made++}`;
  const cover = make("rect", { x: 0, y: 0, width: 0, height: HEIGHT });
  nodes.push(make("clipPath", { id: name }, cover));
  const lines = make("g", { "clip-path": `url(#${name})` });
  const point = (t, value) => `${x(t).toFixed(1)},${y(value).toFixed(1)}`;
  film.digits.forEach((digit, k) => {
    if (!sigma) return;
    const upper = significance.map((row, t) => point(t, row[k] + sigma[t][k]));
    const lower = significance.map((row, t) => point(t, row[k] - sigma[t][k])).reverse();
    lines.append(make("path", { d: `M${[...upper, ...lower].join("L")}Z`, fill: colour(digit), class: "band" }));
  });
  film.digits.forEach((digit, k) => lines.append(make("path", {
    d: `M${significance.map((row, t) => point(t, row[k])).join("L")}`, stroke: colour(digit), "data-digit": digit,
  })));
  const dots = film.digits.map((digit) => make("circle", { r: 5, fill: colour(digit), class: "dot" }));
  const names = film.digits.map((digit) => make("text", { fill: colour(digit) }, String(digit)));
  track.svg.replaceChildren(...nodes, lines, ...dots, ...names);
  const what = sigma ? "Means with a band of one sigma" : track.model.scores;
  track.note.textContent = `${what}; a digit applies above the dashed line.${unitOf(answer.scale)}`;
  track.svg.setAttribute("aria-label",
    `${what} of the digits ${film.digits.join(", ")} along the film; ${sigma ? "zero" : "the threshold"} is a dashed line`);
  Object.assign(track, { cover, dots, names, x, y, answer, film });
}

function* axes(film, x, y, low, high) {
  const bottom = HEIGHT - BOTTOM;
  yield make("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: bottom, y2: bottom, class: "frame" });
  for (const value of ticks(low, high, 6)) {
    if (value !== 0) yield make("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value), class: "grid" });
    yield make("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end", class: "axis" }, String(value));
  }
  yield make("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(0), y2: y(0), "stroke-dasharray": "4 4" });
  const [from, to] = film.range;
  for (const value of ticks(from, to)) {
    const place = x((film.true.length - 1) * (value - from) / (to - from));
    yield make("line", { x1: place, x2: place, y1: bottom, y2: bottom + 5, class: "frame" });
    yield make("text", { x: place, y: bottom + 23, "text-anchor": "middle", class: "axis" }, String(value));
  }
  yield make("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle", class: "axis" },
    `true ${film.factor} of the ${film.digits[0]}`);
}

/** Positions of labels near the wanted ones, without overlap. */
function apart(wanted) {
  const order = wanted.map((_, k) => k).sort((a, b) => wanted[a] - wanted[b]);
  const found = [...wanted];
  const place = Math.floor(order.length / 2); // the middle one stays, the others move
  for (let i = place + 1; i < order.length; i++) found[order[i]] = Math.max(wanted[order[i]], found[order[i - 1]] + LINE);
  for (let i = place - 1; i >= 0; i--) found[order[i]] = Math.min(wanted[order[i]], found[order[i + 1]] - LINE);
  return found;
}

/** Uncover the curves up to a frame; the last frame shows the numbers. */
export function showFrame(track, t) {
  const { x, y, answer, film } = track;
  track.cover.setAttribute("width", x(t) + 1);
  track.dots.forEach((dot, k) => {
    dot.setAttribute("cx", x(t));
    dot.setAttribute("cy", y(answer.significance[t][k]));
  });
  apart(answer.significance[t].map(y)).forEach((place, k) => {
    track.names[k].setAttribute("x", x(t) + 10);
    track.names[k].setAttribute("y", place + 5);
  });
  showOrder(track.order, answer.orders[t], film.orders[t]);
  const ended = t === answer.orders.length - 1;
  for (const name of NUMBERS) {
    const value = answer.numbers[name];
    track.values[name].textContent = ended ? (value === null ? "no change" : value.toFixed(3)) : "–";
  }
}

/** The numbers of a model in words. */
export const numbersSaid = ({ model, answer }) =>
  `${model.title}: ${NUMBERS.map((name) => `${name} ${answer.numbers[name]?.toFixed(3) ?? "not known"}`).join(", ")}`;
