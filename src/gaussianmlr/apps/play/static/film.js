// The film: one request fetches all frames and predictions; this plays, pauses and seeks.
import { ask, byId, make } from "/static/base.js";
import { colour } from "/static/web/charts.js";
import { drawTrack, makeTrack, numbersSaid, showFrame } from "/static/play/track.js";

const WIDE = 10; // frames in a row of the sheet
const SECONDS = 6; // a film takes, at speed 1
const still = matchMedia("(prefers-reduced-motion: reduce)");
const WORDS = { gains: "gains", keeps: "keeps it", loses: "loses" };

let about = null;
let tracks = [];
let film = null;
let sheet = null;
let frame = 0;
let clock = null; // of the animation that is under way
let inside = false;
let wanted = { factor: "scale", seed: 0, digits: null, models: [0] };
let asking = 0;
let saying = null;

const last = () => film.true.length - 1;

/** Set up the controls of the film. */
export function startFilm(found) {
  about = found;
  byId("screen").width = byId("screen").height = about.canvas;
  byId("play").addEventListener("click", () => (clock ? pause() : play()));
  byId("frame").addEventListener("input", () => { pause(); if (film) seek(Number(byId("frame").value)); });
  byId("film-factor").addEventListener("change", () => shoot({ factor: byId("film-factor").value }));
  byId("another").addEventListener("click", another);
  document.addEventListener("keydown", keys);
  document.addEventListener("visibilitychange", () => { if (document.hidden) pause(); });
}

/** Choose the models that predict the film. */
export function setWatchers(models) {
  tracks = models.map(({ model, index }) => makeTrack(model, index));
  byId("tracks").replaceChildren(...tracks.map(({ box }) => box));
  wanted.models = models.map(({ index }) => index);
  film = null;
  if (inside) shoot({}, { at: frame, run: false });
}

/** Show the film view: make a film if there is none, and play it unless reduced motion is preferred. */
export function enterFilm() {
  inside = true;
  if (!film) shoot({});
}

/** Leave the film view. */
export function leaveFilm() {
  inside = false;
  pause();
}

function another() {
  shoot({ seed: wanted.seed + 1, digits: byId("keep").checked ? film?.digits ?? wanted.digits : null });
}

async function shoot(change, { at = 0, run = !still.matches } = {}) {
  pause();
  wanted = { ...wanted, ...change };
  const mine = ++asking;
  document.body.dataset.filming = "yes"; // for tests and styles: the new film has not arrived
  byId("play").disabled = !film; // the current film can be played until then
  try {
    const found = await ask("/api/film", { json: wanted });
    const picture = new Image();
    picture.src = found.sheet;
    await picture.decode();
    if (mine !== asking) return; // a newer request was sent meanwhile
    pause();
    [film, sheet] = [found, picture];
    byId("trouble").textContent = "";
    show(Math.min(at, last()));
    delete document.body.dataset.filming;
    byId("play").disabled = false;
    if (document.activeElement === byId("go-film")) byId("play").focus(); // Space then plays and pauses
    if (run && inside) play();
  } catch (error) {
    if (mine !== asking) return;
    delete document.body.dataset.filming;
    byId("play").disabled = !film;
    byId("trouble").textContent = error.message;
  }
}

function show(at) {
  byId("frame").max = last();
  drawCast();
  const legend = film.digits.map((digit, k) => {
    const dot = make("span", { class: "swatch" });
    dot.style.background = colour(digit);
    return make("span", { class: "row" }, dot, `${digit} ${WORDS[film.roles[k]]}`);
  });
  byId("film-legend").replaceChildren(...legend);
  tracks.forEach((track, place) => drawTrack(track, film, film.answers[place]));
  seek(at);
}

function drawCast() {
  byId("cast").replaceChildren(...film.roles.map((role, k) => {
    const choices = Array.from({ length: 10 }, (_, digit) => make("option", { value: digit, selected: digit === film.digits[k] }, String(digit)));
    return make("label", { for: `cast-${role}` }, role[0].toUpperCase() + role.slice(1),
      make("select", { id: `cast-${role}`, onchange: (event) => cast(k, Number(event.target.value)) }, ...choices));
  }));
}

/** Give a role to a digit; a digit that had it takes the role that became free. */
async function cast(k, digit) {
  if (!film) return;
  const digits = [...film.digits];
  const other = digits.indexOf(digit);
  if (other >= 0) digits[other] = digits[k];
  digits[k] = digit;
  byId("keep").checked = true;
  await shoot({ digits });
  if (film) byId(`cast-${film.roles[k]}`).focus();
}

function seek(t) {
  frame = Math.min(Math.max(t, 0), last());
  const side = about.canvas;
  const screen = byId("screen").getContext("2d");
  screen.imageSmoothingEnabled = false;
  screen.drawImage(sheet, side * (frame % WIDE), side * Math.floor(frame / WIDE), side, side, 0, 0, side, side);
  const sizes = film.digits.map((digit, k) => `${digit} at ${film.true[frame][k].toFixed(2)}`).join(", ");
  byId("screen").setAttribute("aria-label", `Frame ${frame + 1} of ${last() + 1}: ${film.factor} of ${sizes}`);
  byId("frame").value = frame;
  byId("frame").setAttribute("aria-valuetext", `${frame + 1} of ${last() + 1}`);
  byId("frame-out").textContent = `${frame + 1} of ${last() + 1}`;
  byId("film-truth").textContent = film.orders[frame];
  for (const track of tracks) showFrame(track, frame);
  if (!clock) say();
}

/** Announce the frame to screen readers once the film stands still, not on every frame. */
function say() {
  clearTimeout(saying);
  saying = setTimeout(() => { if (film && !clock && inside) sayNow(); }, 400);
}

function sayNow() {
  const found = tracks.map((track) => (frame === last() ? numbersSaid(track)
    : `${track.model.title}: ${track.answer.orders[frame] || "(none)"}`));
  byId("film-said").textContent = `True order ${film.orders[frame]}. ${found.join(". ")}`;
}

function play() {
  if (!film) return;
  if (frame === last()) seek(0);
  const mine = clock = { from: null, at: frame };
  byId("play").textContent = "Pause";
  const step = (now) => {
    if (clock !== mine) return;
    mine.from ??= now;
    // The speed may change while playing, so time is counted per step.
    mine.at += (now - mine.from) / 1000 * Number(byId("speed").value) * last() / SECONDS;
    mine.from = now;
    if (Math.floor(mine.at) !== frame) seek(Math.floor(mine.at));
    if (frame === last()) pause();
    else requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}

function pause() {
  if (!clock) return;
  clock = null;
  byId("play").textContent = "Play";
  say();
}

function keys(event) {
  if (!inside || !film || event.ctrlKey || event.metaKey || event.altKey) return;
  const own = event.target.closest("input, select, textarea, button, a")?.type ?? "page"; // controls have their own keys
  if (!["page", "button", "range"].includes(own) || (own === "button" && event.key === " ")) return;
  if (own === "range" && /^(Arrow|Home|End)/.test(event.key)) return;
  const moves = { ArrowLeft: frame - 1, ArrowRight: frame + 1, Home: 0, End: last() };
  if (event.key === " ") (clock ? pause : play)();
  else if (event.key in moves) { pause(); seek(moves[event.key]); }
  else if (event.key === "n" || event.key === "N") another();
  else return;
  event.preventDefault();
}
