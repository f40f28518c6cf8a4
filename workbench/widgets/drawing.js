// Drawing in the browser: shows a piece of HTML, drawn once a frame at most, and says hello.

function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "wd";
  el.append(root);
  let queued = false;
  const draw = () => { root.innerHTML = model.get("html"); };
  const schedule = () => {
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => { queued = false; draw(); });
  };
  model.on("change:html", schedule);
  draw();
  model.set("hello", Math.random().toString(36).slice(2));
  model.save_changes();
  return () => { if (model.off) model.off("change:html", schedule); };
}

export default { render };
