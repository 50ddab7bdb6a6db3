// A page to try a model: an input as the model takes it, and what the model says of it.
import { ask, byId } from "/static/base.js";
import { setAnswer, showAnswer } from "/static/serve/answer.js";
import { makeForm } from "/static/serve/forms.js";

const PAUSE = 120; // milliseconds without a change before the model is asked
const MOST_LABELS = 200; // of an answer; of more, the most significant ones
const TOP = 50;

let about = null;
let form = null;
let timer = null;
let busy = false;
let changed = false;

function wanted() {
  const readings = ["buckets"];
  if (about.readings.includes("p_first")) readings.push("p_first");
  const sure = about.readings.includes("partial_order");
  const top = about.labels.length > MOST_LABELS ? TOP : null;
  return { readings, confidence: sure ? Number(byId("confidence").value) : null, top };
}

/** The request for an input: fields of JSON, or a form with a file. */
function requestOf(given) {
  const { readings, ...options } = wanted();
  const set = Object.entries(options).filter(([, value]) => value !== null);
  if (!(given instanceof Blob)) return ["/predict", { json: { ...given, readings, ...Object.fromEntries(set) } }];
  const body = new FormData();
  body.append("images", given, given.name ?? "picture");
  for (const one of readings) body.append("readings", one);
  for (const [name, value] of set) body.append(name, value);
  return ["/predict/files", { method: "POST", body }];
}

function update() {
  changed = true;
  document.body.dataset.waiting = "yes"; // for tests: the answer to this input has not arrived
  clearTimeout(timer);
  timer = setTimeout(send, PAUSE);
}

/** Ask for the input as it is now; the last one wins. */
async function send() {
  if (busy) return;
  busy = true;
  while (changed) {
    changed = false;
    const given = form.given();
    try {
      byId("answer").hidden = given === null;
      if (given !== null) showAnswer(await ask(...requestOf(given)));
      byId("trouble").textContent = "";
    } catch (error) {
      byId("answer").hidden = true;
      byId("trouble").textContent = error.message;
    }
  }
  busy = false;
  delete document.body.dataset.waiting;
  document.body.dataset.settled = "yes";
}

function drawConfidence() {
  byId("confidence-out").textContent = `${Math.round(100 * byId("confidence").value)} %`;
}

try {
  about = await ask("/info");
  const { method, supervision, backbone, labels } = about;
  byId("model").textContent = `${method} ${supervision}, ${backbone}, ${labels.length.toLocaleString("en")} labels`;
  byId("certainty").hidden = wanted().confidence === null;
  setAnswer(about);
  form = makeForm(byId("input"), about, update);
  byId("input").addEventListener("submit", (event) => event.preventDefault());
  byId("confidence").addEventListener("input", () => { drawConfidence(); update(); });
  drawConfidence();
  update();
} catch (error) {
  byId("trouble").textContent = error.message;
}
