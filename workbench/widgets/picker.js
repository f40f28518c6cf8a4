// Picker in the browser: a grid of toggle buttons with a picture each. The arrow keys move between
// them and Space or Enter presses one, so that the whole grid is one stop of the Tab key.

const CSS = `
.wp { font: 11px/1.3 system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; width: 100%;
  color: var(--jp-ui-font-color1, #1f2933); display: grid; gap: 4px;
  grid-template-columns: repeat(auto-fill, minmax(46px, 1fr)); }
.wp button { font: inherit; color: inherit; position: relative; padding: 3px; cursor: pointer;
  border: 2px solid transparent; border-radius: 6px; background: none; text-align: center; min-width: 0; }
.wp img { display: block; width: 100%; image-rendering: pixelated; border-radius: 3px;
  box-sizing: border-box; border: 1px solid #b8c0ca; }
.wp span { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.wp button:hover { border-color: #b8c0ca; }
.wp button[aria-pressed=true] { border-color: #d55e00; }
.wp button[aria-pressed=true]::after { content: "✓"; position: absolute; top: 0; right: 0; width: 16px;
  height: 16px; line-height: 16px; border-radius: 8px; background: #d55e00; color: #fff; font-weight: 700; }
.wp button.marked img { opacity: 0.3; }
.wp button.marked::before { content: "✕"; position: absolute; inset: 3px 3px 18px; display: grid;
  place-items: center; font-size: 22px; color: #1f2933; z-index: 1; }
.wp :focus-visible { outline: 2px solid #0072b2; outline-offset: 1px; }
`;

function render({ model, el }) {
  const get = (name) => model.get(name);
  const style = document.createElement("style"), root = document.createElement("div");
  style.textContent = CSS;
  root.className = "wp";
  root.setAttribute("role", "group");
  el.append(style, root);
  let buttons = [], stop = 0;

  function press(k) {
    const chosen = get("chosen"), there = chosen.includes(k);
    const rest = get("single") ? [] : chosen.filter((other) => other !== k);
    model.set("chosen", there ? rest : [...rest, k].sort((a, b) => a - b));
    model.save_changes();
    show();
  }

  function show() {
    const chosen = get("chosen"), marks = get("marks");
    buttons.forEach((button, k) => {
      button.setAttribute("aria-pressed", String(chosen.includes(k)));
      button.classList.toggle("marked", marks.includes(k));
      button.setAttribute("aria-label", get("names")[k] + (marks.includes(k) ? `, ${get("marked")}` : ""));
    });
  }

  function rest(k) {
    if (buttons[stop]) buttons[stop].tabIndex = -1;
    stop = k;
    buttons[k].tabIndex = 0;
  }

  function build() {
    const pictures = get("pictures"), names = get("names");
    root.setAttribute("aria-label", get("caption"));
    if (pictures.length !== names.length) return; // the other list of a change is on its way
    buttons = pictures.map((address, k) => {
      const button = document.createElement("button");
      const image = document.createElement("img"), name = document.createElement("span");
      button.type = "button";
      button.tabIndex = -1;
      image.src = address;
      image.alt = "";
      name.textContent = names[k];
      button.append(image, name);
      button.addEventListener("click", () => { rest(k); press(k); });
      return button;
    });
    root.replaceChildren(...buttons);
    stop = 0;
    if (buttons.length) rest(0);
    show();
  }

  root.addEventListener("keydown", (event) => {
    const across = Math.max(1, getComputedStyle(root).gridTemplateColumns.split(" ").length);
    const to = { ArrowLeft: stop - 1, ArrowRight: stop + 1, ArrowUp: stop - across, ArrowDown: stop + across,
      Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (!buttons[to]) return;
    rest(to);
    buttons[to].focus();
  });

  // Several settings arrive as several events: build once for all of them.
  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    queueMicrotask(() => { waiting = false; build(); });
  };
  const heard = { pictures: later, names: later, caption: later, chosen: show, marks: show };
  for (const [name, what] of Object.entries(heard)) model.on(`change:${name}`, what);
  build();
  return () => {
    for (const [name, what] of Object.entries(heard)) if (model.off) model.off(`change:${name}`, what);
  };
}

export default { render };
