// Faders in the browser: native range inputs, so that names, keys and focus come for free.
// `values` is the whole truth and is set as one list; what moves is sent once for each frame.

const CSS = `
.wf { font: 13px/1.35 system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; width: 100%;
  color: var(--jp-ui-font-color1, #1f2933); display: grid; gap: 10px 18px;
  grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); }
.wf.pictured { grid-template-columns: repeat(auto-fill, minmax(104px, 1fr)); gap: 12px 14px; }
.wf .fader { min-width: 0; }
.wf img { display: block; width: 100%; image-rendering: pixelated; box-sizing: border-box;
  border: 1px solid #b8c0ca; border-radius: 4px; margin-bottom: 3px; }
.wf .head { display: flex; justify-content: space-between; gap: 6px; white-space: nowrap; }
.wf output { font-variant-numeric: tabular-nums; }
.wf .note { color: var(--jp-ui-font-color2, #616e7c); font-size: 11px; min-height: 1.35em; }
.wf .note:empty { display: none; }
.wf .track { position: relative; padding-bottom: 8px; }
.wf .track i { position: absolute; bottom: 0; width: 0; height: 0; margin-left: -4px;
  border: 4px solid transparent; border-top: 0; border-bottom: 7px solid #d55e00; }
.wf input { width: 100%; margin: 2px 0 0; height: 18px; accent-color: #0072b2; display: block; }
.wf :focus-visible { outline: 2px solid #0072b2; outline-offset: 1px; }
`;

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value != null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

const write = (x, whole) => (whole ? String(Math.round(x)) : x.toFixed(2).replace(/^-(0\.00)$/, "$1").replace("-", "−"));

function render({ model, el }) {
  const root = make("div", { class: "wf", role: "group" });
  el.append(make("style", {}, CSS), root);
  const get = (name) => model.get(name);
  let faders = [], draft = [], queued = false;

  function commit(k, value) {
    draft[k] = value;
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => {
      queued = false;
      model.set("values", [...draft]);
      model.save_changes();
    });
  }

  function show() {
    const values = get("values");
    if (values.length !== faders.length) return; // the other lists of a change are on their way
    draft = [...values];
    faders.forEach((fader, k) => fader.show(draft[k]));
  }

  function build() {
    const pictures = get("pictures"), notes = get("notes"), marks = get("marks"), steps = get("steps");
    const focused = faders.findIndex((fader) => fader.range === el.getRootNode().activeElement);
    root.setAttribute("aria-label", get("caption"));
    root.classList.toggle("pictured", pictures.some(Boolean));
    const names = get("names");
    if ([get("values"), get("lows"), get("highs")].some((list) => list.length !== names.length)) return;
    faders = names.map((name, k) => {
      const low = get("lows")[k], high = get("highs")[k], whole = steps[k] >= 1;
      const output = make("output", { "aria-hidden": "true" });
      const range = make("input", { type: "range", min: low, max: high, "aria-label": name,
        step: steps[k] || (high - low) / 200 || 1, "aria-description": notes[k],
        oninput: () => { told(Number(range.value)); commit(k, Number(range.value)); } });
      const told = (v) => { output.textContent = write(v, whole); range.setAttribute("aria-valuetext", write(v, whole)); };
      const track = make("div", { class: "track" }, range);
      if (Number.isFinite(marks[k]) && high > low) {
        const share = (marks[k] - low) / (high - low);
        track.append(make("i", { style: `left: calc(8px + (100% - 16px) * ${share})`, title: `${write(marks[k], whole)}` }));
      }
      const node = make("div", { class: "fader" });
      if (pictures[k]) node.append(make("img", { src: pictures[k], alt: `${name}, a picture` }));
      node.append(make("div", { class: "head" }, make("span", {}, name), output), make("div", { class: "note" }, notes[k] || ""), track);
      return { node, range, show: (v) => { range.value = v; told(v); } };
    });
    root.replaceChildren(...faders.map((fader) => fader.node));
    show();
    if (focused >= 0 && faders[focused]) faders[focused].range.focus();
  }

  // Several settings arrive as several events: build once for all of them.
  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    queueMicrotask(() => { waiting = false; build(); });
  };
  const built = ["names", "lows", "highs", "steps", "marks", "pictures", "notes", "caption"];
  for (const name of built) model.on(`change:${name}`, later);
  model.on("change:values", show);
  build();
  return () => {
    for (const name of built) if (model.off) model.off(`change:${name}`, later);
    if (model.off) model.off("change:values", show);
  };
}

export default { render };
