// An order is a list of buckets of labels, most significant first. Every function returns a new one.

const copy = (order) => order.map((bucket) => [...bucket]);

/** The index of the bucket of a label, or -1. */
export const bucketOf = (order, label) => order.findIndex((bucket) => bucket.includes(label));

export const remove = (order, label) =>
  copy(order).map((bucket) => bucket.filter((one) => one !== label)).filter((bucket) => bucket.length);

/** Move a label to the end. */
export const append = (order, label) => [...remove(order, label), [label]];

/** Put a label next to the bucket of another: "above" it, "below" it, or in a "tie" with it. */
export function putAt(order, label, other, how) {
  if (label === other) return copy(order);
  const rest = remove(order, label);
  const at = bucketOf(rest, other);
  if (at < 0) return append(order, label);
  if (how === "tie") rest[at].push(label);
  else rest.splice(how === "above" ? at : at + 1, 0, [label]);
  return rest;
}

/** Move a label one step: out of its tie, or past the next bucket. */
export function move(order, label, up) {
  const at = bucketOf(order, label);
  if (at < 0) return copy(order);
  const rest = remove(order, label);
  if (order[at].length > 1) rest.splice(up ? at : at + 1, 0, [label]);
  else rest.splice(Math.min(rest.length, Math.max(0, up ? at - 1 : at + 1)), 0, [label]);
  return rest;
}

/** Tie a label with the bucket above it; a tied label moves to its own bucket below. */
export function toggleTie(order, label) {
  const at = bucketOf(order, label);
  if (at < 0) return copy(order);
  if (order[at].length > 1) return move(order, label, false);
  if (at === 0) return copy(order);
  const rest = remove(order, label);
  rest[at - 1].push(label);
  return rest;
}

export const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

export const write = (order) => order.map((bucket) => bucket.join(" = ")).join(" > ");
