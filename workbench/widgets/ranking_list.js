// RankingList in the browser: a numbered list of chosen classes beside those that may be chosen.
// Pointer events rather than HTML's drag and drop, which knows no touch. All that a drag can do,
// buttons and keys can do too, and each change is said in a live region.

const CSS = `
.rl { font: 13px/1.4 system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; width: 100%;
  color: var(--jp-ui-font-color1, #1f2933); position: relative; display: grid; gap: 6px 20px;
  grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); align-items: start; }
.rl.narrow { grid-template-columns: minmax(0, 1fr); }
.rl [hidden] { display: none !important; }
.rl h3 { font-size: 13px; font-weight: 600; margin: 0; display: inline; }
.rl .head { display: flex; justify-content: space-between; align-items: center; min-height: 30px; gap: 8px; }
.rl .head span { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.rl .muted, .rl .hint { color: var(--jp-ui-font-color2, #616e7c); }
.rl .hint { grid-column: 1 / -1; font-size: 12px; }
.rl ol { list-style: none; margin: 0; padding: 4px; min-height: 72px; border: 1px solid #b8c0ca;
  border-radius: 6px; max-height: 300px; overflow-y: auto; box-sizing: border-box; }
.rl.over ol { border-color: #0072b2; box-shadow: 0 0 0 1px #0072b2; }
.rl li { display: flex; align-items: center; gap: 7px; height: 30px; padding: 0 3px; border-radius: 5px;
  cursor: grab; touch-action: none; user-select: none; position: relative; }
.rl li:hover { background: #f0f3f6; }
.rl li .name { flex: 1; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.rl li .at { min-width: 22px; height: 22px; line-height: 22px; border-radius: 11px; background: #0072b2;
  color: #fff; text-align: center; font-size: 12px; font-variant-numeric: tabular-nums; }
.rl li.empty { color: var(--jp-ui-font-color2, #616e7c); cursor: default; height: 60px; padding: 0 8px; }
.rl li.empty:hover { background: none; }
.rl li.before::before, .rl li.after::after { content: ""; position: absolute; left: 0; right: 0; height: 3px;
  border-radius: 2px; background: #d55e00; top: -2px; }
.rl li.after::after { top: auto; bottom: -2px; }
.rl li.lifted { opacity: .35; }
.rl button, .rl input { font: inherit; color: inherit; border: 1px solid #b8c0ca; border-radius: 6px;
  background: var(--jp-layout-color1, #fff); box-sizing: border-box; }
.rl button { cursor: pointer; height: 28px; padding: 0 10px; }
.rl li button { width: 24px; height: 24px; padding: 0; line-height: 1; flex: none; }
.rl button:hover:not(:disabled):not([aria-disabled=true]) { border-color: #0072b2; }
.rl button:disabled { opacity: .35; cursor: default; }
.rl input { width: 130px; height: 28px; padding: 0 8px; min-width: 0; }
.rl :focus-visible { outline: 2px solid #0072b2; outline-offset: 1px; }
.rl .chips { display: flex; flex-wrap: wrap; gap: 5px; max-height: 300px; overflow-y: auto; padding: 5px;
  border: 1px solid #e4e7eb; border-radius: 6px; min-height: 72px; box-sizing: border-box; align-content: flex-start; }
.rl .chips button { border-radius: 14px; min-width: 32px; max-width: 100%; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; touch-action: pan-y; user-select: none; cursor: grab; }
.rl .chips button[aria-disabled=true] { color: #616e7c; background: #f0f3f6; border-style: dashed; cursor: not-allowed; }
.rl .ghost { position: absolute; pointer-events: none; z-index: 9; padding: 3px 12px; border-radius: 14px;
  background: #0072b2; color: #fff; box-shadow: 0 2px 6px #0005; white-space: nowrap; }
.rl .hush { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
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

function render({ model, el }) {
  const get = (name) => model.get(name);
  const watched = [];
  const on = (name, handler) => { model.on(`change:${name}`, handler); watched.push([name, handler]); };
  const title = make("h3"), count = make("span", { class: "muted" });
  const clear = make("button", { type: "button", onclick: () => change([], "All removed") }, "Clear");
  const list = make("ol");
  const search = make("input", { type: "search", placeholder: "Search", "aria-label": "Search classes", oninput: () => refresh() });
  const chips = make("div", { class: "chips", role: "group", "aria-label": "Classes to choose from" });
  const note = make("div", { class: "hint" });
  const live = make("div", { class: "hush", "aria-live": "polite" });
  const root = make("div", { class: "rl", role: "group" }, make("style", {}, CSS),
    make("div", {}, make("div", { class: "head" }, make("span", {}, title, " ", count), clear), list),
    make("div", {}, make("div", { class: "head" }, make("h3", {}, "Classes"), search), chips), note, live);
  el.append(root);
  let drag = null, dragged = false, shown = "", still = false;
  const view = Math.random().toString(36).slice(2);

  const nameOf = (k) => get("class_names")[k];
  const most = () => Math.min(get("max_length") ?? Infinity, get("class_names").length - (get("label") === null ? 0 : 1));
  const full = () => get("value").length >= most();

  // --- changes --------------------------------------------------------------------------------
  function change(value, words, focus) {
    model.set("value", value);
    model.save_changes();
    refresh();
    live.textContent = words;
    const items = list.querySelectorAll("li[data-class]");
    if (focus !== undefined) (items[Math.min(focus, items.length - 1)] || search).focus();
  }
  function refuse(words) { live.textContent = words; note.textContent = words; }
  function insert(k, to = get("value").length, focus) {
    if (k === get("label")) return refuse(`${nameOf(k)} is the true class: it cannot be chosen`);
    const value = get("value").filter((other) => other !== k);
    if (value.length >= most()) return refuse(`The order is full with ${value.length}: remove a class first`);
    to = Math.max(0, Math.min(to, value.length));
    value.splice(to, 0, k);
    change(value, `${nameOf(k)} is now ${to + 1} of ${value.length}`, focus ? to : undefined);
  }
  function remove(k, focus) {
    const at = get("value").indexOf(k);
    change(get("value").filter((other) => other !== k), `${nameOf(k)} removed`, focus ? at : undefined);
  }
  function move(k, by) {
    const at = get("value").indexOf(k), to = at + by;
    if (to < 0 || to >= get("value").length) { live.textContent = `${nameOf(k)} is already ${by < 0 ? "first" : "last"}`; return; }
    insert(k, to, true);
  }

  // --- pointer: a drag starts after a few pixels, a click stays a click ---------------------------
  function grab(node, k) {
    node.addEventListener("pointerdown", (event) => {
      if (event.button || event.target.closest("li button") || k === get("label")) return;
      drag = { k, node, x: event.clientX, y: event.clientY, id: event.pointerId, ghost: null, to: null };
      dragged = false;
    });
  }
  function follow(event) {
    if (!drag || event.pointerId !== drag.id) return;
    if (!drag.ghost) {
      if (Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < 5) return;
      drag.ghost = make("div", { class: "ghost", "aria-hidden": "true" }, nameOf(drag.k));
      root.append(drag.ghost);
      drag.node.classList.add("lifted");
      dragged = true;
    }
    event.preventDefault();
    const box = root.getBoundingClientRect(), bounds = list.getBoundingClientRect();
    drag.ghost.style.left = `${event.clientX - box.left + 8}px`;
    drag.ghost.style.top = `${event.clientY - box.top - 12}px`;
    const inside = event.clientX > bounds.left && event.clientX < bounds.right
      && event.clientY > bounds.top - 12 && event.clientY < bounds.bottom + 12;
    const items = [...list.querySelectorAll("li[data-class]")];
    for (const item of items) item.classList.remove("before", "after");
    drag.inside = inside;
    drag.to = null;
    root.classList.toggle("over", inside);
    if (!inside) return;
    // A long list scrolls while something is held at its end.
    if (event.clientY < bounds.top + 16) list.scrollTop -= 8;
    if (event.clientY > bounds.bottom - 16) list.scrollTop += 8;
    const next = items.findIndex((item) => { const b = item.getBoundingClientRect(); return event.clientY < b.top + b.height / 2; });
    const place = next < 0 ? items.length : next;
    if (items.length) (next < 0 ? items[items.length - 1] : items[next]).classList.add(next < 0 ? "after" : "before");
    const own = get("value").indexOf(drag.k);
    drag.to = own >= 0 && own < place ? place - 1 : place; // the place once the dragged one has left
  }
  function drop(event, cancel) {
    if (!drag || (event.pointerId !== undefined && event.pointerId !== drag.id)) return;
    const { k, to, ghost, node, inside } = drag;
    drag = null;
    root.classList.remove("over");
    node.classList.remove("lifted");
    for (const item of list.children) item.classList.remove("before", "after");
    if (!ghost) return;
    ghost.remove();
    setTimeout(() => { dragged = false; }); // the click that ends a drag comes at once
    if (cancel) return;
    const chosen = get("value").includes(k);
    if (to !== null) insert(k, to);
    else if (chosen && !inside) remove(k); // dragged out of the list
  }
  const lift = (event) => drop(event, false), cancel = (event) => drop(event, true);
  const escape = (event) => { if (event.key === "Escape" && drag) drop({}, true); };
  window.addEventListener("pointermove", follow);
  window.addEventListener("pointerup", lift);
  window.addEventListener("pointercancel", cancel);
  window.addEventListener("keydown", escape);

  // --- what is seen ---------------------------------------------------------------------------------
  function item(k, at, n) {
    const button = (text, label, action, disabled) => make("button", { type: "button", tabindex: -1, "aria-label": `${label}: ${nameOf(k)}`,
      title: label, disabled, onclick: action }, text);
    const node = make("li", { "data-class": k, tabindex: 0, title: nameOf(k), "aria-label": `${at + 1} of ${n}: ${nameOf(k)}. Shift and up or down move it, Delete removes it.` },
      make("span", { class: "at", "aria-hidden": "true" }, at + 1), make("span", { class: "name" }, nameOf(k)),
      button("↑", "Move up", () => move(k, -1), at === 0), button("↓", "Move down", () => move(k, 1), at === n - 1),
      button("×", "Remove", () => remove(k, true)));
    node.addEventListener("keydown", (event) => {
      const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      const next = by < 0 ? node.previousElementSibling : node.nextElementSibling;
      if (by && (event.shiftKey || event.altKey)) move(k, by);
      else if (by) { if (next) next.focus(); }
      else if ((event.key === "Delete" || event.key === "Backspace") && event.target === node) remove(k, true);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    grab(node, k);
    return node;
  }
  function chip(k) {
    const truth = k === get("label"), barred = truth || full();
    const why = truth ? "the true class: it cannot be chosen" : full() ? "the order is full: remove a class first" : "add to the order";
    const node = make("button", { type: "button", "data-class": k, "aria-disabled": barred ? "true" : false, title: `${nameOf(k)}: ${why}`,
      "aria-label": barred ? `${nameOf(k)}, ${why}` : `Add ${nameOf(k)}`,
      onclick: () => { if (!dragged) add(k); } }, nameOf(k) + (truth ? " (true)" : ""));
    grab(node, k);
    return node;
  }
  // Focus stays among the chips, on the next one, so that keys can add several.
  function add(k) {
    const seen = [...chips.children].map((node) => +node.dataset.class);
    insert(k);
    const next = seen.slice(seen.indexOf(k) + 1).find((other) => other !== get("label"));
    if (get("value").includes(k)) (chips.querySelector(`[data-class="${next}"]`) || chips.querySelector("button") || search).focus();
  }
  const matches = () => {
    const wanted = search.value.trim().toLowerCase(), value = new Set(get("value"));
    return get("class_names").map((_, k) => k).filter((k) => !value.has(k) && nameOf(k).toLowerCase().includes(wanted));
  };
  search.addEventListener("keydown", (event) => {
    event.stopPropagation(); // letters are shortcuts of the notebook
    if (event.key !== "Enter") return;
    event.preventDefault();
    // An exact name first: among glyphs, "a" also finds "A".
    const found = matches().filter((k) => k !== get("label"));
    const best = found.find((k) => nameOf(k) === search.value.trim()) ?? found[0];
    if (best === undefined) return refuse(`No class to choose is called "${search.value}"`);
    search.value = "";
    insert(best);
    search.focus();
  });
  function refresh() {
    const value = get("value"), label = get("label"), limit = most();
    // The same change may come twice, from here and as an event; the second would lose the focus.
    const key = JSON.stringify([value, label, limit, get("caption"), get("class_names"), search.value]);
    if (key === shown) return;
    shown = key;
    if (drag && drag.ghost) drop({}, true); // what is dragged may be gone
    root.setAttribute("aria-label", get("caption"));
    title.textContent = get("caption");
    count.textContent = `${value.length} of ${limit}`;
    clear.disabled = !value.length;
    const scrolled = [list.scrollTop, chips.scrollTop];
    list.replaceChildren(...(value.length ? value.map((k, at) => item(k, at, value.length))
      : [make("li", { class: "empty" }, "Click a class or drag it here")]));
    clear.hidden = still;
    search.hidden = still || get("class_names").length <= 12;
    const found = matches();
    chips.replaceChildren(...(found.length ? found.map(chip)
      : [make("span", { class: "muted" }, search.value ? "No class has this in its name" : "All classes are in the order")]));
    [list.scrollTop, chips.scrollTop] = scrolled;
    note.textContent = still ? "Still picture: run the notebook to change the order" : [label === null ? "" : `${nameOf(label)} is the true class: it cannot be chosen.`,
      full() ? "The order is full." : "", "Drag to reorder; keys: Shift with ↑ or ↓ moves, Delete removes."].filter(Boolean).join(" ");
  }
  for (const name of ["value", "class_names", "label", "max_length", "caption"]) on(name, () => refresh());
  const observer = new ResizeObserver(() => root.classList.toggle("narrow", root.clientWidth < 380));
  observer.observe(root);
  refresh();
  // Without an answer from Python (a stored or exported page) this is a still: no dead controls.
  const connected = (yes) => {
    still = !yes;
    root.dataset.live = yes;
    for (const part of [list, chips, search, clear]) part.inert = still;
    shown = "";
    refresh();
  };
  const lonely = setTimeout(() => connected(false), 2000);
  // An answer may come late, from a busy kernel.
  on("answer", () => { if (get("answer") === view) { clearTimeout(lonely); connected(true); } });
  model.set("hello", view);
  model.save_changes();
  return () => {
    clearTimeout(lonely);
    observer.disconnect();
    window.removeEventListener("pointermove", follow);
    window.removeEventListener("pointerup", lift);
    window.removeEventListener("pointercancel", cancel);
    window.removeEventListener("keydown", escape);
    for (const [name, handler] of watched) if (model.off) model.off(`change:${name}`, handler);
  };
}

export default { render };
