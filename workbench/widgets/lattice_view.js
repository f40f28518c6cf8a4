// LatticeView in the browser: draws integer lattices on a canvas and reports what the user does.
// Plain ESM for Panel's AnyWidgetComponent: only model.get, set, save_changes and on are assumed.
// A frame is one buffer: [header length, uint32][JSON header][cells | kinds | field], the last
// part deflated when the header says so. A frame is acknowledged once drawn; Python sends no more
// than a few ahead. What the user does goes back as `gesture`, a short list of numbered items, so
// that a batched or repeated message neither loses nor doubles one.

const CSS = `
.lv { font: 13px/1.4 system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif;
  color: var(--jp-ui-font-color1, #1f2933); display: flex; flex-direction: column; gap: 8px;
  width: 100%; }
.lv [hidden] { display: none !important; }
.lv .row { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 12px; }
.lv button, .lv select, .lv input[type=number] { font: inherit; color: inherit; height: 28px;
  border: 1px solid #b8c0ca; border-radius: 6px; background: var(--jp-layout-color1, #fff);
  padding: 0 10px; box-sizing: border-box; }
.lv button { cursor: pointer; display: inline-flex; align-items: center; gap: 6px; }
.lv button:hover { border-color: #0072b2; }
.lv button.main { background: #0072b2; border-color: #0072b2; color: #fff; min-width: 84px; }
.lv button svg { width: 11px; height: 11px; fill: currentColor; }
.lv input[type=number] { width: 76px; padding: 0 6px; }
.lv input[type=range] { width: 110px; accent-color: #0072b2; }
.lv label { display: inline-flex; align-items: center; gap: 6px; }
.lv :focus-visible { outline: 2px solid #0072b2; outline-offset: 2px; }
.lv .stage { position: relative; line-height: 0; align-self: flex-start; }
.lv canvas { image-rendering: pixelated; border-radius: 4px; touch-action: none; display: block; }
.lv .marks { position: absolute; inset: 0; pointer-events: none; }
.lv .marks div { position: absolute; box-sizing: border-box; border: 2px solid #000;
  box-shadow: 0 0 0 1.5px #fff; border-radius: 2px; }
.lv .marks .cursor { border-style: dashed; }
.lv .legend { gap: 4px 14px; }
.lv .key { display: inline-flex; align-items: center; gap: 6px; }
.lv .swatch { width: 13px; height: 13px; border: 1px solid #1a1a1a; border-radius: 3px; }
.lv .ramp { width: 120px; height: 11px; border-radius: 3px; }
.lv .status { justify-content: space-between; }
.lv .info { min-height: 1.4em; }
.lv .muted { color: var(--jp-ui-font-color2, #616e7c); font-variant-numeric: tabular-nums; }
.lv .fault { color: #a33c00; border-left: 3px solid #d55e00; padding: 4px 10px; }
`;
const ICONS = {
  Play: "M1 0 11 5.5 1 11z", Pause: "M1 0h3v11H1zM7 0h3v11H7z", Step: "M0 0 7 5.5 0 11zM8 0h2v11H8z",
  Reset: "M5.5 1.5V0L2 2.5 5.5 5V3.3A3.4 3.4 0 1 1 2.1 6.7H.5a5 5 0 1 0 5-5.2z",
};

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

function setButton(button, name) {
  button.innerHTML = `<svg viewBox="0 0 11 11" aria-hidden="true"><path d="${ICONS[name]}"/></svg>`;
  button.append(name);
}

const rgba = (hex) => (0xff000000 | (parseInt(hex.slice(5, 7), 16) << 16)
  | (parseInt(hex.slice(3, 5), 16) << 8) | parseInt(hex.slice(1, 3), 16)) >>> 0;

const bytesOf = (value) => value instanceof ArrayBuffer ? new Uint8Array(value)
  : new Uint8Array(value.buffer, value.byteOffset, value.byteLength);

// A reader of our own: a Blob and a Response would each go through another process first.
async function inflate(packed, size) {
  const stream = new DecompressionStream("deflate");
  const writer = stream.writable.getWriter();
  writer.write(packed).then(() => writer.close()).catch(() => {}); // the reader sees the error
  const reader = stream.readable.getReader();
  const body = new Uint8Array(size);
  for (let at = 0; ;) {
    const { done, value } = await reader.read();
    if (done) return body;
    body.set(value, at);
    at += value.length;
  }
}

