// Brush in the browser: a chart on which a vertical line is dragged, or a box is drawn.
// Shares of the field go to Python, once a frame at most; the chart itself comes from there.

const CSS = `
.wb { position: relative; }
.wb .box { position: absolute; box-sizing: border-box; pointer-events: none;
  border: 1.5px dashed currentColor; background: rgba(0, 114, 178, 0.12); }
.wb svg[role=img] { touch-action: none; cursor: crosshair; }
.wb.line svg[role=img] { cursor: ew-resize; }
.wb:focus-visible { outline: 2px solid #0072b2; outline-offset: 1px; }
`;
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] };
const between = (x, low, high) => Math.min(high, Math.max(low, x));

function render({ model, el }) {
  const get = (name) => model.get(name);
  const style = document.createElement("style");
  style.textContent = CSS;
  const root = document.createElement("div"), shown = document.createElement("div");
  const box = document.createElement("div");
  root.className = `wb wd ${get("kind")}`;
  root.tabIndex = 0;
  box.className = "box";
  box.hidden = true;
  root.append(shown, box);
  el.append(style, root);
  const isLine = get("kind") === "line";
  root.setAttribute("role", isLine ? "slider" : "group");
  root.setAttribute("aria-label", get("caption"));
  if (isLine) { root.setAttribute("aria-valuemin", 0); root.setAttribute("aria-valuemax", 100); }

  // The field of the chart in pixels of the page.
  function field() {
    const svg = shown.querySelector("svg[role=img]");
    if (!svg) return null;
    const r = svg.getBoundingClientRect(), [left, top, right, bottom] = get("frame");
    return { x: r.left + left * r.width, y: r.top + top * r.height,
      width: (right - left) * r.width, height: (bottom - top) * r.height };
  }
  function share(event) {
    const f = field();
    return [between((event.clientX - f.x) / f.width, 0, 1), between(1 - (event.clientY - f.y) / f.height, 0, 1)];
  }

  let queued = false, waiting = {};
  function send(values) {
    Object.assign(waiting, values);
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => {
      queued = false;
      for (const [name, value] of Object.entries(waiting)) model.set(name, value);
      waiting = {};
      model.save_changes();
      place();
    });
  }
  function place() {
    const f = field(), b = get("box");
    if (isLine) {
      root.setAttribute("aria-valuenow", Math.round(100 * get("at")));
      root.setAttribute("aria-valuetext", get("words"));
      return;
    }
    box.hidden = !f || b.length !== 4;
    if (box.hidden) return;
    const own = root.getBoundingClientRect();
    box.style.left = `${f.x - own.left + b[0] * f.width}px`;
    box.style.top = `${f.y - own.top + (1 - b[3]) * f.height}px`;
    box.style.width = `${(b[2] - b[0]) * f.width}px`;
    box.style.height = `${(b[3] - b[1]) * f.height}px`;
  }

  let from = null;
  const sorted = (a, b) => [Math.min(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[0], b[0]), Math.max(a[1], b[1])];
  root.addEventListener("pointerdown", (event) => {
    if (!field() || !event.target.closest("svg[role=img]")) return;
    from = share(event);
    root.setPointerCapture(event.pointerId);
    root.focus({ preventScroll: true });
    if (isLine) send({ at: from[0] });
    event.preventDefault();
  });
  root.addEventListener("pointermove", (event) => {
    if (!from) return;
    const to = share(event);
    send(isLine ? { at: to[0] } : { box: sorted(from, to) });
  });
  root.addEventListener("pointerup", (event) => {
    if (!from) return;
    const to = share(event), moved = Math.hypot(to[0] - from[0], to[1] - from[1]);
    if (!isLine && moved < 0.01) send({ box: [] }); // a click takes the box away
    from = null;
  });
  root.addEventListener("pointercancel", () => { from = null; });
  root.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (isLine) {
      const ends = { Home: 0, End: 1 };
      if (move && move[0]) send({ at: between(get("at") + move[0] * (event.shiftKey ? 0.1 : 0.01), 0, 1) });
      else if (event.key in ends) send({ at: ends[event.key] });
      else return;
    } else {
      const b = get("box").length === 4 ? [...get("box")] : [0.4, 0.4, 0.6, 0.6];
      if (event.key === "Escape") send({ box: [] });
      else if (move && event.shiftKey) send({ box: [b[0], b[1], between(b[2] + 0.05 * move[0], b[0], 1), between(b[3] + 0.05 * move[1], b[1], 1)] });
      else if (move) {
        const dx = between(0.05 * move[0], -b[0], 1 - b[2]), dy = between(0.05 * move[1], -b[1], 1 - b[3]);
        send({ box: [b[0] + dx, b[1] + dy, b[2] + dx, b[3] + dy] });
      } else return;
    }
    event.preventDefault();
  });

  let drawing = false;
  const draw = () => { shown.innerHTML = get("html"); place(); };
  const schedule = () => {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => { drawing = false; draw(); });
  };
  const watched = { html: schedule, box: place, at: place, words: place };
  for (const [name, heard] of Object.entries(watched)) model.on(`change:${name}`, heard);
  const sizes = new ResizeObserver(place);
  sizes.observe(root);
  draw();
  model.set("hello", Math.random().toString(36).slice(2));
  model.save_changes();
  return () => {
    sizes.disconnect();
    for (const [name, heard] of Object.entries(watched)) if (model.off) model.off(`change:${name}`, heard);
  };
}

export default { render };
