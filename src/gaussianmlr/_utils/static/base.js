// Shared by all pages: elements by name, elements made, and answers of the server or its reason.

/** The element with an id. */
export const byId = (id) => document.getElementById(id);

/** An element: attributes by name, listeners as onclick, then children (nodes or texts). */
export function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "path", "line", "text", "g", "circle", "rect", "title", "clipPath"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** JSON from the server. What goes wrong is an Error with the server's own words and its status, 0 without a reply. */
export async function ask(path, { method = "GET", json, body, signal } = {}) {
  const options = { method, signal, body, headers: { accept: "application/json" } };
  if (json !== undefined) {
    options.method = method === "GET" ? "POST" : method;
    options.headers["content-type"] = "application/json";
    options.body = JSON.stringify(json);
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw Object.assign(new Error("The server cannot be reached. Is it still running?"), { status: 0 });
  }
  const found = await response.json().catch(() => null);
  if (!response.ok) {
    throw Object.assign(new Error(found?.error ?? `The server answered ${response.status}.`), { status: response.status });
  }
  return found;
}
