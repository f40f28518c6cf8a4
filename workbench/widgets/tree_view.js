// Search tree in the browser: a canvas with one mark for each node, or cells when there are many.
// Arrow keys walk through the tree, Enter or a click picks a node; what is read is said aloud.

const CSS = `
.wtree { font: 12px/1.4 system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif;
  color: var(--jp-ui-font-color1, #1f2933); position: relative; }
.wtree canvas { display: block; width: 100%; height: 260px; border: 1px solid #e4e7eb;
  border-radius: 4px; background: #fff; cursor: pointer; }
.wtree canvas:focus-visible { outline: 2px solid #0072b2; outline-offset: 1px; }
.wtree .told { min-height: 2.8em; margin-top: 3px; font-variant-numeric: tabular-nums; }
.wtree .keys { color: var(--jp-ui-font-color2, #616e7c); }
`;
const CIVIDIS = [[0, 34, 78], [53, 69, 108], [102, 105, 112], [148, 142, 119], [200, 182, 106], [254, 232, 56]];
const STATUSES = ["open", "branched", "pruned", "all decided"];
const EDGE = 16, HEIGHT = 260;

function color(share) {
  const x = Math.min(1, Math.max(0, share)) * (CIVIDIS.length - 1);
  const i = Math.min(CIVIDIS.length - 2, Math.floor(x)), t = x - i;
  const mixed = CIVIDIS[i].map((c, k) => Math.round(c + t * (CIVIDIS[i + 1][k] - c)));
  return `rgb(${mixed.join(",")})`;
}

function floats(view) {
  if (!view) return new Float32Array(0);
  const buffer = view.buffer ? view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength) : view;
  return new Float32Array(buffer);
}

