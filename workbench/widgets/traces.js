// Traces in the browser: a few small line charts over a common time, redrawn as numbers arrive.
// `charts` says what is drawn; `data` is one buffer of float64: all times, then each series.

const CSS = `
.wt { font: 12px/1.35 system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif;
  color: var(--jp-ui-font-color1, #1f2933); display: flex; flex-direction: column; gap: 12px; }
.wt h3 { font-size: 13px; font-weight: 600; margin: 0; }
.wt .unit { color: var(--jp-ui-font-color2, #616e7c); font-weight: 400; }
.wt .keys { display: flex; flex-wrap: wrap; gap: 2px 14px; min-height: 1.35em;
  font-variant-numeric: tabular-nums; }
.wt .keys svg { width: 18px; height: 8px; margin-right: 5px; }
.wt svg.plot { width: 100%; height: auto; display: block; overflow: visible; }
.wt text { font: 10px system-ui, Roboto, Arial, sans-serif; fill: var(--jp-ui-font-color2, #616e7c);
  font-variant-numeric: tabular-nums; }
`;
const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 340, HEIGHT = 104, LEFT = 44, RIGHT = 8, TOP = 6, BOTTOM = 18;

function svg(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function html(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// A round step that divides low..high into about `count` parts, and its multiples in there.
function stepOf(low, high, count) {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  return power * [1, 2, 5, 10].find((m) => m * power >= raw * 0.999);
}

function ticks(low, high, step) {
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}

const write = (x) => Number.isFinite(x) ? Number(x.toPrecision(4)).toLocaleString("en") : "–";

function render({ model, el }) {
  const root = html("div", { class: "wt" });
  el.append(html("style", {}, CSS), root);

  function draw() {
    const value = model.get("data");
    const charts = model.get("charts");
    const bytes = value instanceof ArrayBuffer ? new Uint8Array(value)
      : new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    const numbers = new Float64Array(bytes.slice().buffer);
    const total = 1 + charts.reduce((sum, chart) => sum + chart.series.length, 0);
    const n = numbers.length / total;
    const times = numbers.subarray(0, n);
    let row = 0;
    root.replaceChildren(...charts.map((chart) => {
      const lines = chart.series.map((series) => {
        row += 1;
        return { ...series, values: numbers.subarray(row * n, (row + 1) * n) };
      }).filter((line) => !line.optional || line.values.some((v) => v !== 0));
      return one(chart, lines, times, n);
    }));
  }

  function one(chart, lines, times, n) {
    const seen = lines.flatMap((line) => Array.from(line.values)).filter(Number.isFinite);
    let low = chart.low ?? Math.min(...seen), high = chart.high ?? Math.max(...seen);
    if (!seen.length) [low, high] = [0, 1];
    if (high - low < 1e-9 * Math.max(1, Math.abs(high))) [low, high] = [low - 0.5, high + 0.5];
    const step = stepOf(low, high, 3);
    low = Math.floor(low / step + 1e-9) * step;
    high = Math.ceil(high / step - 1e-9) * step;
    const start = n ? times[0] : 0, end = n && times[n - 1] > start ? times[n - 1] : start + 1;
    const x = (t) => LEFT + (WIDTH - LEFT - RIGHT) * (t - start) / (end - start);
    const y = (v) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (v - low) / (high - low);
    const marks = [
      ...ticks(low, high, step).flatMap((v) => [
        svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(v), y2: y(v), stroke: "currentColor", "stroke-opacity": 0.14 }),
        svg("text", { x: LEFT - 6, y: y(v) + 3, "text-anchor": "end" }, write(v)),
      ]),
      ...ticks(start, end, stepOf(start, end, 4)).map((t, k, all) => svg("text", { x: x(t), y: HEIGHT - 4, "text-anchor": k === all.length - 1 ? "end" : "middle" },
        write(t) + (k === all.length - 1 ? ` ${model.get("time_unit")}` : ""))),
    ];
    const stroke = (line) => ({ stroke: line.color, "stroke-width": 1.8, fill: "none",
      "stroke-dasharray": line.dashed ? "4 3" : "none" });
    const curves = lines.map((line) => {
      let path = "", pen = false;
      for (let i = 0; i < n; i++) {
        const ok = Number.isFinite(line.values[i]);
        if (ok) path += `${pen ? "L" : "M"}${x(times[i]).toFixed(1)} ${y(line.values[i]).toFixed(1)}`;
        pen = ok;
      }
      return svg("path", { d: path, ...stroke(line) });
    });
    const latest = (line) => `${line.name} ${write(n ? line.values[n - 1] : NaN)}`;
    const keys = lines.map((line) => html("span", {},
      svg("svg", { viewBox: "0 0 18 8", "aria-hidden": "true" }, svg("path", { d: "M0 4H18", ...stroke(line) })), latest(line)));
    const label = `${chart.title} [${chart.unit}] after ${write(n ? times[n - 1] : 0)} ${model.get("time_unit")}: ${lines.map(latest).join(", ")}`;
    return html("section", {},
      html("h3", {}, chart.title, html("span", { class: "unit" }, ` [${chart.unit}]`)),
      html("div", { class: "keys" }, ...keys),
      svg("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label }, ...marks, ...curves));
  }

  let queued = false;
  const schedule = () => {
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => { queued = false; draw(); });
  };
  model.on("change:data", schedule);
  draw();
  return () => { if (model.off) model.off("change:data", schedule); };
}

export default { render };
