// Zoom a picture by wheel, buttons or keys; drag to move it.

/** Make a viewer zoomable; `closer()` is called when a larger picture is needed. */
export function makeZoom(viewer, image, closer) {
  let scale = 1, x = 0, y = 0, held = null;
  const show = () => {
    const { clientWidth: width, clientHeight: height } = viewer;
    x = Math.min(0, Math.max(width * (1 - scale), x));
    y = Math.min(0, Math.max(height * (1 - scale), y));
    image.style.transform = scale === 1 ? "" : `translate(${x}px, ${y}px) scale(${scale})`;
    viewer.classList.toggle("zoomed", scale > 1);
    if (scale > 1.4) closer();
  };
  const by = (factor, atX = viewer.clientWidth / 2, atY = viewer.clientHeight / 2) => {
    const next = Math.min(16, Math.max(1, scale * factor));
    x = atX - ((atX - x) / scale) * next;
    y = atY - ((atY - y) / scale) * next;
    scale = next;
    show();
  };
  viewer.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = viewer.getBoundingClientRect();
    by(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  viewer.addEventListener("pointerdown", (event) => {
    held = { id: event.pointerId, x: event.clientX - x, y: event.clientY - y };
    viewer.setPointerCapture(event.pointerId);
  });
  viewer.addEventListener("pointermove", (event) => {
    if (held?.id !== event.pointerId) return;
    [x, y] = [event.clientX - held.x, event.clientY - held.y];
    show();
  });
  for (const name of ["pointerup", "pointercancel"]) viewer.addEventListener(name, () => { held = null; });
  return {
    by,
    reset: () => { scale = 1; x = y = 0; show(); },
    toggle: () => (scale > 1 ? (scale = 1, x = y = 0, show()) : by(2)),
  };
}
