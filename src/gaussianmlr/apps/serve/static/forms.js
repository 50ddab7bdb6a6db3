// One form per kind of input: a text, a picture, or the fields of a row.
import { byId, make } from "/static/base.js";

const MANY = 12; // fields that scroll by themselves and can be searched
const MOST_FIELDS = 60; // shown at a time
const MOST_CHOICES = 300; // of a list to choose from; longer ones are typed, with suggestions
const DAY = 86_400_000;

/** Make the form for the inputs of a model; `given` is the input as it is now, null without one. */
export function makeForm(box, about, changed) {
  const { kind, encoding } = about.inputs;
  if (encoding?.length === 1 && encoding[0].kind === "text") return textForm(box, changed);
  return kind === "table" ? rowForm(box, about.inputs, changed) : pictureForm(box, changed);
}

function textForm(box, changed) {
  const area = make("textarea", { id: "text", rows: 6, oninput: changed });
  box.append(make("label", { for: "text" }, "Text"), area);
  area.focus();
  return { given: () => (area.value.trim() ? { texts: [area.value] } : null) };
}

function pictureForm(box, changed) {
  let file = null;
  const picture = make("img", { id: "picture", alt: "The chosen picture", hidden: true, onload: ({ target }) => {
    target.classList.toggle("small", target.naturalWidth < 128);
    URL.revokeObjectURL(target.src);
  } });
  const said = make("span", {}, "Drop a picture here, paste one, or choose a file");
  const input = make("input", { type: "file", id: "file", accept: "image/*", class: "hidden-text", onchange: () => use(input.files[0]) });
  const zone = make("label", { class: "drop", for: "file" }, picture, said, input);
  function use(found) {
    if (!found) return;
    file = found;
    picture.hidden = false;
    picture.src = URL.createObjectURL(found);
    said.textContent = found.name || "picture";
    changed();
  }
  for (const [name, over] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
    zone.addEventListener(name, (event) => {
      event.preventDefault();
      zone.classList.toggle("over", over);
      if (name === "drop") use(event.dataTransfer.files[0]);
    });
  }
  document.addEventListener("paste", (event) => use(event.clipboardData.files[0]));
  box.append(zone);
  return { given: () => file };
}

/** Columns with the kind of their cells and, for numbers and dates, mean and deviation of the training rows. */
function columnsOf({ channels, columns, encoding, scaling }) {
  const names = columns ?? Array.from({ length: channels }, (_, k) => String(k));
  let channel = 0;
  return names.map((name, k) => {
    const column = { name, kind: "number", ...encoding?.[k] };
    if (column.kind === "text") return column; // texts have no scale
    if (scaling) Object.assign(column, { mean: scaling.mean[channel], std: scaling.std[channel] });
    channel += column.kind === "date" ? column.parts.length : 1;
    return column;
  });
}

const rounded = (value) => String(Number(value.toPrecision(4)));

/** What a column holds typically, as text. */
function typical({ kind, mean, categories, frequent, gaps }) {
  if (kind === "number") return mean === undefined ? (gaps ? "" : "0") : rounded(mean);
  if (kind === "boolean") return (mean ?? 0) >= 0.5 ? "true" : "false";
  if (kind === "date") return new Date(Math.round(mean ?? 20_000) * DAY).toISOString().slice(0, 10);
  if (kind === "category") return categories?.[frequent?.[0] ?? 0] ?? "";
  return "";
}

/** A cell as the server reads it: what is no number is sent as it is, and refused with the server's words. */
function cellOf({ kind }, text) {
  const plain = text.trim();
  if (kind === "text") return text;
  if (!plain) return null;
  if (kind === "boolean") return plain === "true" ? true : plain === "false" ? false : plain;
  return kind === "number" && Number.isFinite(Number(plain)) ? Number(plain) : plain;
}

