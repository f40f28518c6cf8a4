// PerturbationView in the browser: three pictures with one zoom, and the order of the classes.
// Plain ESM for Panel's AnyWidgetComponent: only model.get, set, save_changes and on are assumed.
// `image` and `frame` are buffers: [header length, uint32][JSON header][pixels]. The clean image
// is uint16 of [0, 1] and comes only when it is another one; the perturbation is int16 of its peak.
// A frame is acknowledged once drawn; Python sends no more than two ahead.

const CSS = `
.pv { font: 13px/1.4 system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif;
  color: var(--jp-ui-font-color1, #1f2933); width: 100%; display: flex; flex-wrap: wrap;
  gap: 16px 28px; align-items: flex-start; }
.pv [hidden] { display: none !important; }
.pv .pictures { flex: 3 1 440px; min-width: 0; display: flex; flex-direction: column; gap: 8px; }
.pv .order { flex: 1 1 270px; min-width: 0; max-width: 420px; }
.pv .row { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 14px; }
.pv label { display: inline-flex; align-items: center; gap: 6px; }
.pv button, .pv select { font: inherit; color: inherit; height: 28px; border: 1px solid #b8c0ca;
  border-radius: 6px; background: var(--jp-layout-color1, #fff); padding: 0 10px; cursor: pointer; }
.pv button.small { width: 28px; padding: 0; }
.pv button:hover { border-color: #0072b2; }
.pv input[type=range] { width: 120px; accent-color: #0072b2; }
.pv :focus-visible { outline: 2px solid #0072b2; outline-offset: 3px; }
.pv .stage { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 10px;
  border-radius: 4px; }
.pv figure { margin: 0; min-width: 0; }
.pv h3 { font-size: 13px; font-weight: 600; margin: 0 0 4px; white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis; }
.pv canvas { display: block; width: 100%; box-sizing: border-box; border: 1px solid #616e7c;
  border-radius: 3px; touch-action: none; cursor: grab; image-rendering: pixelated; }
.pv canvas.ramp { height: 11px; margin-top: 5px; border-radius: 2px; cursor: default; }
.pv .ends { display: flex; justify-content: space-between; }
.pv .muted, .pv .ends, .pv .note { color: var(--jp-ui-font-color2, #616e7c);
  font-variant-numeric: tabular-nums; }
.pv .note { font-size: 12px; margin-top: 3px; }
.pv .ends { font-size: 12px; }
.pv .told.deep { min-height: 2.8em; }
.pv .told { min-height: 1.4em; font-variant-numeric: tabular-nums; }
.pv .status { font-weight: 600; border-left: 4px solid #616e7c; padding-left: 7px; }
.pv .status[data-is=found] { border-color: #009e73; }
.pv .status[data-is="not found"] { border-color: #d55e00; }
.pv .norms { font-variant-numeric: tabular-nums; display: flex; flex-wrap: wrap; gap: 0 12px; }
.pv sub { line-height: 0; }
.pv .scroll { max-height: 400px; overflow-y: auto; }
.pv table { border-collapse: collapse; width: 100%; font: inherit; table-layout: fixed; }
.pv th { text-align: left; font-weight: 400; color: var(--jp-ui-font-color2, #616e7c);
  font-size: 12px; position: sticky; top: 0; background: var(--jp-layout-color1, #fff); }
.pv th, .pv td { padding: 1px 4px 1px 0; white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis; border: 0; font-variant-numeric: tabular-nums; height: 21px; }
.pv th:nth-child(1) { width: 36px; } .pv th:nth-child(3) { width: 54px; }
.pv th:nth-child(4) { width: 36%; }
.pv tr.gap td { height: 12px; line-height: 10px; color: var(--jp-ui-font-color2, #616e7c); }
.pv tr.wanted td:nth-child(2) { font-weight: 600; }
.pv .badge { border-left: 4px solid #d55e00; padding-left: 5px; }
.pv .badge.there { border-color: #009e73; }
.pv .true { font-weight: 400; color: var(--jp-ui-font-color2, #616e7c); font-size: 12px; }
.pv td svg { width: calc(100% - 56px); height: 11px; vertical-align: -1px; }
.pv .figure { display: inline-block; width: 52px; text-align: right; }
.pv .goals { display: flex; flex-wrap: wrap; gap: 3px 12px; margin: 0 0 6px; padding: 0; list-style: none; }
.pv .hush { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
`;
const SVG = "http://www.w3.org/2000/svg";
const MAX_ZOOM = 32;

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

