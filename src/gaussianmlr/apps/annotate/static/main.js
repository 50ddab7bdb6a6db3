// The ranking page: shows an item, lets people order labels by keys, clicks or drags, and saves the order.

import { ask, byId, make } from "/static/base.js";
import { allowDrags } from "/static/annotate/drag.js";
import { append, bucketOf, move, putAt, remove, same, toggleTie, write } from "/static/annotate/order.js";
import { setUpOverview, showOverview } from "/static/annotate/overview.js";
import { makeZoom } from "/static/annotate/zoom.js";

const RESERVED = "sungz";
const KEYS = [..."1234567890", ..."qwertyiopadfhjklxcvbm"].filter((key) => !RESERVED.includes(key));
const NAME = "gmlr-annotate-name";

let project, person, zoom;
let item = null, order = [], steps = [], picked = null, queue = null, busy = false;
let spent = 0, since = 0, sent = null, askedEmpty = null, savedItem = null;
const ahead = new Map();
const drafts = new Map(); // answers that could not be saved, by item

const say = (text, kind = "") => {
  byId("status").textContent = text;
  byId("status").className = `small status ${kind}`;
};
/** Show an error, with a button to try again where that may succeed: no reply, a locked store, a full disk. */
function complain(error, again) {
  byId("problem").textContent = error ? error.message : "";
  byId("retry").hidden = !again || !(error.status === 0 || error.status >= 500);
  byId("retry").onclick = again;
}
const token = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (one) => one.toString(16).padStart(2, "0")).join("");

/** The name saved in this browser, or save a new one; null where storage is blocked. */
function remembered(name) {
  try {
    if (name !== undefined) localStorage.setItem(NAME, name);
    return localStorage.getItem(NAME);
  } catch {
    return null;
  }
}

// The time per item counts only while the page is visible.
const startClock = () => { spent = 0; since = performance.now(); };
const clock = () => spent + (document.hidden ? 0 : performance.now() - since);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) spent += performance.now() - since;
  else since = performance.now();
});

// Views

function show(view) {
  for (const id of ["join", "work", "done", "look"]) byId(id).hidden = id !== view;
  byId("nav").hidden = view === "join";
  byId("progress").hidden = view === "join";
  byId("go-work").setAttribute("aria-pressed", String(view === "work" || view === "done"));
  byId("go-look").setAttribute("aria-pressed", String(view === "look"));
  showOverview(view === "look" ? person : null);
}

function showProgress({ ranked, skipped, items }) {
  byId("progress-bar").max = Math.max(1, items);
  byId("progress-bar").value = ranked + skipped;
  const more = skipped ? `, ${skipped} skipped` : "";
  byId("progress-text").textContent = `${ranked} of ${items} ranked${more}`;
}

function showItem(found, start) {
  item = found.item;
  showProgress(found.progress);
  if (!item) return show("done");
  savedItem = null;
  byId("back").disabled = item.before === null;
  byId("on").disabled = item.after === null;
  start ??= drafts.get(item.id);
  order = start?.order ?? (item.answer?.state === "ranked" ? item.answer.order : []);
  byId("note").value = start?.note ?? item.answer?.note ?? "";
  steps = [];
  picked = order.at(-1)?.at(-1) ?? null;
  byId("search").value = "";
  byId("item-name").textContent = item.name;
  byId("viewer").hidden = byId("zooming").hidden = project.kind !== "image";
  byId("text").hidden = project.kind !== "text";
  byId("cells").hidden = project.kind !== "row";
  if (project.kind === "image") {
    zoom.reset();
    byId("picture").src = pictureOf(item.id);
    byId("picture").alt = `The picture ${item.name}`;
  } else if (project.kind === "text") byId("text").textContent = item.content;
  else {
    const rows = Object.entries(item.content).map(([name, value]) =>
      make("tr", {}, make("th", { scope: "row" }, name), make("td", { class: "number" }, String(value ?? "–"))));
    byId("cells").replaceChildren(make("table", {}, make("tbody", {}, ...rows)));
  }
  showHints();
  show("work");
  render();
  for (const id of ["text", "cells", "labels"]) byId(id).scrollTop = 0;
  scrollTo(0, 0);
  startClock();
  fetchAhead(found.ahead);
}