function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "wtree";
  const style = document.createElement("style");
  style.textContent = CSS;
  const canvas = document.createElement("canvas");
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application");
  const told = document.createElement("div");
  told.className = "told";
  told.setAttribute("role", "status");
  const keys = document.createElement("div");
  keys.className = "keys";
  keys.textContent = "● branched  ○ open  ✕ pruned  ■ all decided · darker: lower bound · arrow keys and Enter, or hover and click";
  root.append(canvas, told, keys);
  el.append(style, root);
  const get = (name) => model.get(name);
  let nodes = new Float32Array(0), cells = new Float32Array(0), count = 0, deepest = 1, focus = -1, queued = false;

  const node = (k) => ({ parent: nodes[7 * k], depth: nodes[7 * k + 1], feature: nodes[7 * k + 2], included: nodes[7 * k + 3] > 0, value: nodes[7 * k + 4], status: nodes[7 * k + 5], work: nodes[7 * k + 6] });
  const width = () => canvas.clientWidth || 400;
  const x = (k) => EDGE + (count < 2 ? 0 : (k / (count - 1)) * (width() - 2 * EDGE));
  const y = (depth) => EDGE + (depth / Math.max(1, deepest)) * (HEIGHT - 2 * EDGE);
  // Not up to the brightest color, which is hard to see on white.
  const shade = (value) => color(0.8 * Math.min(1, (value - get("low")) / (get("high") - get("low"))));

  function name(j) { return get("names")[j] || String(j); }

  function words(k) {
    const found = node(k), inside = [], outside = [];
    for (let i = k; i > 0 && nodes[7 * i] >= 0; i = nodes[7 * i]) (node(i).included ? inside : outside).unshift(name(node(i).feature));
    const some = (list) => (list.length > 8 ? `${list.slice(0, 8).join(", ")} and ${list.length - 8} more` : list.join(", ") || "none");
    return `Node ${k}, ${STATUSES[found.status]}: bound ${found.value.toPrecision(6)}, ${found.work} iterations. In: ${some(inside)}. Out: ${some(outside)}.`;
  }

  function tell() {
    const k = focus >= 0 ? focus : get("picked");
    if (cells.length) told.textContent = `${get("count")} nodes: too many to draw one by one, cells are shaded by how many they hold.`;
    else told.textContent = k >= 0 && k < count ? words(k) : count ? `${count} nodes.` : "No tree yet.";
    canvas.setAttribute("aria-label", `${get("caption")}: ${told.textContent}`);
  }

  function mark(context, k) {
    const found = node(k), a = x(k), b = y(found.depth), r = count > 600 ? 2.5 : count > 150 ? 3.5 : 5;
    context.fillStyle = context.strokeStyle = shade(found.value);
    context.lineWidth = 1.8;
    context.beginPath();
    if (found.status === 2) { context.moveTo(a - r, b - r); context.lineTo(a + r, b + r); context.moveTo(a - r, b + r); context.lineTo(a + r, b - r); context.stroke(); }
    else if (found.status === 3) context.fillRect(a - r, b - r, 2 * r, 2 * r);
    else { context.arc(a, b, r, 0, 7); found.status === 0 ? context.stroke() : context.fill(); }
    if (k === get("picked") || k === focus) {
      context.strokeStyle = "#d55e00"; context.lineWidth = 2; context.beginPath(); context.arc(a, b, r + 4, 0, 7);
      context.setLineDash(k === get("picked") ? [] : [3, 2]); context.stroke(); context.setLineDash([]);
    }
  }

  function draw() {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = width() * ratio;
    canvas.height = HEIGHT * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    if (cells.length) {
      const columns = 160, most = Math.max(...cells.filter((_, i) => i % 5 === 2));
      const w = (width() - 2 * EDGE) / columns, h = Math.max(2, (HEIGHT - 2 * EDGE) / (deepest + 1));
      for (let i = 0; i < cells.length; i += 5) {
        context.globalAlpha = 0.25 + 0.75 * Math.sqrt(cells[i + 2] / most);
        context.fillStyle = shade(cells[i + 3]);
        context.fillRect(EDGE + cells[i] * w, EDGE + cells[i + 1] * h, Math.max(1, w - 0.5), Math.max(1, h - 0.5));
      }
      context.globalAlpha = 1;
    } else {
      context.strokeStyle = "rgba(97,110,124,0.35)";
      context.lineWidth = 0.8;
      context.beginPath();
      for (let k = 1; k < count; k++) { const up = nodes[7 * k]; context.moveTo(x(up), y(nodes[7 * up + 1])); context.lineTo(x(k), y(nodes[7 * k + 1])); }
      context.stroke();
      for (let k = 0; k < count; k++) mark(context, k);
    }
    tell();
  }
  const schedule = () => { if (!queued) { queued = true; requestAnimationFrame(() => { queued = false; draw(); }); } };

  function take() {
    nodes = floats(get("nodes"));
    cells = floats(get("cells"));
    count = nodes.length / 7;
    deepest = 1;
    for (let k = 0; k < count; k++) deepest = Math.max(deepest, nodes[7 * k + 1]);
    for (let i = 0; i < cells.length; i += 5) deepest = Math.max(deepest, cells[i + 1]);
    if (focus >= count) focus = -1;
    schedule();
  }

  function nearest(event) {
    const box = canvas.getBoundingClientRect(), a = event.clientX - box.left, b = event.clientY - box.top;
    let best = -1, least = 14 * 14;
    for (let k = 0; k < count; k++) {
      const far = (x(k) - a) ** 2 + (y(nodes[7 * k + 1]) - b) ** 2;
      if (far < least) { least = far; best = k; }
    }
    return best;
  }
  function pick(k) { if (k < 0) return; model.set("picked", k); model.save_changes(); schedule(); }
  canvas.addEventListener("pointermove", (event) => { focus = nearest(event); schedule(); });
  canvas.addEventListener("pointerleave", () => { focus = -1; schedule(); });
  canvas.addEventListener("click", (event) => pick(nearest(event)));
  canvas.addEventListener("keydown", (event) => {
    if (!count) return;
    const now = focus >= 0 ? focus : Math.max(0, get("picked"));
    const child = () => { for (let k = now + 1; k < count; k++) if (nodes[7 * k] === now) return k; return now; };
    const to = { ArrowLeft: () => Math.max(0, now - 1), ArrowRight: () => Math.min(count - 1, now + 1), ArrowUp: () => Math.max(0, nodes[7 * now]), ArrowDown: child, Home: () => 0, End: () => count - 1 }[event.key];
    if (event.key === "Enter" || event.key === " ") pick(now);
    else if (to) focus = to();
    else return;
    event.preventDefault();
    schedule();
  });
  const watched = ["nodes", "cells"];
  for (const name of watched) model.on(`change:${name}`, take);
  model.on("change:picked", schedule);
  model.on("change:names", schedule);
  const sized = new ResizeObserver(schedule);
  sized.observe(root);
  take();
  return () => {
    sized.disconnect();
    if (!model.off) return;
    for (const name of watched) model.off(`change:${name}`, take);
    model.off("change:picked", schedule);
    model.off("change:names", schedule);
  };
}

export default { render };