const rgba = (hex) => (0xff000000 | (parseInt(hex.slice(5, 7), 16) << 16)
  | (parseInt(hex.slice(3, 5), 16) << 8) | parseInt(hex.slice(1, 3), 16)) >>> 0;
const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
const number = (x, digits = 3) => String(Number(x.toPrecision(digits))).replace("-", "−");
const signedNumber = (x) => (x > 0 ? "+" : x < 0 ? "−" : "") + Math.abs(x).toFixed(3);

function decode(value, Type) {
  const bytes = value instanceof ArrayBuffer ? new Uint8Array(value)
    : new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  if (bytes.length < 4) return null;
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  head.codes = new Type(bytes.slice(4 + size).buffer); // a copy, so that 16 bits are aligned
  return head;
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (name, value) => { model.set(name, value); model.save_changes(); };
  const watched = [];
  const on = (name, handler) => { model.on(`change:${name}`, handler); watched.push([name, handler]); };
  let packed = null, unpacked = null, image = null, frame = null, clean = null, delta = null, drawn = -1, stale = true, queued = false;
  let height = 1, width = 1, depth = 1, lastStatus = "";
  let zoom = 1, top = 0, left = 0, pointed = null, drag = null; // top, left: in pixels of the image

  // --- what there is to see -----------------------------------------------------------------
  const gain = make("input", { type: "range", min: 0, max: 10, step: 0.25, "aria-label": "Gain",
    oninput: () => set("gain", 2 ** gain.value) });
  const gainText = make("span", { class: "muted" });
  const fit = make("button", { type: "button", title: "Let the strongest pixel have the strongest color",
    onclick: () => frame && frame.peak && set("gain", clamp(1 / frame.peak, 1, 1024)) }, "Fit");
  const channel = make("select", { "aria-label": "Channel", onchange: () => set("channel", channel.value) },
    ...["largest", "red", "green", "blue"].map((name) => make("option", { value: name }, name)));
  const channelLabel = make("label", {}, "Channel", channel);
  const zoomIn = make("button", { type: "button", class: "small", "aria-label": "Zoom in", onclick: () => zoomBy(1.5) }, "+");
  const zoomOut = make("button", { type: "button", class: "small", "aria-label": "Zoom out", onclick: () => zoomBy(1 / 1.5) }, "−");
  const reset = make("button", { type: "button", onclick: () => resetZoom() }, "Reset zoom");
  const zoomText = make("span", { class: "muted" });
  const panels = ["Clean", "Perturbation", "Attacked"].map((title) => {
    const canvas = make("canvas", { role: "img" });
    const source = document.createElement("canvas");
    return { title, canvas, source, context: canvas.getContext("2d") };
  });
  const ramp = make("canvas", { class: "ramp", width: 256, height: 1, "aria-hidden": "true" });
  const ends = make("div", { class: "ends" });
  const notes = [make("div", { class: "note" }, "black 0, white 1"), make("div", {}, ramp, ends),
    make("div", { class: "note" }, "clean + perturbation")];
  const stage = make("div", { class: "stage", tabindex: 0, role: "group" },
    ...panels.map((panel, k) => make("figure", {}, make("h3", {}, panel.title), panel.canvas, notes[k])));
  const status = make("span", { class: "status" });
  const norms = make("span", { class: "norms" });
  const told = make("div", { class: "told" });
  const announced = make("div", { class: "hush", "aria-live": "polite" });
  const summary = make("h3", {});
  const aim = make("ol", { class: "goals", "aria-label": "Wanted order" });
  const body = make("tbody");
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...["Place", "Class", "Wanted", "Logit"]
    .map((name) => make("th", { scope: "col" }, name)))), body);
  const pictures = make("div", { class: "pictures" },
    make("div", { class: "row" }, make("label", {}, "Gain", gain), gainText, fit, channelLabel,
      make("span", { class: "row" }, zoomOut, zoomIn, reset, zoomText)),
    stage, make("div", { class: "row" }, status, norms), told);
  const order = make("div", { class: "order" }, summary, aim, make("div", { class: "scroll", tabindex: 0,
    role: "region", "aria-label": "Predicted order of the attacked image" }, table));
  const root = make("div", { class: "pv" }, make("style", {}, CSS), pictures, order, announced);
  el.append(root);
  const hint = "Point at a pixel to read it. Drag to pan; click, then scroll to zoom.";

  // --- drawing ------------------------------------------------------------------------------
  function schedule() {
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => { queued = false; draw(); });
  }
  function receive() {
    if (get("image") !== packed) {
      packed = get("image");
      unpacked = decode(packed, Uint16Array);
    }
    const nextImage = unpacked, next = decode(get("frame"), Int16Array);
    if (!next || !nextImage || next.image !== nextImage.id) return; // its image is on the way
    if (!image || nextImage.id !== image.id) {
      image = nextImage;
      [height, width] = image.shape.slice(-2);
      depth = image.shape.length === 3 ? 3 : 1;
      clean = Float32Array.from(image.codes, (code) => code / 65535);
      for (const { source } of panels) { source.width = width; source.height = height; }
      if (zoom === 1) top = left = 0;
      place();
      pointed = null;
    }
    frame = next;
    delta = Float32Array.from(frame.codes, (code) => code * frame.peak / 32767);
    stale = true;
    schedule();
  }
  // The signed value that is colored: the only channel, the chosen one, or the largest in size.
  function colored(i, which, n) {
    if (depth === 1) return delta[i];
    if (which >= 0) return delta[which * n + i];
    let best = delta[i];
    for (let c = 1; c < 3; c++) if (Math.abs(delta[c * n + i]) > Math.abs(best)) best = delta[c * n + i];
    return best;
  }
  function paintSources() {
    const n = height * width, limit = 1 / get("gain");
    const colors = get("colors").map(rgba);
    const which = ["red", "green", "blue"].indexOf(get("channel"));
    const green = depth === 3 ? n : 0, blue = 2 * green; // where the channels start
    const attacked = clean.map((x, i) => x + delta[i]);
    [clean, null, attacked].forEach((values, k) => {
      const context = panels[k].source.getContext("2d"), data = context.createImageData(width, height);
      if (values) {
        const bytes = data.data; // clamps and rounds by itself
        for (let i = 0, j = 0; i < n; i++, j += 4) {
          bytes[j] = 255 * values[i];
          bytes[j + 1] = 255 * values[i + green];
          bytes[j + 2] = 255 * values[i + blue];
          bytes[j + 3] = 255;
        }
      } else {
        const pixels = new Uint32Array(data.data.buffer);
        for (let i = 0; i < n; i++) pixels[i] = colors[Math.round(127 + 127 * clamp(colored(i, which, n) / limit, -1, 1))];
      }
      context.putImageData(data, 0, 0);
    });
    const context = ramp.getContext("2d"), data = context.createImageData(256, 1);
    new Uint32Array(data.data.buffer).set(colors);
    context.putImageData(data, 0, 0);
    ends.replaceChildren(...[`−${number(limit)}`, "0", `+${number(limit)}`].map((x) => make("span", {}, x)));
  }
  function draw() {
    if (!frame) return;
    if (stale) { paintSources(); stale = false; }
    const wide = width / zoom, high = height / zoom;
    panels.forEach(({ canvas, context, source }) => {
      const across = Math.max(1, Math.round((canvas.clientWidth || 200) * (window.devicePixelRatio || 1)));
      const down = Math.max(1, Math.round(across * height / width));
      if (canvas.width !== across || canvas.height !== down) { canvas.width = across; canvas.height = down; }
      context.imageSmoothingEnabled = across < wide; // pixels stay pixels unless they must shrink
      context.drawImage(source, left, top, wide, high, 0, 0, across, down);
      if (!pointed) return;
      const side = across / wide, [r, c] = pointed, size = Math.max(side, 7);
      const x = (c + 0.5 - left) * side - size / 2, y = (r + 0.5 - top) * side - size / 2;
      for (const [line, color] of [[4, "#fff"], [2, "#000"]]) {
        context.lineWidth = line;
        context.strokeStyle = color;
        context.strokeRect(x, y, size, size);
      }
    });
    if (drawn !== frame.id) {
      drawn = frame.id;
      set("acknowledged", frame.id);
      root.dataset.frames = +(root.dataset.frames || 0) + 1;
      list();
    }
    describe();
  }
  const nameOf = (k) => get("class_names")[k] ?? String(k);
  function list() {
    const { rows, n_targets: wanted, achieved } = frame;
    const low = Math.min(0, ...rows.map((row) => row.logit)), high = Math.max(0, ...rows.map((row) => row.logit));
    const share = (x) => 100 * (x - low) / ((high - low) || 1);
    let before = -1;
    const lines = [], goals = [];
    for (const { class: k, place: at, logit, wanted: to } of rows) {
      if (at > before + 1) lines.push(make("tr", { class: "gap" }, make("td", { colspan: 4 }, "⋯")));
      before = at;
      const target = to !== null, there = target && to === at;
      const svg = document.createElementNS(SVG, "svg"), bar = document.createElementNS(SVG, "rect");
      svg.setAttribute("aria-hidden", "true");
      for (const [name, value] of Object.entries({ x: `${share(Math.min(0, logit))}%`, height: 11, rx: 1.5,
        width: `${Math.abs(share(logit) - share(0))}%`, fill: target ? "#0072b2" : "#b8c0ca" })) bar.setAttribute(name, value);
      svg.append(bar);
      const badge = (...text) => make("span", { class: there ? "badge there" : "badge",
        title: there ? "at its wanted place" : `${Math.abs(at - to)} places to go ${at > to ? "up" : "down"}` }, ...text);
      const sign = there ? "✓" : (at > to ? "↑" : "↓") + Math.abs(at - to);
      if (target) goals[to] = make("li", {}, badge(`${to + 1} `, make("b", {}, nameOf(k)), ` ${sign}`));
      lines.push(make("tr", { class: target ? "wanted" : false }, make("td", {}, at + 1),
        make("td", { title: nameOf(k) }, nameOf(k), ...(k === frame.label ? [make("span", { class: "true" }, " true class")] : [])),
        make("td", {}, ...(target ? [badge(`${to + 1} ${sign}`)] : [])),
        make("td", {}, svg, make("span", { class: "figure" }, logit.toFixed(2).replace("-", "−")))));
    }
    body.replaceChildren(...lines);
    aim.replaceChildren(...goals);
    aim.hidden = !wanted;
    summary.textContent = wanted ? `Wanted order: ${achieved} of ${wanted} in place` : "Predicted order";
  }
  function describe() {
    const limit = 1 / get("gain"), [l1, l2, linf] = frame.norms;
    const at = frame.iteration === null ? "" : `iteration ${frame.iteration}`
      + (frame.iterations === null ? "" : ` of ${frame.iterations}`);
    const sign = { found: "✓ found", "not found": "✗ not found", running: "running" }[frame.status];
    status.textContent = [sign, at].filter(Boolean).join(", ");
    status.dataset.is = frame.status;
    status.hidden = !status.textContent;
    if (frame.status !== lastStatus) { // not each iteration: a voice would never end
      lastStatus = frame.status;
      announced.textContent = sign ? `${sign}, ${frame.achieved} of ${frame.n_targets} in place` : "";
    }
    const norm = (p, x) => make("span", {}, "ℓ", make("sub", {}, p), ` = ${number(x)}`);
    norms.replaceChildren(norm("1", l1), norm("2", l2), norm("∞", linf));
    gain.value = Math.log2(get("gain"));
    gainText.textContent = `×${number(get("gain"))}`;
    gain.setAttribute("aria-valuetext", `times ${number(get("gain"))}: colors span plus minus ${number(limit)}`);
    told.classList.toggle("deep", depth > 1); // three values each: room for two lines
    channelLabel.hidden = depth === 1;
    channel.value = get("channel");
    notes[0].textContent = depth === 1 ? "black 0, white 1" : "red, green, blue";
    zoomText.textContent = `×${number(zoom, 2)}`;
    zoomOut.disabled = reset.disabled = zoom === 1;
    zoomIn.disabled = zoom >= MAX_ZOOM;
    const first = frame.rows.slice(0, 3).map((row) => nameOf(row.class)).join(", ");
    const of = `${height} by ${width} pixels`;
    const labels = [`clean image, ${of}`, `perturbation, largest size ${number(linf)}, blue is negative, orange positive,`
      + ` strongest colors at plus minus ${number(limit)}`, `attacked image, ${of}, first predicted ${first}`];
    panels.forEach(({ canvas }, k) => canvas.setAttribute("aria-label", `${get("caption")}: ${labels[k]}`));
    stage.setAttribute("aria-label", `${get("caption")}: three pictures. Plus and minus zoom, arrows pan, 0 shows all, `
      + "Shift and arrows point at a pixel.");
    tell();
  }
  function tell() {
    if (!pointed) { told.textContent = hint; told.classList.add("muted"); return; }
    told.classList.remove("muted");
    const [r, c] = pointed, n = height * width, i = r * width + c;
    const all = (value, write) => depth === 1 ? write(value(i)) : `(${[0, 1, 2].map((k) => write(value(k * n + i))).join(", ")})`;
    told.textContent = `Row ${r}, column ${c}: clean ${all((j) => clean[j], (x) => x.toFixed(3))} · perturbation `
      + `${all((j) => delta[j], signedNumber)} · attacked ${all((j) => clean[j] + delta[j], (x) => x.toFixed(3))}`;
  }

  // --- zoom, pan and pointer: the same for all three -----------------------------------------
  function place() {
    top = clamp(top, 0, height - height / zoom);
    left = clamp(left, 0, width - width / zoom);
    schedule();
  }
  // Zoom about a point of the image, which stays where it is on the screen; the middle if not given.
  function zoomBy(factor, r = top + height / zoom / 2, c = left + width / zoom / 2) {
    const next = clamp(zoom * factor, 1, MAX_ZOOM);
    top = r - (r - top) * zoom / next;
    left = c - (c - left) * zoom / next;
    zoom = next;
    place();
  }
  function resetZoom() { zoom = 1; place(); }
  function at(canvas, event) {
    const box = canvas.getBoundingClientRect();
    return [top + (event.clientY - box.top) / box.height * height / zoom,
      left + (event.clientX - box.left) / box.width * width / zoom];
  }
  function point(r, c) {
    pointed = [clamp(Math.floor(r), 0, height - 1), clamp(Math.floor(c), 0, width - 1)];
    schedule();
  }
  for (const { canvas } of panels) {
    canvas.addEventListener("pointerdown", (event) => {
      if (!frame) return;
      canvas.setPointerCapture(event.pointerId);
      drag = { from: [event.clientY, event.clientX], top, left };
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!frame) return;
      if (drag) {
        const box = canvas.getBoundingClientRect();
        top = drag.top - (event.clientY - drag.from[0]) / box.height * height / zoom;
        left = drag.left - (event.clientX - drag.from[1]) / box.width * width / zoom;
        place();
      }
      point(...at(canvas, event));
    });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { drag = null; });
    canvas.addEventListener("pointerleave", () => { if (!drag) { pointed = null; schedule(); } });
    canvas.addEventListener("wheel", (event) => {
      // Only once clicked (or with Ctrl): a page that scrolls past must not get caught.
      const focused = el.getRootNode().activeElement === stage;
      if (!frame || !(focused || event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      zoomBy(2 ** (-clamp(event.deltaY, -200, 200) / 200), ...at(canvas, event));
    }, { passive: false });
  }
  stage.addEventListener("keydown", (event) => {
    if (!frame || event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[event.key];
    if (move && event.shiftKey) {
      const [r, c] = pointed || [Math.floor(top + height / zoom / 2), Math.floor(left + width / zoom / 2)];
      point(r + move[0], c + move[1]);
      // Keep the pointed pixel in sight.
      top = clamp(top, pointed[0] + 1 - height / zoom, pointed[0]);
      left = clamp(left, pointed[1] + 1 - width / zoom, pointed[1]);
      place();
      tell();
      announced.textContent = told.textContent;
    } else if (move && zoom > 1) {
      top += move[0] * height / zoom / 8;
      left += move[1] * width / zoom / 8;
      place();
    } else if (event.key === "+" || event.key === "=") zoomBy(1.5);
    else if (event.key === "-") zoomBy(1 / 1.5);
    else if (event.key === "0" || event.key === "Home") resetZoom();
    else if (event.key === "Escape" && pointed) { pointed = null; schedule(); }
    else return;
    event.preventDefault();
    event.stopPropagation(); // Lab would otherwise scroll or leave the cell
  });

  // --- state from Python ---------------------------------------------------------------------
  const repaint = () => { stale = true; if (frame) list(); schedule(); };
  for (const name of ["gain", "channel", "class_names", "caption", "colors"]) on(name, repaint);
  on("image", receive);
  on("frame", receive);
  const observer = new ResizeObserver(schedule);
  observer.observe(stage);
  told.textContent = "Nothing to show yet";
  channelLabel.hidden = true;
  receive();
  return () => {
    observer.disconnect();
    for (const [name, handler] of watched) if (model.off) model.off(`change:${name}`, handler);
  };
}

export default { render };