async function decode(value) {
  const bytes = bytesOf(value);
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const frame = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  let body = bytes.slice(4 + size);
  if (frame.deflated) {
    body = await inflate(body, frame.bytes);
  }
  const [height, width] = frame.shape;
  const wide = frame.dtype === "uint32" ? Uint32Array : Uint16Array;
  let at = height * width * wide.BYTES_PER_ELEMENT;
  frame.cell = new wide(body.buffer, 0, height * width);
  frame.kind = body.subarray(at, at += frame.cells + 1);
  if (frame.field) frame.values = body.subarray(at, at + height * width);
  return frame;
}

// Paints the frame at `scale` pixels a site, with lines where neighboring sites differ.
function paint(context, frame, scale, colors, values, line) {
  const [height, width] = frame.shape;
  const image = context.createImageData(width * scale, height * scale);
  const pixels = new Uint32Array(image.data.buffer);
  const row = width * scale;
  const cell = frame.cell;
  const thick = scale >= 10 ? 2 : 1;
  // Plain loops: `fill` on a few pixels costs more than it saves.
  for (let r = 0; r < height; r++) {
    const start = r * width;
    const next = ((r + 1) % height) * width;
    const top = r * scale * row;
    for (let c = 0, x = top; c < width; c++) {
      const color = colors[values[start + c]];
      for (const end = x + scale; x < end; x++) pixels[x] = color;
      if (line && cell[start + c] !== cell[start + (c + 1 === width ? 0 : c + 1)])
        for (let k = 1; k <= thick; k++) pixels[x - k] = line;
    }
    for (let s = 1; s < scale; s++) pixels.copyWithin(top + s * row, top, top + row);
    if (!line) continue;
    for (let c = 0; c < width; c++) {
      if (cell[start + c] === cell[next + c]) continue;
      for (let s = scale - thick; s < scale; s++) {
        const from = top + s * row + c * scale;
        for (let x = from; x < from + scale; x++) pixels[x] = line;
      }
    }
  }
  context.putImageData(image, 0, 0);
}

