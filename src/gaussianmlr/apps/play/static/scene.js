// Digits that people move; every change is sent to the server, and the last one wins.
import { ask, byId, make } from "/static/base.js";
import { showAnswers, showTruth } from "/static/play/answers.js";

const scene = { digits: [], confidence: 0.9 };
let about = null;
let chosen = null;
let busy = false;
let changed = false;

const side = (one) => Math.floor(about.side * one.scale);
const within = (one) => {
  const most = about.canvas - side(one);
  one.x = Math.round(Math.min(Math.max(one.x, 0), most));
  one.y = Math.round(Math.min(Math.max(one.y, 0), most));
};
const find = (digit) => scene.digits.find((one) => one.digit === digit);

/** Ask what the models say of the scene as it is now. */
export async function update() {
  changed = true;
  document.body.dataset.waiting = "yes"; // for tests: the answer to this scene has not arrived
  document.body.dataset.scene = JSON.stringify(scene);
  drawHandles();
  if (busy) return;
  busy = true;
  while (changed) {
    changed = false;
    try {
      showAnswers(await ask("/api/read", { json: scene }));
      byId("trouble").textContent = "";
    } catch (error) {
      byId("trouble").textContent = error.message;
    }
  }
  busy = false;
  delete document.body.dataset.waiting;
  document.body.dataset.settled = "yes";
}

function resize(one, scale) {
  const before = side(one);
  one.scale = Math.min(Math.max(scale, 0.5), about.largest);
  one.x += (before - side(one)) / 2; // keep the centre
  one.y += (before - side(one)) / 2;
  within(one);
}

function add(digit) {
  const scale = Math.min(1.5 + 0.25 * (scene.digits.length % 4), about.largest / 3);
  const one = { digit, x: 0, y: 0, scale, brightness: 1, hue: digit / 10, saturation: 0.8, style: digit * 7 };
  const places = [[0.3, 0.3], [0.7, 0.7], [0.7, 0.3], [0.3, 0.7], [0.5, 0.5]];
  const [left, top] = places[scene.digits.length % places.length];
  one.x = left * about.canvas - side(one) / 2;
  one.y = top * about.canvas - side(one) / 2;
  within(one);
  scene.digits.push(one);
}

function choose(digit) {
  chosen = digit;
  drawSliders();
  drawHandles();
}

function toggle(digit) {
  if (find(digit)) {
    scene.digits = scene.digits.filter((one) => one.digit !== digit);
    if (chosen === digit) chosen = scene.digits.at(-1)?.digit ?? null;
  } else {
    add(digit);
    chosen = digit;
  }
  drawPicker();
  drawSliders();
  update();
}

function drawPicker() {
  byId("picker").replaceChildren(...Array.from({ length: 10 }, (_, digit) => make("button", {
    type: "button", "aria-pressed": String(Boolean(find(digit))), "aria-label": `Digit ${digit} on the canvas`,
    "data-digit": digit, onclick: () => { toggle(digit); byId("picker").children[digit].focus(); },
  }, String(digit))));
}

function drawSliders() {
  const one = find(chosen);
  byId("sliders").disabled = !one;
  byId("chosen").textContent = one ? `Digit ${chosen}` : "No digit selected";
  for (const name of ["scale", "brightness", "hue", "saturation"]) {
    if (one) byId(name).value = one[name];
    byId(`${name}-out`).textContent = one ? one[name].toFixed(2) : "";
  }
}

function drawHandles() {
  const stage = byId("stage");
  for (const handle of stage.querySelectorAll("button")) if (!find(Number(handle.dataset.digit))) handle.remove();
  for (const one of scene.digits) {
    let handle = stage.querySelector(`button[data-digit="${one.digit}"]`);
    if (!handle) stage.append(handle = makeHandle(one.digit));
    const percent = (pixels) => `${100 * pixels / about.canvas}%`;
    handle.style.left = percent(one.x);
    handle.style.top = percent(one.y);
    handle.style.width = handle.style.height = percent(side(one));
    handle.setAttribute("aria-pressed", String(one.digit === chosen));
  }
}

function makeHandle(digit) {
  let grip = null;
  const pixels = (event) => {
    const box = byId("stage").getBoundingClientRect();
    const zoom = about.canvas / box.width;
    return [(event.clientX - box.left) * zoom, (event.clientY - box.top) * zoom];
  };
  return make("button", {
    type: "button", "data-digit": digit, "aria-label": `Digit ${digit}: arrow keys move it, plus and minus resize it`,
    onpointerdown: (event) => {
      const [x, y] = pixels(event);
      grip = [x - find(digit).x, y - find(digit).y];
      event.currentTarget.setPointerCapture(event.pointerId);
      choose(digit);
    },
    onpointermove: (event) => {
      if (!grip) return;
      const [x, y] = pixels(event);
      Object.assign(find(digit), { x: x - grip[0], y: y - grip[1] });
      within(find(digit));
      update();
    },
    onpointerup: () => { grip = null; },
    onpointercancel: () => { grip = null; },
    onfocus: () => choose(digit),
    onkeydown: (event) => {
      const one = find(digit);
      const step = event.shiftKey ? 1 : 6;
      const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
      if (moves[event.key]) {
        one.x += moves[event.key][0];
        one.y += moves[event.key][1];
        within(one);
      } else if (event.key === "+" || event.key === "=") resize(one, one.scale + 0.1);
      else if (event.key === "-") resize(one, one.scale - 0.1);
      else if (event.key === "Delete" || event.key === "Backspace") return toggle(digit);
      else return;
      event.preventDefault();
      drawSliders();
      update();
    },
  });
}

/** Choose the models to ask. */
export function setModels(models) {
  scene.models = models;
}

/** Start with three digits. */
export async function startScene(found) {
  about = found;
  for (const label of document.querySelectorAll(".colour")) label.hidden = !about.colour;
  byId("scale").min = 0.5;
  byId("scale").max = about.largest;
  for (const name of ["scale", "brightness", "hue", "saturation"]) {
    byId(name).addEventListener("input", () => {
      const one = find(chosen);
      if (name === "scale") resize(one, Number(byId(name).value));
      else one[name] = Number(byId(name).value);
      drawSliders();
      update();
    });
  }
  byId("style").addEventListener("click", () => { find(chosen).style += 1; update(); });
  byId("factor").addEventListener("change", showTruth);
  byId("confidence").addEventListener("input", () => { readConfidence(); update(); });
  readConfidence();
  [3, 7, 1].forEach(add);
  chosen = 1;
  find(3).scale *= 1.6;
  within(find(3));
  drawPicker();
  drawSliders();
  await update();
}

function readConfidence() {
  scene.confidence = Number(byId("confidence").value);
  byId("confidence-out").textContent = `${Math.round(100 * scene.confidence)} %`;
}