const pictureOf = (id, size = "view") => `/api/items/${id}/picture?size=${size}`;

/** Fetch the next pictures in advance. */
function fetchAhead(ids) {
  if (project.kind !== "image") return;
  for (const id of [...ahead.keys()]) if (!ids.includes(id) && id !== item.id) ahead.delete(id);
  for (const id of ids) {
    if (ahead.has(id)) continue;
    const image = new Image();
    image.src = pictureOf(id);
    ahead.set(id, image);
  }
}

function showHints() {
  const { suggestion, others } = item;
  byId("suggestion").hidden = !suggestion;
  if (suggestion) {
    byId("suggestion").replaceChildren(
      make("span", { class: "soft" }, "The model suggests ", make("strong", {}, write(suggestion.order) || "(none)")),
      make("button", { type: "button", onclick: takeSuggestion }, "Accept ", make("kbd", {}, "G")));
  }
  byId("others").hidden = !others?.length;
  if (others?.length) {
    byId("others").replaceChildren(make("span", { class: "soft" }, "Other people's orders"), make("ul", {}, ...others.map((one) =>
      make("li", {}, make("strong", {}, one.name), `: ${one.ranking || "(none)"}`, one.note ? ` (${one.note})` : ""))));
  }
}

// The current order

function change(next, pick = picked) {
  if (!same(next, order)) {
    steps.push([order, picked]);
    savedItem = null; // changed after it was saved, while the next item could not be fetched: save it again
  }
  order = next;
  picked = bucketOf(order, pick) >= 0 ? pick : order.at(-1)?.at(-1) ?? null;
  say(write(order) || "No labels");
  render();
}

function press(label, byKeyboard) {
  if (bucketOf(order, label) >= 0) picked = label;
  else change(append(order, label), label);
  render();
  if (byKeyboard) (byId("labels").querySelector("button") ?? byId("save")).focus();
}

function takeSuggestion() {
  if (item?.suggestion) change(item.suggestion.order, item.suggestion.order.at(-1)?.at(-1));
}

function render() {
  byId("order").replaceChildren(...order.map((bucket) => {
    const chips = bucket.flatMap((label, place) => [
      ...(place ? [make("span", { class: "same", "aria-hidden": "true" }, "=")] : []),
      make("button", { type: "button", class: "chip", "data-label": label, "aria-pressed": String(label === picked),
        onclick: () => { picked = label; render(); } }, label)]);
    return make("li", { "data-first": bucket[0], "aria-label": bucket.length > 1 ? `${bucket.join(" and ")}, tied` : bucket[0] }, ...chips);
  }));
  const wanted = byId("search").value.trim().toLowerCase();
  const offered = item.offered ?? project.labels;
  const free = project.labels.filter((label) => offered.includes(label) && bucketOf(order, label) < 0 && label.toLowerCase().includes(wanted));
  byId("labels").replaceChildren(...free.map((label) => {
    const key = KEYS[project.labels.indexOf(label)];
    return make("button", { type: "button", class: "chip", "data-label": label, "aria-label": label, "aria-keyshortcuts": key, title: project.about[label],
      onclick: (event) => press(label, event.detail === 0) }, ...(key ? [make("kbd", { "aria-hidden": "true" }, key)] : []), label);
  }));
  byId("tools").hidden = picked === null;
  byId("label-about").hidden = !Object.hasOwn(project.about, picked ?? "");
  byId("label-about").textContent = byId("label-about").hidden ? "" : `${picked}: ${project.about[picked]}`;
  const names = { "tool-up": "Move up", "tool-down": "Move down", "tool-tie": "Tie with the label above, or untie", "tool-remove": "Remove" };
  for (const [id, name] of Object.entries(names)) byId(id).setAttribute("aria-label", `${name}: ${picked}`);
}

const tools = {
  up: () => picked && change(move(order, picked, true)),
  down: () => picked && change(move(order, picked, false)),
  tie: () => picked && change(toggleTie(order, picked)),
  remove: () => picked && change(remove(order, picked), null),
};

