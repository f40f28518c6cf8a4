// Controls in the browser: one native form for all parameters of a method. Native elements bring
// names, keyboard and focus for free; each slider is paired with a number input that is labelled.
// `rows` says what there is; `values` is the whole truth and is set as one object, so that merged
// messages lose nothing. Python answers with `values` and, for what it refuses, `errors`.

const CSS = `
.wc { font: 13px/1.35 system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif;
  color: var(--jp-ui-font-color1, #1f2933); width: 100%; max-width: 420px; min-width: 260px; }
.wc details { border-top: 1px solid #e4e7eb; padding: 2px 0 6px; }
.wc summary { cursor: pointer; font-weight: 600; padding: 5px 0; }
.wc .field { display: grid; grid-template-columns: minmax(96px, 1fr) minmax(70px, 1.1fr) 84px;
  gap: 0 10px; align-items: center; min-height: 30px; }
.wc .field.wide > :nth-child(2) { grid-column: 2 / 4; }
.wc .field.number > :nth-child(2) { grid-column: 3; }
.wc label { overflow-wrap: anywhere; }
.wc .unit { color: var(--jp-ui-font-color2, #616e7c); font-size: 11px; display: block; line-height: 1.1; }
.wc input[type=number], .wc input[type=text], .wc select { font: inherit; color: inherit;
  width: 100%; height: 26px; box-sizing: border-box; border: 1px solid #b8c0ca; border-radius: 6px;
  padding: 0 6px; background: var(--jp-layout-color1, #fff); }
.wc input[type=range] { width: 100%; margin: 0; accent-color: #0072b2; }
.wc .boxes { display: flex; flex-wrap: wrap; gap: 2px 12px; padding: 3px 0; }
.wc .boxes label { display: inline-flex; gap: 5px; align-items: center; }
.wc input[type=checkbox] { width: 16px; height: 16px; margin: 0; accent-color: #0072b2; }
.wc :focus-visible { outline: 2px solid #0072b2; outline-offset: 1px; }
.wc .changed .name::after { content: " •"; color: #d55e00; font-weight: 700; }
.wc .bad input { border-color: #d55e00; }
.wc .error { grid-column: 1 / 4; color: #a33c00; font-size: 12px; padding-bottom: 4px; }
.wc .help { border-top: 1px solid #e4e7eb; color: var(--jp-ui-font-color2, #616e7c);
  min-height: 3.9em; padding-top: 6px; font-size: 12px; }
`;

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

// A slider over three decades or more moves on a logarithmic scale of 400 notches.
function scaleOf({ low, high, type }) {
  const whole = type === "int";
  const tidy = (x) => (whole ? Math.round(x) : Number(x.toPrecision(3)));
  if (low > 0 && high / low >= 1000) {
    const span = Math.log(high / low);
    return { min: 0, max: 400, step: 1, to: (v) => (400 * Math.log(v / low)) / span, from: (s) => tidy(low * Math.exp((span * s) / 400)) };
  }
  const raw = (high - low) / 200;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = whole ? Math.max(1, Math.round(raw)) : power * [1, 2, 5, 10].find((m) => m * power >= raw * 0.999);
  return { min: low, max: high, step, to: (v) => v, from: (s) => Number((+s).toPrecision(6)) };
}

