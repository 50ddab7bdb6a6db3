// The page: the choice of models, and of canvas or film.
import { ask, byId, make } from "/static/base.js";
import { setColumns } from "/static/play/answers.js";
import { enterFilm, leaveFilm, setWatchers, startFilm } from "/static/play/film.js";
import { setModels, startScene, update } from "/static/play/scene.js";

let about = null;
let shown = [];

/** The name of a single model, or buttons to choose among several. */
function drawModels() {
  if (about.models.length === 1) {
    const [{ title, detail }] = about.models;
    return byId("models").replaceChildren(make("span", { class: "soft" }, `${title} (${detail})`));
  }
  return byId("models").replaceChildren(...about.models.map(({ title, detail }, index) => make("button", {
    type: "button", "aria-pressed": String(shown.includes(index)), title: detail, "data-model": index,
    onclick: () => toggle(index),
  }, title)));
}

function toggle(index) {
  const others = shown.filter((one) => one !== index);
  if (!others.length) return; // at least one model stays
  shown = others.length < shown.length ? others : [...others, index].sort();
  drawModels();
  byId("models").children[index].focus();
  useModels();
  update();
}

function useModels() {
  const models = shown.map((index) => ({ model: about.models[index], index }));
  document.body.dataset.columns = shown.length;
  setModels(shown);
  setColumns(models);
  setWatchers(models);
}

function go() {
  const film = location.hash === "#film";
  byId("canvas-view").hidden = film;
  byId("film-view").hidden = !film;
  byId("go-canvas").setAttribute("aria-pressed", String(!film));
  byId("go-film").setAttribute("aria-pressed", String(film));
  if (film) enterFilm();
  else leaveFilm();
}

byId("go-canvas").addEventListener("click", () => { location.hash = ""; });
byId("go-film").addEventListener("click", () => { location.hash = "film"; });
window.addEventListener("hashchange", go);

try {
  about = await ask("/api/start");
  shown = about.models.map((_, index) => index);
  drawModels();
  useModels();
  startFilm(about);
  go();
  await startScene(about);
} catch (error) {
  byId("trouble").textContent = error.message;
}