function drop(label, { how, label: other }) {
  if (how === "outside") change(remove(order, label));
  else if (how === "end") change(append(order, label), label);
  else change(putAt(order, label, other, how), label);
}

// Requests to the server

/** Run one task at a time. A task may return its next step, so that a retry does not repeat what succeeded. */
async function guarded(work) {
  if (busy) return;
  busy = true;
  let step = work;
  try {
    while (typeof step === "function") step = await step();
    complain(null);
  } catch (error) {
    complain(error, () => guarded(step));
  } finally {
    busy = false;
  }
}

async function next() {
  if (queue) {
    if (!queue.length) {
      queue = null;
      return show("look");
    }
    const found = await ask(`/api/items/${queue[0]}?person=${person.id}&others=true`);
    queue.shift();
    return showItem(found);
  }
  showItem(await ask(`/api/next?person=${person.id}`));
}

const save = (state) => guarded(async () => {
  if (!item) return;
  if (savedItem === item.id) return next; // saved, but the next item could not be fetched
  if (state === "ranked" && !order.length && askedEmpty !== item.id) {
    askedEmpty = item.id; // an accidental Enter must not become an answer
    return say("The order is empty. Save again to confirm that no label applies.");
  }
  const answer = { person: person.id, state, order: state === "ranked" ? order : [], note: byId("note").value };
  const key = JSON.stringify([item.id, answer]);
  // An answer that is sent again after a lost reply counts once; a changed one gets a new token.
  if (sent?.key !== key) sent = { key, token: token() };
  say("Saving ...");
  let found;
  try {
    found = await ask(`/api/items/${item.id}/answers`, { json: { ...answer, token: sent.token, seconds: clock() / 1000 } });
  } catch (error) {
    drafts.set(item.id, { order, note: answer.note });
    say("Not saved. Your answer is kept on this page.", "bad");
    throw error;
  }
  drafts.delete(item.id);
  savedItem = item.id;
  sent = askedEmpty = null;
  const said = found.saved.state === "skipped" ? "skipped" : found.saved.ranking || "(none)";
  byId("note").blur();
  return async () => {
    // Said last, also where the next item cannot be fetched: from then on keys count for what is shown.
    await next().finally(() => say(`Saved: ${said}`, "good"));
  };
});

const undo = () => guarded(async () => {
  if (steps.length && !byId("work").hidden) {
    [order, picked] = steps.pop();
    return render();
  }
  const found = await ask("/api/undo", { json: { person: person.id } }).catch((error) => {
    // Sending it again could undo a second answer.
    throw error.status === 0 ? new Error(`${error.message} The last answer may have been undone.`) : error;
  });
  drafts.delete(found.item.id);
  queue = null;
  sent = null;
  showItem(found, { order: found.taken.order, note: found.taken.note });
  say("The last answer was undone.");
});

/** Show the item before or after, answered or not. What was changed here is kept until it is saved. */
const step = (number) => guarded(async () => {
  if (!item || number === null || number === undefined) return;
  const note = byId("note").value;
  const was = item.answer?.state === "ranked" ? item.answer : { order: [], note: item.answer?.note ?? "" };
  if (savedItem !== item.id && (!same(order, was.order) || note !== (was.note ?? ""))) drafts.set(item.id, { order, note });
  const found = await ask(`/api/items/${number}?person=${person.id}`);
  showItem(found);
  say(found.item.answer ? `Your answer: ${found.item.answer.state === "skipped" ? "skipped" : found.item.answer.ranking || "(none)"}` : "Not answered yet");
});

async function join(name) {
  person = await ask("/api/people", { json: { name } });
  remembered(person.name);
  byId("who").textContent = person.name;
  byId("who").setAttribute("aria-label", `You are ${person.name}. Change person`);
  queue = null;
  return next;
}

// Keys

