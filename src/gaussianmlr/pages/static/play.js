// Digits that people move; every change goes to the server, the last one wins.
import { ask, byId, make } from "./base.js";

const scene = { digits: [], confidence: 0.9 };
let about = null;
let chosen = null;
let last = null;
let busy = false;
let changed = false;

const colour = (label) => `oklch(0.66 0.15 ${36 * Number(label) + 15})`;
const side = (one) => Math.floor(about.side * one.scale);
const within = (one) => {
  const most = about.canvas - side(one);
  one.x = Math.round(Math.min(Math.max(one.x, 0), most));
  one.y = Math.round(Math.min(Math.max(one.y, 0), most));
};
const find = (digit) => scene.digits.find((one) => one.digit === digit);

async function update() {
  changed = true;
  document.body.dataset.waiting = "yes"; // for tests: what is shown is not yet of this scene
  document.body.dataset.scene = JSON.stringify(scene);
  drawHandles();
  if (busy) return;
  busy = true;
  while (changed) {
    changed = false;
    try {
      show(await ask("/api/read", { json: scene }));
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
  one.x += (before - side(one)) / 2; // its middle stays
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
  byId("chosen").textContent = one ? `Digit ${chosen}` : "No digit is chosen";
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

function show(found) {
  last = found;
  byId("picture").src = found.image;
  byId("order").textContent = found.order || "no digit";
  showTruth();
  byId("partial").textContent = found.partial === undefined ? "this method has no sigma" : found.partial || "nothing is sure";
  drawCurves(found);
  drawFirst(found);
  drawPairs(found);
}

function showTruth() {
  const truth = last.truth[byId("factor").value];
  byId("truth").textContent = truth || "no digit";
  byId("order").className = truth === last.order ? "good" : "bad";
  byId("order").title = truth === last.order ? "as the true order" : "not the true order";
}

function drawCurves({ labels, significance, sigma, p_relevant }) {
  const [width, height, floor] = [640, 240, 212];
  const spread = sigma ?? significance.map(() => 0);
  let low = Math.min(-1, ...significance.map((mu, k) => mu - 2.5 * spread[k]));
  let high = Math.max(1, ...significance.map((mu, k) => mu + 2.5 * spread[k]));
  const x = (value) => 12 + (width - 24) * (value - low) / (high - low);
  const top = sigma ? Math.max(...sigma.map((s) => 1 / s)) : 1;
  const nodes = [make("line", { x1: 0, x2: width, y1: floor, y2: floor })];
  nodes.push(make("line", { x1: x(0), x2: x(0), y1: 8, y2: floor + 6, "stroke-dasharray": "4 4" }));
  nodes.push(make("text", { x: x(0), y: height - 6, "text-anchor": "middle", class: "axis" }, "0"));
  const stacked = [];
  labels.forEach((label, k) => {
    const tall = sigma ? 165 * (1 / sigma[k]) / top : 150;
    const points = [];
    if (sigma) {
      for (let step = -40; step <= 40; step++) {
        const z = step / 12;
        points.push(`${x(significance[k] + z * sigma[k]).toFixed(1)},${(floor - tall * Math.exp(-z * z / 2)).toFixed(1)}`);
      }
    } else points.push(`${x(significance[k])},${floor}`, `${x(significance[k])},${floor - tall}`);
    const faint = p_relevant[k] <= 0.5 ? "faint" : "";
    nodes.push(make("path", { d: `M${points.join("L")}`, stroke: colour(label), class: faint }));
    let [tx, ty] = [x(significance[k]), floor - tall - 6];
    while (stacked.some(([ox, oy]) => Math.abs(ox - tx) < 12 && Math.abs(oy - ty) < 15)) ty -= 15;
    stacked.push([tx, ty]);
    nodes.push(make("text", { x: tx, y: Math.max(14, ty), "text-anchor": "middle", fill: colour(label), class: faint }, label));
  });
  byId("curves").replaceChildren(...nodes);
}

function drawFirst({ labels, p_first }) {
  if (!p_first) return byId("first").replaceChildren("This method has no sigma, so that it cannot say.");
  const rows = labels.map((label, k) => [label, p_first[k]]).sort((a, b) => b[1] - a[1]).slice(0, 5);
  return byId("first").replaceChildren(...rows.map(([label, chance]) => {
    const fill = make("div", { class: "fill" });
    fill.style.width = `${100 * chance}%`;
    fill.style.background = colour(label);
    return make("div", { class: "bar-row" }, make("span", {}, label), make("div", { class: "track" }, fill),
      make("span", { class: "number" }, `${(100 * chance).toFixed(1)} %`));
  }));
}

function drawPairs({ labels, p_above, ranks }) {
  if (!p_above) return byId("pairs").replaceChildren();
  const order = labels.map((_, k) => k).sort((a, b) => ranks[b] - ranks[a] || a - b);
  const head = make("tr", {}, make("td"), ...order.map((k) => make("th", { scope: "col" }, labels[k])));
  const rows = order.map((row) => make("tr", {}, make("th", { scope: "row" }, labels[row]), ...order.map((column) => {
    if (row === column) return make("td", {}, "·");
    const chance = p_above[row][column];
    const cell = make("td", {}, String(Math.round(100 * chance)));
    cell.style.background = `color-mix(in srgb, var(--accent) ${Math.round(55 * chance)}%, transparent)`;
    return cell;
  })));
  return byId("pairs").replaceChildren(make("tbody", {}, head, ...rows));
}

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
const confidence = () => {
  scene.confidence = Number(byId("confidence").value);
  byId("confidence-out").textContent = `${Math.round(100 * scene.confidence)} %`;
};
byId("confidence").addEventListener("input", () => { confidence(); update(); });

try {
  about = await ask("/api/start");
  byId("model").textContent = about.model;
  for (const label of document.querySelectorAll(".colour")) label.hidden = !about.colour;
  byId("scale").min = 0.5;
  byId("scale").max = about.largest;
  confidence();
  [3, 7, 1].forEach(add);
  chosen = 1;
  find(3).scale *= 1.6;
  within(find(3));
  drawPicker();
  drawSliders();
  await update();
} catch (error) {
  byId("trouble").textContent = error.message;
}
