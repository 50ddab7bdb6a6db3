// The overview: progress and agreement of people, and the items page by page.

import { ask, byId, make } from "/static/base.js";

const number = (value, digits) => (value === null || value === undefined ? "–" : value.toFixed(digits));

let first = 0, person = null, kind = "image", open = () => {}, timer = null, listed = [], failed = false;

export function setUpOverview(settings) {
  ({ kind, open } = settings);
  byId("show").addEventListener("change", () => { first = 0; listItems(); });
  byId("previous").addEventListener("click", () => turn(-1));
  byId("next").addEventListener("click", () => turn(1));
  byId("again").addEventListener("click", () => open(listed));
}

/** Show the overview for a person and refresh it every five seconds; null stops that. */
export function showOverview(who) {
  person = who;
  clearInterval(timer);
  if (!who) return;
  refresh();
  listItems();
  timer = setInterval(refresh, 5000);
}

let page = 60, total = 0;
function turn(direction) {
  first = Math.max(0, Math.min(first + direction * page, Math.max(0, total - 1)));
  listItems();
}

async function refresh() {
  try {
    const seen = await ask("/api/overview");
    byId("people").replaceChildren(...seen.people.map((one) => make("tr", {},
      make("td", {}, one.name),
      make("td", { class: "number" }, String(one.ranked)),
      make("td", { class: "number" }, String(one.skipped)),
      make("td", { class: "number" }, number(one.seconds, 1)),
      make("td", { class: "number" }, number(one.tau_b === null ? null : 100 * one.tau_b, 1)),
      make("td", { class: "number" }, number(one.reliability, 2)))));
    const agreed = seen.agreement.pairwise_tau_b;
    const apart = seen.disputed === 1 ? "1 item" : `${seen.disputed} items`;
    byId("agreement").textContent = agreed === undefined
      ? "Agreement is shown once two people have ranked the same item."
      : `Mean agreement between two people: τ-b ${(100 * agreed).toFixed(1)} (100 = the same order). They disagree on ${apart}.`;
    byId("exports").hidden = seen.ranked === 0;
    if (failed) listItems();
  } catch (error) {
    fail(error);
  }
}

/** Show an error until the next refresh succeeds. */
function fail(error) {
  failed = true;
  byId("look-problem").textContent = error.message;
}

async function listItems() {
  try {
    const show = byId("show").value;
    const found = await ask(`/api/items?person=${person.id}&first=${first}&show=${show}`);
    ({ page, total } = found);
    listed = found.items.map((one) => one.id);
    byId("again").hidden = !(show === "disputed" || show === "skipped") || listed.length === 0;
    byId("items").replaceChildren(...found.items.map(tile));
    const last = Math.min(first + page, total);
    byId("page").textContent = total ? `${first + 1}–${last} of ${total}` : "No items";
    byId("previous").disabled = first === 0;
    byId("next").disabled = last >= total;
    failed = false;
    byId("look-problem").textContent = "";
  } catch (error) {
    fail(error);
  }
}

function tile(one) {
  const said = one.answer ? (one.answer.state === "skipped" ? "skipped" : one.answer.ranking || "(none)") : "";
  const inside = [make("span", { class: "small" }, one.name)];
  if (kind === "image") {
    inside.unshift(make("img", { src: `/api/items/${one.id}/picture?size=small`, alt: "", loading: "lazy" }));
  } else inside.push(make("span", { class: "small soft" }, one.text));
  if (said) inside.push(make("span", { class: "small soft" }, said));
  if (one.disagreement) inside.push(make("span", { class: "small bad" }, `disagreement ${one.disagreement.toFixed(2)}`));
  return make("li", {}, make("button", { type: "button", onclick: () => open([one.id]) }, ...inside));
}