// Volume and perimeter (pairs of a site and a Moore neighbor outside the cell) on the torus.
function measure(frame, identity) {
  const [height, width] = frame.shape;
  const cell = frame.cell;
  let volume = 0, perimeter = 0;
  for (let i = 0; i < cell.length; i++) {
    if (cell[i] !== identity) continue;
    volume++;
    const r = Math.floor(i / width), c = i % width;
    for (let dr = -1; dr <= 1; dr++) for (let dc = -1; dc <= 1; dc++)
      if (cell[((r + dr + height) % height) * width + (c + dc + width) % width] !== identity)
        perimeter++;
  }
  return [volume, perimeter];
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (name, value) => { model.set(name, value); model.save_changes(); };
  const view = Math.random().toString(36).slice(2);
  const watched = [];
  const on = (name, handler) => { model.on(`change:${name}`, handler); watched.push([name, handler]); };
  let frame = null, tables = {}, scale = 1, drawn = -1, scheduled = false, hover = null;
  let cursor = null, recent = [], serial = 0, stroke = null, pending = [], rate = 0, seen = [];

  // --- what the user does -> Python -------------------------------------------------------
  function gesture(type, detail = {}) {
    const now = performance.now();
    recent = recent.filter((item) => now - item.at < 2000);
    recent.push({ n: ++serial, at: now, type, ...detail });
    set("gesture", { view, items: recent.map(({ at, ...item }) => item) });
  }
  const play = make("button", { class: "main", type: "button", onclick: () => set("playing", !get("playing")) });
  const step = make("button", { type: "button", onclick: () => gesture("step") });
  const reset = make("button", { type: "button", onclick: () => gesture("reset") });
  setButton(step, "Step");
  setButton(reset, "Reset");
  const seed = make("input", { "aria-label": "Seed", type: "number", min: 0, step: 1, onchange: () => set("seed", Math.max(0, Math.floor(+seed.value || 0))) });
  const speed = make("input", { "aria-label": "Speed", type: "range", min: 0, max: 8, step: 1, oninput: () => set("speed", 2 ** speed.value) });
  const speedText = make("span", { class: "muted" });
  const tools = make("select", { "aria-label": "Pointer", onchange: () => set("tool", tools.value) });
  const colors = make("select", { "aria-label": "Color by", onchange: () => set("color_by", colors.value) });
  const toolLabel = make("label", {}, "Pointer", tools);
  const controls = make("div", { class: "row", role: "toolbar", "aria-label": "Simulation" }, play, step, reset,
    make("label", {}, "Seed", seed));
  const rateText = make("span", { class: "muted" });
  const pace = make("div", { class: "row" }, make("label", {}, "Speed", speed, speedText), rateText);
  const canvas = make("canvas", { role: "img", tabindex: 0 });
  const marks = make("div", { class: "marks", "aria-hidden": "true" });
  const legend = make("div", { class: "row legend" });
  const time = make("span", { class: "muted" });
  const info = make("div", { class: "info", "aria-live": "polite" });
  const fault = make("div", { class: "fault", role: "alert", hidden: true });
  const choices = make("div", { class: "row" }, make("label", {}, "Color by", colors), toolLabel, pace);
  const status = make("div", { class: "row status" }, legend, time);
  const root = make("div", { class: "lv", "data-view": view }, make("style", {}, CSS), controls,
    make("div", { class: "stage" }, canvas, marks), status, info, choices, fault);
  el.append(root);
  const context = canvas.getContext("2d");

  // --- frames -> canvas -------------------------------------------------------------------
  let chain = Promise.resolve();
  const arrived = [];
  function receive() {
    const value = get("frame");
    if (!value || !value.byteLength) return;
       chain = chain.then(() => decode(value)).then((decoded) => { arrived.push(decoded); schedule(); }, (error) => {
      fault.textContent = `This frame cannot be read: ${error.message}`;
      fault.hidden = false;
    });
  }
  function schedule() {
    if (!scheduled) { scheduled = true; requestAnimationFrame(draw); }
  }
  function fit() {
    if (!frame) return;
    const ratio = window.devicePixelRatio || 1;
    const [height, width] = frame.shape;
    root.style.maxWidth = `${get("max_width")}px`;
    const room = Math.min(root.clientWidth || 360, get("max_width"));
    // A whole number of device pixels a site keeps borders even.
    scale = Math.max(1, Math.min(32, Math.floor(room * ratio / width)));
    if (canvas.width !== width * scale || canvas.height !== height * scale) {
      canvas.width = width * scale;
      canvas.height = height * scale;
    }
    canvas.style.width = `${Math.min(room, width * scale / ratio)}px`;
    status.style.maxWidth = canvas.style.width;
  }
  function draw() {
    scheduled = false;
    if (arrived.length) frame = arrived.shift();
    if (arrived.length) schedule(); // two that came together are still shown one by one
    if (!frame) return;
    fit();
    const by = get("color_by") === "field" && !frame.values ? "kind" : get("color_by");
    let table, values = frame.cell;
    if (by === "field") { table = get("field_colors").map(rgba); values = frame.values; }
    else {
      const kinds = get("kind_colors").map(rgba), cells = get("cell_colors").map(rgba);
      table = Uint32Array.from(frame.kind, (kind, n) =>
        n === 0 ? kinds[0] : by === "cell" ? cells[(n - 1) % cells.length] : kinds[kind % kinds.length]);
    }
    paint(context, frame, scale, table, values, scale > 1 ? rgba("#1A1A1A") : 0);
    if (drawn !== frame.id) {
      drawn = frame.id;
      set("acknowledged", frame.id);
      const now = performance.now();
      seen.push(now);
      while (seen[0] < now - 1000) seen.shift();
      rate = seen.length;
      root.dataset.rate = rate;
      root.dataset.frames = +(root.dataset.frames || 0) + 1;
    }
    describe(by);
    overlay();
    if (hover) tell(hover);
    else if (info.textContent.startsWith("Preparing")) info.textContent = "";
  }
  let described = 0, legendKey = "";
  function describe(by) {
    time.textContent = `${frame.time.toLocaleString("en", { maximumFractionDigits: 1 })} ${get("time_unit")}`;
    rateText.textContent = get("playing") ? `${rate} frames/s` : "";
    const now = performance.now();
    if (now - described < 500 && get("playing")) return;
    described = now;
    const kinds = get("kinds");
    const counts = kinds.map(() => 0);
    const present = new Uint8Array(frame.cells + 1);
    for (const identity of frame.cell) present[identity] = 1;
    for (let n = 1; n <= frame.cells; n++) if (present[n]) counts[frame.kind[n]]++;
    const parts = kinds.slice(1).map((name, k) => `${counts[k + 1]} ${name}`);
    canvas.setAttribute("aria-label", `${get("caption")}: ${frame.shape[0]} by ${frame.shape[1]} sites `
      + `after ${Math.round(frame.time)} ${get("time_unit")}; cells: ${parts.join(", ")}. `
      + "Space plays or pauses, right arrow steps, Shift and arrows move a cursor, Enter uses the pointer there.");
    const key = JSON.stringify([by, counts, by === "field" && frame.field]);
    if (key === legendKey) return;
    legendKey = key;
    const number = (x) => Number(x).toPrecision(3).replace(/\.?0+$/, "");
    if (by === "field") legend.replaceChildren(make("span", { class: "key" }, frame.field.name),
      make("span", { class: "key" }, number(frame.field.low), make("span", { class: "ramp",
        style: `background:linear-gradient(90deg,${get("field_colors").slice(0, 255).filter((_, i) => i % 32 === 0 || i === 254).join(",")})` }),
        `${number(frame.field.high)} ${frame.field.unit}`));
    else legend.replaceChildren(...kinds.map((name, k) => make("span", { class: "key" },
      ...(by === "cell" && k ? [] : [make("span", { class: "swatch", style: `background:${get("kind_colors")[k]}` })]),
      k ? `${name} (${counts[k]})` : name)));
  }

  // --- pointer and keyboard ---------------------------------------------------------------
  function siteAt(event) {
    const box = canvas.getBoundingClientRect();
    const r = Math.floor((event.clientY - box.top) / box.height * frame.shape[0]);
    const c = Math.floor((event.clientX - box.left) / box.width * frame.shape[1]);
    return r >= 0 && c >= 0 && r < frame.shape[0] && c < frame.shape[1] ? [r, c] : null;
  }
  function tell([r, c]) {
    const identity = frame.cell[r * frame.shape[1] + c];
    let text = `(${r}, ${c}) ${get("kinds")[0]}`;
    if (identity) {
      const [volume, perimeter] = measure(frame, identity);
      text = `(${r}, ${c}) cell ${identity} · ${get("kinds")[frame.kind[identity]]} · volume ${volume} · perimeter ${perimeter}`;
    }
    if (frame.values) {
      const { low, high, name } = frame.field, q = frame.values[r * frame.shape[1] + c];
      if (q < 255) text += ` · ${name} ${(low + (high - low) * q / 254).toPrecision(3)}`;
    }
    info.textContent = text;
  }
  function overlay() {
    const [height, width] = frame.shape;
    const box = ([r, c, h, w], kind) => make("div", { class: kind, style: `left:${100 * c / width}%;`
      + `top:${100 * r / height}%;width:${100 * w / width}%;height:${100 * h / height}%` });
    marks.replaceChildren(...get("marks").map((m) => box(m, "mark")), ...(cursor ? [box([...cursor, 1, 1], "cursor")] : []));
  }
  function use(site, first) {
    const tool = get("tool");
    if (tool === "inspect" || tool === "kill") {
      if (first) gesture(tool, { site });
    } else pending.push(site);
  }
  function flush() {
    if (!pending.length) return;
    gesture("paint", { sites: pending, stroke, tool: get("tool") });
    pending = [];
  }
  canvas.addEventListener("pointerdown", (event) => {
    const site = frame && siteAt(event);
    if (!site) return;
    canvas.setPointerCapture(event.pointerId);
    stroke = `${view}-${serial}`;
    hover = site;
    use(site, true);
    requestAnimationFrame(flush);
  });
  canvas.addEventListener("pointermove", (event) => {
    const site = frame && siteAt(event);
    if (!site) return;
    if (stroke && hover) {
      // The sites on the line from the last one, so that a quick drag leaves no gaps.
      const n = Math.max(Math.abs(site[0] - hover[0]), Math.abs(site[1] - hover[1]));
      for (let k = 1; k <= n; k++)
        use([Math.round(hover[0] + (site[0] - hover[0]) * k / n), Math.round(hover[1] + (site[1] - hover[1]) * k / n)], false);
      if (n) requestAnimationFrame(flush);
    }
    hover = site;
    tell(site);
  });
  const lift = () => { flush(); stroke = null; };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", () => { if (!stroke) { hover = null; info.textContent = ""; } });
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key === " ") set("playing", !get("playing"));
    else if (event.shiftKey && moves[event.key] && frame) {
      const [height, width] = frame.shape;
      const [r, c] = cursor || [Math.floor(height / 2), Math.floor(width / 2)];
      cursor = [(r + moves[event.key][0] + height) % height, (c + moves[event.key][1] + width) % width];
      overlay();
      tell(cursor);
    } else if (event.key === "ArrowRight") gesture("step");
    else if (event.key === "Home") gesture("reset");
    else if (event.key === "Enter" && cursor) { stroke = `${view}-${serial}`; use(cursor, true); lift(); }
    else return;
    event.preventDefault();
    event.stopPropagation(); // Lab would otherwise scroll or leave the cell
  });

  // --- state from Python ------------------------------------------------------------------
  let waiting = 0;
  function refresh() {
    const playing = get("playing");
    clearTimeout(waiting);
    const last = drawn;
    if (playing) waiting = setTimeout(() => {
      if (drawn === last && get("playing")) info.textContent = "Preparing the simulation …";
    }, 600);
    setButton(play, playing ? "Pause" : "Play");
    seed.value = get("seed");
    speed.value = Math.round(Math.log2(get("speed")));
    speedText.textContent = `${get("speed")} ${get("time_unit")}/frame`;
    speed.setAttribute("aria-valuetext", speedText.textContent);
    const kinds = get("kinds");
    const toolName = (tool) => ({ inspect: "inspects", erase: "erases", kill: "kills a cell" })[tool] || `draws ${kinds[+tool.split(":")[1]]}`;
    const options = (select, values, name, chosen) => {
      select.replaceChildren(...values.map((v) => make("option", { value: v, selected: v === chosen }, name(v))));
      select.value = chosen;
    };
    options(tools, get("tools"), toolName, get("tool"));
    toolLabel.hidden = get("tools").length < 2;
    canvas.style.cursor = get("tool") === "inspect" ? "default" : "crosshair";
    const names = { kind: "type", cell: "cell", field: "field" };
    options(colors, get("colorings"), (by) => by === "field" && frame && frame.field ? frame.field.name : names[by], get("color_by"));
    fault.textContent = get("fault");
    fault.hidden = !get("fault");
    legendKey = "";
    described = 0;
    schedule();
  }
  for (const name of ["playing", "seed", "speed", "kinds", "tools", "tool", "color_by", "colorings", "fault",
    "field_colors", "max_width", "caption"]) on(name, refresh);
  on("frame", receive);
  on("marks", schedule);
  // Without an answer from Python (a stored or exported page) this is a still: no dead controls.
  const connected = (yes) => {
    controls.hidden = !yes;
    pace.hidden = !yes;
    toolLabel.hidden = !yes || get("tools").length < 2;
    root.dataset.live = yes;
    if (!yes) info.textContent = "Still picture: run the notebook to play";
  };
  on("answer", () => { if (get("answer") === view) { info.textContent = ""; connected(true); } });
  const lonely = setTimeout(() => { if (root.dataset.live !== "true") connected(false); }, 2000);
  const observer = new ResizeObserver(schedule);
  observer.observe(root);
  if (typeof DecompressionStream === "undefined") set("inflates", false);
  refresh();
  receive();
  set("hello", view);
  return () => {
    clearTimeout(lonely);
    clearTimeout(waiting);
    observer.disconnect();
    for (const [name, handler] of watched) if (model.off) model.off(`change:${name}`, handler);
  };
}

export default { render };