function rowForm(box, inputs, changed) {
  const columns = columnsOf(inputs);
  const values = columns.map(typical);
  const many = columns.length > MANY;
  const fields = make("div", { class: `stack ${many ? "many" : ""}`, id: "fields" });
  const note = make("p", { class: "soft small" });
  const find = make("input", { type: "search", id: "find", placeholder: "Find a column", "aria-label": "Find a column", oninput: draw });

  function set(k, text) {
    values[k] = text;
    changed();
  }
  function draw() {
    const sought = find.value.trim().toLowerCase();
    const found = columns.map((_, k) => k).filter((k) => columns[k].name.toLowerCase().includes(sought));
    fields.replaceChildren(...found.slice(0, MOST_FIELDS).map((k) => fieldOf(columns[k], k, values[k], (text) => set(k, text))));
    note.textContent = found.length > MOST_FIELDS
      ? `${MOST_FIELDS} of ${found.length.toLocaleString("en")} columns are shown; the others keep their values.`
      : "";
  }
  function fill(made) {
    columns.forEach((column, k) => { values[k] = made(column); });
    draw();
    changed();
  }
  fields.addEventListener("paste", (event) => { // cells of a spreadsheet fill this field and those behind it
    const line = event.clipboardData.getData("text").replace(/\r?\n[^]*/, "");
    const start = Number(event.target.dataset.column);
    if (!line.includes("\t") || Number.isNaN(start)) return;
    event.preventDefault();
    line.split("\t").slice(0, columns.length - start).forEach((cell, k) => { values[start + k] = cell.trim(); });
    draw();
    byId(`column-${start}`)?.focus();
    changed();
  });
  box.append(
    make("div", { class: "row" },
      make("button", { type: "button", id: "typical", onclick: () => fill(typical) }, "Typical values"),
      make("button", { type: "button", id: "empty", onclick: () => fill(() => "") }, "Empty")),
    ...(many ? [find] : []), fields, note,
    make("p", { class: "soft small" }, "Cells copied from a spreadsheet fill a field and those behind it."));
  draw();
  return { given: () => ({ rows: [columns.map((column, k) => cellOf(column, values[k]))] }) };
}

/** The field of a column: a number with a slider, a choice, a date or a text. */
function fieldOf(column, k, value, set) {
  const id = `column-${k}`;
  const named = { id, "data-column": k };
  const row = make("div", { class: "field" }, make("label", { for: id }, column.name));
  if (column.kind === "number") {
    const input = make("input", { ...named, type: "text", inputmode: column.mean - 3 * column.std >= 0 ? "decimal" : "text", value });
    row.append(input);
    if (column.mean === undefined) {
      input.addEventListener("input", () => set(input.value));
      return row;
    }
    const [low, high] = [column.mean - 3 * column.std, column.mean + 3 * column.std];
    const slider = make("input", { type: "range", min: low, max: high, step: (high - low) / 200, "aria-label": `${column.name}, slider` });
    slider.value = value;
    input.addEventListener("input", () => { slider.value = input.value; set(input.value); });
    slider.addEventListener("input", () => { input.value = rounded(Number(slider.value)); set(input.value); });
    row.append(slider);
  } else if (column.kind === "date") {
    row.append(make("input", { ...named, type: /^(|\d{4}-\d\d-\d\d)$/.test(value) ? "date" : "text", value, oninput: ({ target }) => set(target.value) }));
  } else if (column.kind === "text") {
    const area = make("textarea", { ...named, rows: 3, oninput: ({ target }) => set(target.value) });
    area.value = value;
    row.append(area);
  } else {
    row.append(...choiceOf(column, named, value, set));
  }
  return row;
}

function choiceOf(column, named, value, set) {
  const choices = column.kind === "boolean" ? ["true", "false"] : column.categories ?? [];
  if (choices.length > MOST_CHOICES) {
    const list = `${named.id}-list`;
    const suggested = make("datalist", { id: list }, ...choices.map((one) => make("option", { value: one })));
    return [make("input", { ...named, type: "text", list, value, oninput: ({ target }) => set(target.value) }), suggested];
  }
  const all = value && !choices.includes(value) ? [value, ...choices] : choices; // what was pasted stays
  const select = make("select", { ...named, onchange: ({ target }) => set(target.value) },
    make("option", { value: "" }, "(empty)"), ...all.map((one) => make("option", { value: one }, one)));
  select.value = value;
  return [select];
}