function render({ model, el }) {
  const help = make("div", { class: "help" });
  const fields = {};
  let queued = false;
  const root = make("div", { class: "wc", role: "form", "aria-label": model.get("caption") });
  el.append(make("style", {}, CSS), root);
  const draft = { ...model.get("values") };

  function commit(name, value) {
    if (JSON.stringify(draft[name]) === JSON.stringify(value)) {
      fields[name].field.classList.remove("bad");
      fields[name].error.hidden = true;
      return;
    }
    draft[name] = value;
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => {
      queued = false;
      model.set("values", { ...draft });
      model.save_changes();
    });
  }

  function build(row) {
    const id = `wc-${Math.random().toString(36).slice(2)}`;
    const label = make("label", { for: id }, make("span", { class: "name" }, row.label));
    if (row.unit) label.append(make("span", { class: "unit" }, row.unit));
    const note = { id, "aria-label": row.label, "aria-description": row.unit ? `${row.doc} [${row.unit}]` : row.doc };
    let show, parts, kind = "wide";
    if (row.type === "bool") {
      const box = make("input", { type: "checkbox", ...note, onchange: () => commit(row.name, box.checked) });
      parts = [box];
      show = (v) => { box.checked = v; };
    } else if (row.choices && row.type === "list") {
      const boxes = row.choices.map((choice) => make("input", { type: "checkbox", value: choice, onchange: () =>
        commit(row.name, boxes.filter((box) => box.checked).map((box) => box.value)) }));
      parts = [make("div", { class: "boxes", role: "group", ...note, id: false },
        ...boxes.map((box) => make("label", {}, box, box.value.replaceAll("_", " "))))];
      label.removeAttribute("for");
      show = (v) => { for (const box of boxes) box.checked = v.includes(box.value); };
    } else if (row.choices) {
      const select = make("select", { ...note, onchange: () => commit(row.name, select.value) },
        ...row.choices.map((choice) => make("option", { value: choice }, choice.replaceAll("_", " "))));
      parts = [select];
      show = (v) => { select.value = v; };
    } else if (row.type === "str") {
      const text = make("input", { type: "text", ...note, onchange: () => commit(row.name, text.value.trim()) });
      parts = [text];
      show = (v) => { text.value = v; };
    } else if (row.type === "list") {
      const text = make("input", { type: "text", ...note, onchange: () => commit(row.name, text.value.split(/[\s,]+/).filter(Boolean).map(Number)) });
      parts = [text];
      show = (v) => { text.value = v.join(", "); };
    } else {
      const number = make("input", { type: "number", step: row.type === "int" ? 1 : "any", ...note,
        onchange: () => { if (number.value !== "") commit(row.name, Number(number.value)); } });
      parts = [number];
      kind = "number";
      show = (v) => { number.value = v; };
      if (row.low != null && row.high != null) {
        const scale = scaleOf(row);
        const range = make("input", { type: "range", min: scale.min, max: scale.max, step: scale.step,
          "aria-label": `${row.label} slider`, "aria-description": row.doc,
          oninput: () => { const v = scale.from(range.value); number.value = v; range.setAttribute("aria-valuetext", v); commit(row.name, v); } });
        parts = [range, number];
        kind = "";
        show = (v) => { number.value = v; range.value = scale.to(v); range.setAttribute("aria-valuetext", v); };
      }
    }
    const error = make("div", { class: "error", role: "alert", hidden: true });
    const field = make("div", { class: `field ${kind}`, title: row.doc }, label, ...parts, error);
    const explain = () => { help.textContent = `${row.label}: ${row.doc}${row.allowed ? ` (${row.allowed})` : ""}`; };
    field.addEventListener("pointerenter", explain);
    field.addEventListener("focusin", explain);
    fields[row.name] = { field, error, show, row };
    return field;
  }

  function layout() {
    root.replaceChildren();
    const groups = new Map();
    for (const row of model.get("rows")) groups.set(row.group, [...(groups.get(row.group) || []), row]);
    const open = model.get("open");
    for (const [group, rows] of groups)
      root.append(make("details", { open: open.includes(group) }, make("summary", {}, group), ...rows.map(build)));
    help.textContent = "Point at a control to read what it does.";
    root.append(help);
  }

  function refresh() {
    const values = model.get("values"), errors = model.get("errors"), base = model.get("base");
    for (const [name, { field, error, show }] of Object.entries(fields)) {
      draft[name] = values[name];
      const same = JSON.stringify(values[name]) === JSON.stringify(base[name]);
      field.classList.toggle("changed", !same);
      field.classList.toggle("bad", name in errors);
      error.textContent = errors[name] || "";
      error.hidden = !(name in errors);
      if (!field.contains(field.getRootNode().activeElement) || !(name in errors)) show(values[name]);
    }
  }
  const watched = ["values", "errors", "base"];
  for (const name of watched) model.on(`change:${name}`, refresh);
  layout();
  refresh();
  return () => { for (const name of watched) if (model.off) model.off(`change:${name}`, refresh); };
}

export default { render };