function onKey(event) {
  const typing = event.target.matches("input, textarea, select");
  if (event.key === "Escape" && typing) return event.target.blur();
  if (byId("work").hidden && byId("done").hidden) return;
  const undoKey = event.key.toLowerCase() === "z" && (event.ctrlKey || event.metaKey);
  if (typing) {
    if (event.key === "Enter" && event.target.id === "search") {
      event.preventDefault();
      const chip = byId("labels").querySelector("button");
      if (chip) { byId("search").value = ""; press(chip.dataset.label); }
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save("ranked");
    return;
  }
  if (undoKey) { event.preventDefault(); return undo(); }
  if (event.altKey || ((event.ctrlKey || event.metaKey) && event.key !== "Enter")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (byId("work").hidden) return key === "u" ? undo() : undefined;
  if (key === "Enter" && event.target.matches("button, a, summary") && !event.ctrlKey) return;
  const acts = {
    Enter: () => save("ranked"), s: () => save("skipped"), u: undo, g: takeSuggestion, "=": tools.tie,
    ArrowLeft: () => step(item.before), ArrowRight: () => step(item.after),
    ArrowUp: tools.up, ArrowDown: tools.down, Delete: tools.remove, Backspace: tools.remove,
    n: () => byId("note").focus(), "/": () => byId("search").hidden || byId("search").focus(),
    "+": () => zoom.by(1.5), "-": () => zoom.by(1 / 1.5), z: zoom.toggle,
  };
  const label = project.labels[KEYS.indexOf(key)];
  if (item.offered && label !== undefined && !item.offered.includes(label)) return;
  if (event.repeat && !key.startsWith("Arrow")) return;
  if (Object.hasOwn(acts, key)) acts[key]();
  else if (KEYS.includes(key) && label !== undefined) press(label);
  else return;
  event.preventDefault();
}

async function begin() {
  project = await ask("/api/project");
  setUp();
  const known = remembered();
  if (known) return () => join(known);
  show("join");
  byId("name").focus();
}

function setUp() {
  document.title = byId("title").textContent = `Rank labels: ${project.title}`;
  byId("search").hidden = project.labels.length <= 12;
  zoom = makeZoom(byId("viewer"), byId("picture"), () => {
    if (!byId("picture").src.endsWith("full")) byId("picture").src = pictureOf(item.id, "full");
  });
  allowDrags(byId("work"), byId("order"), byId("order-card"), drop);
  setUpOverview({ kind: project.kind, open: (ids) => guarded(async () => { queue = [...ids]; return async () => { await next(); say("Reviewing this item"); }; }) });
  byId("join-form").addEventListener("submit", (event) => {
    event.preventDefault();
    byId("name").blur();
    guarded(() => join(byId("name").value));
  });
  byId("save").addEventListener("click", () => save("ranked"));
  byId("skip").addEventListener("click", () => save("skipped"));
  byId("undo").addEventListener("click", undo);
  byId("back").addEventListener("click", () => step(item.before));
  byId("on").addEventListener("click", () => step(item.after));
  byId("guide-card").hidden = !project.guide;
  byId("guide-card").open = matchMedia("(min-width: 48.01rem)").matches;
  byId("guide").innerHTML = project.guide; // the server rendered it without raw HTML, and no script may run on this page
  byId("done-undo").addEventListener("click", undo);
  byId("search").addEventListener("input", render);
  byId("go-look").addEventListener("click", () => show("look"));
  byId("go-work").addEventListener("click", () => guarded(async () => { queue = null; return next; }));
  byId("who").addEventListener("click", () => { show("join"); byId("name").focus(); });
  for (const name of Object.keys(tools)) byId(`tool-${name}`).addEventListener("click", tools[name]);
  byId("picture").addEventListener("error", () =>
    complain(new Error("This picture cannot be shown: the file is damaged or missing. Skip the item, or fix the file.")));
  byId("zoom-in").addEventListener("click", () => zoom.by(1.5));
  byId("zoom-out").addEventListener("click", () => zoom.by(1 / 1.5));
  byId("zoom-fit").addEventListener("click", zoom.toggle);
  document.addEventListener("keydown", onKey);
  window.addEventListener("beforeunload", (event) => { if (drafts.size) event.preventDefault(); });
}

guarded(begin);
