// Drag chips by pointer (mouse, pen, finger): into the order, within it, or out of it.

const FAR = 6; // pixels that tell a drag from a click

/** Where a chip would land at a point: beside or on a bucket, at the end, outside, or nowhere. */
function target(list, card, x, y) {
  const box = card.getBoundingClientRect();
  if (x < box.left || x > box.right || y < box.top || y > box.bottom) return { how: "outside" };
  for (const bucket of list.children) {
    const { top, bottom, height } = bucket.getBoundingClientRect();
    if (y > bottom) continue;
    const label = bucket.dataset.first;
    if (y < top + height * 0.25) return { how: "above", label, bucket };
    if (y <= bottom - height * 0.25) return { how: "tie", label, bucket };
    return { how: "below", label, bucket };
  }
  return { how: "end" };
}

/** Let chips (elements with data-label) be dragged; `drop(label, target)` is called with the target. */
export function allowDrags(root, list, card, drop) {
  let held = null;
  const unmark = () => {
    list.classList.remove("empty-target");
    for (const bucket of list.children) bucket.classList.remove("above", "tie", "below");
  };
  const end = (event, landed) => {
    if (!held) return;
    const { chip, ghost, id } = held;
    if (event.pointerId !== id) return;
    held = null;
    unmark();
    chip.classList.remove("dragged");
    if (!ghost) return;
    ghost.remove();
    // A drag ends with a click on the element below it, which must be ignored.
    root.addEventListener("click", stop, { capture: true, once: true });
    setTimeout(() => root.removeEventListener("click", stop, { capture: true }), 0);
    if (landed) drop(chip.dataset.label, target(list, card, event.clientX, event.clientY));
  };
  const stop = (event) => {
    event.stopPropagation();
    event.preventDefault();
  };
  root.addEventListener("pointerdown", (event) => {
    const chip = event.target.closest(".chip[data-label]");
    if (!chip || event.button !== 0 || held) return;
    held = { chip, id: event.pointerId, x: event.clientX, y: event.clientY, ghost: null };
  });
  window.addEventListener("pointermove", (event) => {
    if (!held || event.pointerId !== held.id) return;
    const { chip } = held;
    if (!held.ghost) {
      if (Math.hypot(event.clientX - held.x, event.clientY - held.y) < FAR) return;
      held.ghost = chip.cloneNode(true);
      held.ghost.classList.add("ghost");
      held.ghost.setAttribute("aria-hidden", "true");
      document.body.append(held.ghost);
      chip.classList.add("dragged");
    }
    held.ghost.style.transform = `translate(${event.clientX + 8}px, ${event.clientY + 8}px)`;
    unmark();
    const found = target(list, card, event.clientX, event.clientY);
    if (found.bucket) found.bucket.classList.add(found.how);
    else if (found.how === "end") list.classList.add("empty-target");
  });
  window.addEventListener("pointerup", (event) => end(event, true));
  window.addEventListener("pointercancel", (event) => end(event, false));
}
