// The prediction for one instance: order, partial order, curves, and a row per label.
import { byId, make } from "/static/base.js";
import { colourOf, drawScores, unitOf } from "/static/web/charts.js";

const MOST_CURVES = 10;
const MOST_ROWS = 20;
const TOKEN = /"(?:[^"\\]|\\.)*"|[^>=?"]+|./gs; // a quoted label, a plain one, a sign

let places = new Map(); // of labels
let paint = null;
let every = false; // whether all labels are listed
let last = null;
let scale = null; // of its significances

/** Know the labels of the model. */
export function setAnswer(about) {
  places = new Map(about.labels.map((label, place) => [label, place]));
  paint = colourOf(places.size);
  byId("more").addEventListener("click", () => {
    every = !every;
    drawRows();
  });
}

const percent = (chance) => `${(100 * chance).toFixed(1)} %`;

/** A label with its colour. */
function chip(label) {
  const dot = make("span", { class: "swatch", "aria-hidden": "true" });
  dot.style.background = paint(places.get(label));
  return make("span", { class: "chip" }, dot, label);
}

const joined = (nodes, sign) => nodes.flatMap((node, k) => (k ? [` ${sign} `, node] : [node]));

/** The text of a partial order, with its labels as chips. */
function coloured(text) {
  const shown = (token) => {
    const label = token.startsWith('"') && token.length > 1 ? token.slice(1, -1).replace(/\\(.)/gs, "$1") : token.trim();
    if (places.has(label)) return [chip(label)];
    return label.includes(";") && label !== ";" ? label.split(/(;)/).flatMap(shown) : [label]; // between chains
  };
  return (text.match(TOKEN) ?? []).flatMap(shown);
}

/** Show what the server answered for one instance. */
export function showAnswer({ scale: of, instances: [found] }) {
  scale = of;
  last = Object.entries(found.labels).map(([label, of]) => ({ label, place: places.get(label), ...of }))
    .sort((a, b) => b.score - a.score || a.place - b.place);
  const order = byId("order");
  if (order.dataset.said !== found.order) { // screen readers read it once, not on every move
    order.dataset.said = found.order;
    order.replaceChildren(...(found.buckets.length
      ? joined(found.buckets.map((bucket) => make("span", { class: "row" }, ...joined(bucket.map(chip), "="))), ">")
      : ["(none)"]));
  }
  byId("partial").replaceChildren(...(found.partial ? coloured(found.partial) : ["(none)"]));
  drawCurves();
  drawRows();
}

function drawCurves() {
  const drawn = last.slice(0, MOST_CURVES);
  const has = drawn[0].sigma !== undefined;
  const of = (name) => drawn.map((one) => one[name]);
  const answer = {
    labels: of("label"), p_relevant: of("p_relevant"), significance: of(has ? "significance" : "score"), sigma: has ? of("sigma") : null,
  };
  drawScores(byId("curves"), answer, (k) => paint(drawn[k].place));
  const what = has ? "mean is right of the line at zero" : "score is above the threshold";
  byId("curves").setAttribute("aria-label", has ? "One Gaussian curve per label" : "One bar per label");
  const count = drawn.length < places.size ? ` The ${drawn.length} most significant of ${places.size.toLocaleString("en")} labels are drawn.` : "";
  byId("note").textContent = `A label applies if its ${what}.${unitOf(scale)}${count}`;
}

function drawRows() {
  const has = last[0].sigma !== undefined;
  const heads = ["Label", has ? "Significance" : "Score", "P(relevant)", ...(has ? ["P(first)"] : [])];
  const rows = last.slice(0, every ? last.length : MOST_ROWS);
  byId("labels").replaceChildren(
    make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, ...rows.map((one) => rowOf(one, has))));
  byId("more").hidden = last.length <= MOST_ROWS;
  byId("more").textContent = every ? `Show ${MOST_ROWS} labels` : `Show ${last.length} labels`;
}

function rowOf(one, has) {
  const dot = make("span", { class: "swatch", "aria-hidden": "true" });
  dot.style.background = paint(one.place);
  const chance = (name) => {
    const cell = make("td", { class: "chance", "data-part": name }, percent(one[name]));
    cell.style.setProperty("--chance", 100 * one[name]);
    cell.style.setProperty("--paint", paint(one.place));
    return cell;
  };
  const value = has
    ? make("td", {}, one.significance.toFixed(2), make("span", { class: "spread soft" }, ` ± ${one.sigma.toFixed(2)}`))
    : make("td", {}, one.score.toFixed(2));
  return make("tr", { class: one.rank ? "" : "irrelevant", "data-label": one.label },
    make("th", { scope: "row" }, dot, one.label), value, chance("p_relevant"), ...(has ? [chance("p_first")] : []));
}
