// One column per model: its prediction for the canvas beside the true order.
import { byId, make } from "/static/base.js";
import { drawScores, firstRows, pairRows, unitOf } from "/static/web/charts.js";

const NO_SIGMA = "Not available: this method has no sigma.";
let columns = [];
let last = null;

/** An order, and in words whether it is the true one. */
export function showOrder(node, order, truth) {
  const right = order === truth;
  if (node.dataset.said === `${right} ${order}`) return; // screen readers read it once, not on every move
  node.dataset.said = `${right} ${order}`;
  const verdict = make("span", { class: `verdict ${right ? "good" : "bad"}` }, right ? "✓ correct" : "✗ not the true order");
  node.replaceChildren(make("span", { class: right ? "good" : "bad" }, order || "(none)"), " ", verdict);
}

/** A model's name as the heading of a column. */
export function heading(model, id) {
  return make("div", { class: "model" }, make("h2", { id }, model.title), make("span", { class: "soft small" }, model.detail));
}

function makeColumn(model, index) {
  const part = (name, tag, attributes = {}) => make(tag, { ...attributes, "data-part": name });
  const order = part("order", "dd", { class: "order", "aria-live": "polite" });
  const partial = part("partial", "dd");
  const curves = part("curves", "svg", { class: "curves", viewBox: "0 0 640 240", role: "img" });
  const note = part("note", "p", { class: "soft small" });
  const first = part("first", "div");
  const pairs = part("pairs", "div", { class: "scroll" });
  const box = make("section", { class: "card column", "aria-labelledby": `answer-${index}`, "data-model": index },
    heading(model, `answer-${index}`),
    make("dl", {}, make("dt", {}, "Predicted"), order, make("dt", {}, "Certain"), partial),
    make("div", {}, make("h3", {}, "Significances"), curves, note),
    make("div", {}, make("h3", {}, "P(first)"), first),
    make("div", {}, make("h3", {}, "P(row above column), in percent"), pairs));
  return { box, order, partial, curves, note, first, pairs, model };
}

/** Make the columns of some models. */
export function setColumns(models) {
  columns = models.map(({ model, index }) => makeColumn(model, index));
  byId("answers").replaceChildren(...columns.map(({ box }) => box));
}

/** Show the predictions of the models, one per column. */
export function showAnswers(found) {
  last = found;
  byId("picture").src = found.image;
  showTruth();
  found.answers.forEach((answer, place) => {
    const column = columns[place];
    column.partial.textContent = answer.sigma ? answer.partial || "(none)" : NO_SIGMA;
    drawScores(column.curves, answer);
    column.curves.setAttribute("aria-label", answer.sigma
      ? "One Gaussian curve per digit; a digit applies if its mean is right of the line at zero"
      : "One bar per digit; a digit applies above the threshold");
    column.note.textContent = answer.sigma
      ? `A digit applies if its mean is right of the line at zero.${unitOf(answer.scale)}`
      : `${column.model.scores}: a digit applies above the line.`;
    column.first.replaceChildren(...(answer.p_first ? firstRows(answer) : [NO_SIGMA]));
    column.pairs.replaceChildren(answer.p_above ? make("table", { class: "pairs" }, make("tbody", {}, ...pairRows(answer))) : NO_SIGMA);
  });
}

/** The true order by the chosen factor, and which models predicted it. */
export function showTruth() {
  if (!last) return;
  const truth = last.truth[byId("factor").value];
  byId("truth").textContent = truth || "no digit";
  last.answers.forEach((answer, place) => showOrder(columns[place].order, answer.order, truth));
}
