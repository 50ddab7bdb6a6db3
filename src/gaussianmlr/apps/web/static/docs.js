// The HTTP API as a page, from /openapi.json alone: nothing is loaded from elsewhere.
import { ask, byId, make } from "/static/base.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
const LONGEST = 20_000; // characters of an answer that are shown
let schemas = {};

const followed = (schema) => (schema?.$ref ? followed(schemas[schema.$ref.split("/").pop()]) : schema ?? {});

/** A type in words: "array of number, or null". */
function typeOf(given) {
  const schema = followed(given);
  const many = schema.anyOf ?? schema.oneOf;
  if (many) return many.map(typeOf).join(" or ");
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(", ");
  if (schema.type === "array") return schema.items ? `array of (${typeOf(schema.items)})` : "array";
  const type = [schema.type ?? "any"].flat().join(", ");
  return schema.format === "binary" || schema.contentMediaType ? "file" : type;
}

/** The limits of a value, such as "> 0.5, < 1". */
function limitsOf(given) {
  const schema = followed(given);
  const signs = { minimum: "≥", exclusiveMinimum: ">", maximum: "≤", exclusiveMaximum: "<", minLength: "length ≥", maxLength: "length ≤", minItems: "items ≥", maxItems: "items ≤" };
  const parts = [schema, ...(schema.anyOf ?? []).map(followed)];
  return parts.flatMap((part) => Object.keys(signs).filter((key) => key in part).map((key) => `${signs[key]} ${part[key]}`)).join(", ");
}

function fieldRows(properties, required) {
  return Object.entries(properties).map(([name, schema]) => make("tr", {},
    make("th", { scope: "row" }, make("code", {}, name), required.includes(name) ? " (required)" : ""),
    make("td", {}, make("code", {}, typeOf(schema)), limitsOf(schema) ? `; ${limitsOf(schema)}` : "",
      make("div", { class: "small" }, followed(schema).description ?? schema.description ?? ""))));
}

/** A first body to send: what is required, else the field that the server's model takes. */
function exampleOf(schema) {
  const { properties = {}, required = [], example, examples } = followed(schema);
  if (example ?? examples?.[0]) return example ?? examples[0];
  return Object.fromEntries(Object.entries(properties).filter(([name]) => required.includes(name)).map(([name, one]) => [name, followed(one).default ?? null]));
}

/** A box to send a request as it stands there, and see the answer. */
function sender(path, method, content) {
  const result = make("pre", { hidden: true, tabindex: "0", "aria-live": "polite" });
  const inputs = [];
  let body = () => ({});
  const json = content["application/json"];
  if (json) {
    const area = make("textarea", { "aria-label": "Body of the request, JSON", spellcheck: "false" });
    area.value = JSON.stringify(exampleOf(json.schema), null, 2);
    inputs.push(area);
    body = () => ({ json: JSON.parse(area.value) });
  } else if (content["multipart/form-data"]) {
    const properties = followed(content["multipart/form-data"].schema).properties ?? {};
    const name = Object.keys(properties).find((one) => /file/.test(typeOf(properties[one])));
    const file = make("input", { type: "file", multiple: true, "aria-label": name });
    inputs.push(file);
    body = () => {
      const form = new FormData();
      for (const one of file.files) form.append(name, one);
      return { body: form };
    };
  }
  const send = make("button", { type: "button", class: "send", onclick: async () => {
    result.hidden = false;
    try {
      const found = await ask(path, { method: method.toUpperCase(), ...body() });
      const text = found === null ? "(no JSON; open the address to see the answer)" : JSON.stringify(found, null, 2);
      result.textContent = text.length > LONGEST ? `${text.slice(0, LONGEST)} ...` : text;
    } catch (error) {
      result.textContent = error.message;
    }
  } }, "Send");
  return make("div", {}, make("h3", {}, "Try it"), ...inputs, make("div", {}, send), result);
}

function operationOf(path, method, { summary, description, parameters = [], requestBody, responses }) {
  const content = requestBody?.content ?? {};
  const parts = [make("h2", {}, make("span", { class: "method" }, method.toUpperCase()), make("code", {}, path))];
  for (const text of [summary, description]) if (text) parts.push(make("p", {}, text));
  if (parameters.length) {
    const named = Object.fromEntries(parameters.map((one) => [one.name, { ...one.schema, description: one.description }]));
    const required = parameters.filter((one) => one.required).map((one) => one.name);
    parts.push(make("h3", {}, "Parameters"), make("table", {}, make("tbody", {}, ...fieldRows(named, required))));
  }
  for (const [type, { schema }] of Object.entries(content)) {
    const { properties = {}, required = [] } = followed(schema);
    parts.push(make("h3", {}, "Body: ", make("code", {}, type)), make("table", {}, make("tbody", {}, ...fieldRows(properties, required))));
  }
  const statuses = Object.entries(responses).map(([status, one]) => make("tr", {}, make("th", { scope: "row" }, status), make("td", {}, one.description)));
  parts.push(make("details", {}, make("summary", {}, "Statuses"), make("table", {}, make("tbody", {}, ...statuses))));
  if (!path.includes("{") && !parameters.some((one) => one.required)) parts.push(sender(path, method, content));
  return make("section", { class: "card", id: `${method}${path}` }, ...parts);
}

try {
  const { info, paths, components } = await ask("/openapi.json");
  schemas = components?.schemas ?? {};
  byId("title").textContent = `${info.title} ${info.version}: HTTP API`;
  byId("about").textContent = info.description ?? "";
  const all = Object.entries(paths).flatMap(([path, of]) => METHODS.filter((method) => of[method]).map((method) => [path, method, of[method]]));
  byId("contents").replaceChildren(...all.map(([path, method, { summary }]) => make("li", {},
    make("a", { href: `#${method}${path}` }, `${method.toUpperCase()} ${path}`), summary ? ` ${summary}` : "")));
  byId("operations").replaceChildren(...all.map((one) => operationOf(...one)));
  document.body.dataset.settled = "yes";
} catch (error) {
  byId("trouble").textContent = error.message;
}
