// Bars in the browser: dragged with the pointer or moved with the arrow keys, one slider each.
// `values` is the whole truth and is set as one list; what moves is sent once for each frame.

const CSS = `
.wbars { font: 11px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif;
  color: var(--jp-ui-font-color1, #1f2933); max-width: 620px; touch-action: none; }
.wbars svg { display: block; width: 100%; height: auto; fill: currentColor; overflow: visible; }
.wbars .hit { fill: transparent; cursor: ns-resize; }
.wbars .hit:hover { fill: rgba(0, 114, 178, 0.07); }
.wbars .bar { fill: #56b4e9; pointer-events: none; }
.wbars .handle { stroke: #0072b2; stroke-width: 3; pointer-events: none; }
.wbars .mark { stroke: #d55e00; stroke-width: 3; pointer-events: none; }
.wbars .axis { stroke: currentColor; stroke-opacity: 0.6; }
.wbars g:focus { outline: none; }
.wbars g:focus-visible .hit { stroke: #0072b2; stroke-width: 2; }
`;
const HEIGHT = 170, TOP = 8, BOTTOM = 22, COLUMN = 40, LEFT = 34;
const SVG = "http://www.w3.org/2000/svg";

function make(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "wbars";
  const style = document.createElement("style");
  style.textContent = CSS;
  el.append(style, root);
  const get = (name) => model.get(name);
  let draft = [], bars = [], queued = false;

  const y = (value) => {
    const low = get("low"), high = get("high");
    const share = (Math.min(high, Math.max(low, value)) - low) / (high - low);
    return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP);
  };

  function move(k, value) {
    const low = get("low"), high = get("high");
    const step = (high - low) / 200;
    draft[k] = Math.min(high, Math.max(low, Math.round(value / step) * step));
    show();
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => {
      queued = false;
      model.set("values", [...draft]);
      model.save_changes();
    });
  }

  function show() {
    const marks = get("marks");
    bars.forEach((bar, k) => {
      const at = y(draft[k]), zero = y(0);
      bar.bar.setAttribute("y", Math.min(at, zero));
      bar.bar.setAttribute("height", Math.abs(at - zero));
      bar.handle.setAttribute("y1", at);
      bar.handle.setAttribute("y2", at);
      const marked = Number.isFinite(marks[k]);
      bar.mark.style.display = marked ? "" : "none";
      if (marked) { bar.mark.setAttribute("y1", y(marks[k])); bar.mark.setAttribute("y2", y(marks[k])); }
      bar.group.setAttribute("aria-valuenow", draft[k].toFixed(2));
    });
  }

  function build() {
    const values = get("values"), names = get("names");
    if (values.length !== names.length) return; // the other list is on its way
    draft = [...values];
    const width = LEFT + COLUMN * values.length + 6;
    const svg = make("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "group", "aria-label": get("caption") });
    root.style.maxWidth = `${Math.max(260, width * 1.25)}px`;
    for (const value of [get("low"), 0, get("high")]) {
      const text = make("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" });
      text.textContent = String(value).replace("-", "−");
      svg.append(text);
    }
    svg.append(make("path", { d: `M${LEFT} ${y(0)}H${width - 6}`, class: "axis" }));
    bars = values.map((value, k) => {
      const x = LEFT + COLUMN * k;
      const hit = make("rect", { x: x + 1, y: TOP, width: COLUMN - 2, height: HEIGHT - TOP - BOTTOM, class: "hit" });
      const bar = make("rect", { x: x + 9, width: COLUMN - 18, class: "bar" });
      const handle = make("line", { x1: x + 7, x2: x + COLUMN - 7, class: "handle" });
      const mark = make("line", { x1: x + 4, x2: x + COLUMN - 4, class: "mark", "stroke-dasharray": "4 3" });
      const text = make("text", { x: x + COLUMN / 2, y: HEIGHT - 6, "text-anchor": "middle" });
      text.textContent = names[k];
      const group = make("g", { tabindex: "0", role: "slider", "aria-label": names[k], "aria-valuemin": get("low"), "aria-valuemax": get("high") }, hit, bar, handle, mark, text);
      const take = (event) => {
        const box = svg.getBoundingClientRect();
        const at = (event.clientY - box.top) * (HEIGHT / box.height);
        const share = (HEIGHT - BOTTOM - at) / (HEIGHT - BOTTOM - TOP);
        move(k, get("low") + share * (get("high") - get("low")));
      };
      hit.addEventListener("pointerdown", (event) => { hit.setPointerCapture(event.pointerId); take(event); group.focus(); event.preventDefault(); });
      hit.addEventListener("pointermove", (event) => { if (event.buttons) take(event); });
      group.addEventListener("keydown", (event) => {
        const step = (get("high") - get("low")) / 40;
        const to = { ArrowUp: draft[k] + step, ArrowRight: draft[k] + step, ArrowDown: draft[k] - step, ArrowLeft: draft[k] - step, Home: get("low"), End: get("high"), Delete: 0 }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        move(k, to);
      });
      svg.append(group);
      return { group, bar, handle, mark };
    });
    root.replaceChildren(svg);
    show();
  }

  const follow = () => {
    const values = get("values");
    if (values.length !== bars.length) return build();
    draft = [...values];
    show();
  };
  const built = ["names", "low", "high", "caption"];
  for (const name of built) model.on(`change:${name}`, build);
  model.on("change:values", follow);
  model.on("change:marks", show);
  build();
  return () => {
    if (!model.off) return;
    for (const name of built) model.off(`change:${name}`, build);
    model.off("change:values", follow);
    model.off("change:marks", show);
  };
}

export default { render };
