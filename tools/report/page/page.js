// The page: its parts in their order.

// Which steps curves show, and how; it stays in sight while they are zoomed.
function steps() {
  const all = el("button", { type: "button", class: "small", onclick: () => zoomTo(null) }, "all steps");
  const log = chosen(state.logSteps, "log steps", { title: "logarithmic scale of steps", onclick: () => {
    state.logSteps = !state.logSteps;
    log.setAttribute("aria-pressed", String(state.logSteps));
    zoomTo(state.zoom);
  } });
  const said = el("span", {});
  const bar = el("div", { class: "zoom", role: "group", "aria-label": "steps of the curves" }, said, all, log);
  const tell = () => {
    said.textContent = state.zoom ? `steps ${state.zoom[0]} to ${state.zoom[1]}` : "Drag across a curve to zoom all of them.";
    all.hidden = !state.zoom;
    bar.classList.toggle("zoomed", !!state.zoom);
  };
  zoomed.push(tell);
  tell();
  return bar;
}
document.title = (names.length > 3 ? `${names.length} runs` : names.join(", ")) + " · hecate";
page.replaceChildren(...[head(), steps(), learning(), objectives(), speed(), balance(), routers(), layerParts(), settings()].flat().filter(Boolean));
paintAll(page);
steer();
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  paintAll(page);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { paintAll(page); steer(); });
