// Charts of a prediction: Gaussian curves or bars, P(first), and the matrix of pairs.
import { make } from "/static/base.js";

/** The colour of a digit in all charts. */
export const colour = (label) => `oklch(0.66 0.15 ${36 * Number(label) + 15})`;

/** Colours of any number of labels: spread evenly if few, else by the golden angle, so that neighbours differ. */
export const colourOf = (count) => (k) => `oklch(0.66 0.15 ${((count <= 12 ? 360 / count : 137.508) * k + 25) % 360})`;

const ofDigits = ({ labels }) => (k) => colour(labels[k]);
const SHORTEST = 5;

const WIDTH = 640, HEIGHT = 240, FLOOR = 212;

/** Round values that divide a range into about `about` steps. */
export function ticks(low, high, about = 4) {
  const rough = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((one) => one * power >= rough) * power;
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) found.push(Number((k * step).toPrecision(6)));
  return found;
}

/** What one step of a scale of significances means, in words. */
export const unitOf = (scale) => scale === "jnd" ? " One step apart is ordered correctly 84 times in 100." : "";

/** Gaussian curves with the line at zero or, without sigma, bars that stand on the threshold. */
export function drawScores(svg, answer, paint = ofDigits(answer)) {
  svg.replaceChildren(...(answer.sigma ? curves(answer, paint) : bars(answer, paint)));
}

/** The letters of a label that fit a width in a chart, whose letters are about 9 units wide. */
function fitted(label, width) {
  const most = Math.max(SHORTEST, Math.floor(width / 9));
  return label.length <= most ? label : `${label.slice(0, most - 1)}…`;
}

function curves({ labels, significance, sigma, p_relevant }, paint) {
  const low = Math.min(-1, ...significance.map((mu, k) => mu - 2.5 * sigma[k]));
  const high = Math.max(1, ...significance.map((mu, k) => mu + 2.5 * sigma[k]));
  const x = (value) => 12 + (WIDTH - 24) * (value - low) / (high - low);
  const top = Math.max(...sigma.map((s) => 1 / s));
  const nodes = [
    make("line", { x1: 0, x2: WIDTH, y1: FLOOR, y2: FLOOR }),
    make("line", { x1: x(0), x2: x(0), y1: 8, y2: FLOOR + 6, "stroke-dasharray": "4 4" }),
    make("text", { x: x(0), y: HEIGHT - 6, "text-anchor": "middle", class: "axis" }, "0"),
  ];
  const stacked = [];
  labels.forEach((label, k) => {
    const tall = 165 * (1 / sigma[k]) / top;
    const points = [];
    for (let step = -40; step <= 40; step++) {
      const z = step / 12;
      points.push(`${x(significance[k] + z * sigma[k]).toFixed(1)},${(FLOOR - tall * Math.exp(-z * z / 2)).toFixed(1)}`);
    }
    const faint = p_relevant[k] <= 0.5 ? "faint" : "";
    nodes.push(make("path", { d: `M${points.join("L")}`, stroke: paint(k), class: faint }));
    const name = fitted(label, 150);
    const half = Math.max(6, 4.5 * name.length);
    const tx = Math.min(Math.max(x(significance[k]), half), WIDTH - half);
    let ty = FLOOR - tall - 6;
    while (stacked.some(([ox, oy, other]) => Math.abs(ox - tx) < half + other && Math.abs(oy - ty) < 15)) ty -= 15;
    if (ty < 14) return; // no room; colours say which it is
    stacked.push([tx, ty, half]);
    nodes.push(make("text", { x: tx, y: ty, "text-anchor": "middle", fill: paint(k), class: faint }, name));
  });
  return nodes;
}

function bars({ labels, significance, p_relevant }, paint) {
  const [low, high] = [Math.min(-0.5, ...significance), Math.max(0.5, ...significance)];
  const y = (value) => 22 + (HEIGHT - 44) * (high - value) / (high - low);
  const step = (WIDTH - 70) / labels.length;
  const nodes = [make("text", { x: WIDTH, y: y(0) - 6, "text-anchor": "end", class: "axis" }, "threshold")];
  labels.forEach((label, k) => {
    const [left, value] = [4 + step * k, significance[k]];
    const faint = p_relevant[k] <= 0.5 ? "faint" : "";
    nodes.push(make("rect", {
      x: left, width: step - 8, y: Math.min(y(0), y(value)), height: Math.max(1, Math.abs(y(value) - y(0))),
      rx: 3, fill: paint(k), class: faint,
    }));
    const under = value > 0 ? y(value) - 6 : y(value) + 17;
    nodes.push(make("text", { x: left + (step - 8) / 2, y: under, "text-anchor": "middle", fill: paint(k), class: faint }, fitted(label, step)));
  });
  nodes.push(make("line", { x1: 0, x2: WIDTH, y1: y(0), y2: y(0), "stroke-dasharray": "4 4" }));
  return nodes;
}

/** Bars of the five digits that are most likely first. */
export function firstRows({ labels, p_first }) {
  const rows = labels.map((label, k) => [label, p_first[k]]).sort((a, b) => b[1] - a[1]).slice(0, 5);
  return rows.map(([label, chance]) => {
    const fill = make("div", { class: "fill" });
    fill.style.width = `${100 * chance}%`;
    fill.style.background = colour(label);
    return make("div", { class: "bar-row" }, make("span", {}, label), make("div", { class: "track" }, fill),
      make("span", { class: "number" }, `${(100 * chance).toFixed(1)} %`));
  });
}

/** The matrix of pairs, the most significant digit first. */
export function pairRows({ labels, p_above, ranks }) {
  const order = labels.map((_, k) => k).sort((a, b) => ranks[b] - ranks[a] || a - b);
  const head = make("tr", {}, make("td"), ...order.map((k) => make("th", { scope: "col" }, labels[k])));
  return [head, ...order.map((row) => make("tr", {}, make("th", { scope: "row" }, labels[row]), ...order.map((column) => {
    if (row === column) return make("td", {}, "·");
    const chance = p_above[row][column];
    const cell = make("td", {}, String(Math.round(100 * chance)));
    cell.style.background = `color-mix(in srgb, var(--accent) ${Math.round(55 * chance)}%, transparent)`;
    return cell;
  })))];
}
