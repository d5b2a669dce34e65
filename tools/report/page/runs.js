// Heads of runs, their settings, and curves of all steps.

const policies = { fssdp: "FSSDP", hecate: "FSSDP of the paper", ep: "expert parallelism", replicate: "every rank has all experts", none: "one rank" };
const runOf = (i) => runs[i].run || {};
const policy = (i) => policies[runOf(i).policy] || runOf(i).policy || "";
const distinct = (list) => new Set(list).size === list.length;
const names = (() => {
  const files = runs.map((run) => run.path.split("/").pop().replace(/\.jsonl$/, ""));
  if (runs.length === 1) return [runOf(0).program || runs[0].path];
  const words = runs.map((_, i) => policy(i));
  if (words.every(Boolean) && distinct(words)) return words;
  if (distinct(files)) return files;
  return distinct(runs.map((run) => run.path)) ? runs.map((run) => run.path) : files.map((file, i) => `${file} (${i + 1})`);
})();
function label(i) { return names[i]; }

function about(i) {
  const run = runOf(i);
  const devices = run.ranks > 1 ? `${run.ranks} ranks on ${run.nodes} node${run.nodes > 1 ? "s" : ""}` : run.ranks ? "1 rank" : null;
  const parts = [run.program, devices, run.ranks > 1 ? policy(i) : null, run.precision, run.device === "host" ? run.instructions : run.device,
    run.threads ? `${run.threads} thread${run.threads > 1 ? "s" : ""}${run.ranks > 1 ? " each" : ""}` : null, run.tokens ? show(run.tokens) + " tokens a step" : null,
    `${runs[i].rows} of ${run.steps || "?"} steps`];
  return parts.filter(Boolean).join(" · ");
}

// ---- the head

const mfu = (run) => (run.run && run.run.peak && run.steps.flops ? run.steps.flops.map((f) => (f === null ? null : f / (run.run.peak * run.run.ranks))) : null);
const facts = [
  ["loss, last step", (r) => show(last(r.steps.loss), 4)],
  ["validation loss, last", (r) => show(last(r.steps.val_loss), 4)],
  ["tokens a second", (r) => show(median(r.steps.tokens_per_s))],
  ["a step", (r) => milliseconds(median(r.steps.ms))],
  ["of the peak (MFU)", (r) => percent(median(mfu(r)))],
  ["fullest rank, by owners", (r) => times(median(r.steps.before))],
  ["fullest rank, as placed", (r) => times(median(r.steps.after))],
  ["time waited for others", (r) => percent(median(r.steps.waited))],
  ["replicas", (r) => show(median(r.steps.replicas))],
  ["fullest expert", (r) => times(median(r.steps.router_load))],
  ["dead experts, last step", (r) => show(last(r.steps.router_dead))],
  ["memory of the fullest rank", (r) => bytes(r.steps.memory ? most(known(r.steps.memory)) : null)],
];
function summary() {
  const rows = facts.map(([name, of]) => [name, runs.map(of)]).filter(([, values]) => values.some((v) => v !== "–"));
  if (runs.length === 1) return el("div", { class: "tiles" }, rows.map(([name, [value]]) => el("div", { class: "tile" }, el("b", {}, value), el("span", {}, name))));
  return el("div", { class: "scroll" }, el("table", { class: "summary" },
    el("thead", {}, el("tr", {}, el("th", {}, "medians over the steps"), runs.map((_, i) => el("th", { scope: "col" }, label(i))))),
    el("tbody", {}, rows.map(([name, values]) => el("tr", {}, el("th", { scope: "row" }, name), values.map((v) => el("td", {}, v)))))));
}
// Runs that are switched off are not drawn; one stays.
function legend() {
  return el("div", { class: "runs" }, runs.map((_, i) => {
    if (runs.length === 1) return el("p", {}, about(i));
    const button = el("button", { type: "button", class: "run", "aria-pressed": String(!state.hidden[i]), title: "shows or hides this run", onclick: () => {
      const hides = !state.hidden[i];
      if (hides && shown().length === 1) return;
      if (hides) state.hidden[i] = true; else delete state.hidden[i];
      button.setAttribute("aria-pressed", String(!hides));
      keep();
      zoomed.forEach((redraw) => redraw());
      steer();
    } }, line(runColor(i), dashes[i % 8]), el("b", {}, label(i)));
    return el("p", {}, button, " ", about(i));
  }));
}
// Routers whose fullest expert has nearly all tokens of a layer.
function collapsed(run) {
  const lines = run.routers.at(-1), sets = (run.run || {}).sets || {};
  return Object.entries((lines && lines.of) || {}).flatMap(([name, of]) => {
    const set = sets[name], limit = set && set.experts >= 2 * set.topk ? set.experts / set.topk : Infinity;
    const layers = (Array.isArray(of.load) ? of.load : []).flatMap((load, l) => (load >= 0.95 * limit ? [l] : []));
    return layers.length ? [`the router of ${name} has collapsed in layer${layers.length > 1 ? "s" : ""} ${layers.join(", ")}: one expert got nearly all tokens of step ${lines.step}`] : [];
  });
}
function head() {
  const notes = runs.flatMap((run) => [...run.repairs, ...collapsed(run)].map((text) => `${run.path}: ${text}.`));
  const title = names.length > 1 ? names.slice(0, -1).join(", ") + " and " + names.at(-1) : names[0];
  return [el("header", {}, el("h1", {}, title), legend()),
    notes.length ? el("div", { class: "note", role: "note" }, notes.map((text) => el("div", {}, text))) : null,
    runs.length > 1 ? section("Runs side by side", null, el("div", { class: "pair" }, summary(), differences())) : summary()];
}

// ---- settings

const headers = ["program", "version", "policy", "precision", "ranks", "nodes", "device", "instructions", "threads", "tokens", "steps", "from", "host"];
const settingsOf = (i) => without("log.jsonl", { ...Object.fromEntries(headers.filter((key) => runOf(i)[key] !== undefined).map((key) => [key, String(runOf(i)[key])])), ...(runOf(i).settings || {}) });
function without(key, { [key]: _, ...others }) { return others; } // A file's name tells nothing of a run.
function table(keysOf, of) {
  return el("div", { class: "scroll" }, el("table", { class: "settings" }, el("tbody", {}, keysOf.map((key) =>
    el("tr", {}, el("th", { scope: "row" }, key), of.map((settings) => el("td", {}, settings[key] === undefined ? "–" : settings[key] === "" ? "\"\"" : settings[key])))))));
}
function differences() {
  const all = runs.map((_, i) => settingsOf(i)), every = [...new Set(all.flatMap((settings) => Object.keys(settings)))];
  if (!every.length) return null;
  const differ = every.filter((key) => new Set(all.map((settings) => settings[key])).size > 1), same = every.filter((key) => !differ.includes(key));
  return el("div", {}, el("h3", {}, "Settings that differ"),
    differ.length ? table(differ, all) : el("p", {}, "None: all settings are equal."),
    el("details", {}, el("summary", {}, `${same.length} that all have`), table(same, [all[0]])));
}
function settings() {
  const own = settingsOf(0);
  if (runs.length > 1 || !Object.keys(own).length) return null;
  return el("section", {}, el("details", {}, el("summary", {}, "Settings"), table(Object.keys(own), [own])));
}

// ---- curves

// Losses by name: each by itself, without its weight.
const lossColors = ["run0", "run1", "run2", "run3", "run4", "run5", "run6", "run7", "ink"];
function parts(run, i) {
  const named = Object.keys(run.steps.losses);
  if (!named.length) return null;
  const series = [["cross_entropy", run.steps.cross_entropy], ...named.map((name) => [name, run.steps.losses[name]])];
  return chart(runs.length > 1 ? "losses, " + label(i) : "losses", series.map(([name, y], k) => ({ name, color: `var(--${lossColors[k]})`, x: run.steps.step, y })),
    { format: (y) => show(y), trim: true, log: true });
}
function learning() {
  const many = runs.length > 1;
  const losses = runs.flatMap((run, i) => [
    { name: many ? label(i) : "training", color: runColor(i), dash: many ? dashes[i % 8] : null, run: i, x: run.steps.step, y: run.steps.loss },
    run.steps.val_loss ? { name: many ? label(i) + ", validation" : "validation", color: many ? runColor(i) : "var(--run1)", run: i, thin: true, x: run.steps.step, y: run.steps.val_loss, dots: true } : null]).filter(Boolean);
  const format = (y) => show(y);
  return section("Learning", null, el("div", { class: "charts" },
    chart("loss", losses, { format: (y) => show(y, 4), trim: true, log: true, words: many && losses.some((s) => s.dots) ? "dots: validation" : null }), curves("gradient norm", "grad_norm", { format, low: 0, trim: true, log: true }),
    curves("learning rate", "lr", { format, low: 0, log: true }), runs.map(parts)));
}
// Rewards of preferences, ratios of rollouts.
function objectives() {
  const format = (y) => show(y);
  const charts = [...runs.map((run, i) => run.steps.chosen ? chart(runs.length > 1 ? "rewards, " + label(i) : "rewards", [
    { name: "chosen", color: "var(--run0)", x: run.steps.step, y: run.steps.chosen },
    { name: "rejected", color: "var(--run1)", x: run.steps.step, y: run.steps.rejected }], { format, trim: true }) : null),
    curves("margin of rewards", "margin", { format, trim: true }), curves("pairs in order", "accuracy", { format: percent, low: 0, high: 1 }),
    curves("advantage", "advantage", { format, trim: true }), curves("ratio of probabilities", "ratio", { format, trim: true }),
    curves("clipped tokens", "clipped", { format: percent, low: 0 }), curves("KL divergence from the old policy", "kl_old", { format, low: 0, trim: true }),
    curves("KL divergence from the reference", "kl", { format, low: 0, trim: true })].filter(Boolean);
  return charts.length ? section("Preferences and rollouts", null, el("div", { class: "charts" }, charts)) : null;
}
function speed() {
  const format = (y) => show(y);
  const charts = [curves("tokens a second", "tokens_per_s", { format, low: 0, log: true }),
    curves("share of the peak (MFU)", mfu, { format: finePercent, low: 0 }),
    curves("time of a step", "ms", { format: milliseconds, low: 0, trim: true, log: true }),
    curves("share of time waited for others", "waited", { format: percent, low: 0 }),
    curves("waited for experts to move", "exposed_ms", { format: milliseconds, low: 0, trim: true }),
    curves("memory of the fullest rank", "memory", { format: bytes, low: 0 })].filter(Boolean);
  return charts.length ? section("Speed and memory", null, el("div", { class: "charts" }, charts)) : null;
}
function balance() {
  const high = most(runs.flatMap((run) => known(run.steps.before)));
  const charts = runs.map((run, i) => run.steps.after ? chart(runs.length > 1 ? label(i) : "rows of the fullest rank over the mean", [
    { name: "if owners computed all", color: "var(--before)", x: run.steps.step, y: run.steps.before },
    { name: "as placed", color: "var(--after)", x: run.steps.step, y: run.steps.after },
  ], { format: (y) => show(y) + "×", low: 1, high, area: true, mark: 1, log: true }) : null).filter(Boolean);
  if (!charts.length) return null;
  const replicas = curves("replicas, all layers", "replicas", { format: (y) => show(y), low: 0 });
  return section("Balance of the ranks", "How much more rows the fullest rank has than the mean, in the worst layer. 1 is perfect: " +
    "all ranks compute equally long. Red is the balance if owners computed all rows; green is the balance as placed.",
    el("div", { class: "charts" }, charts, replicas));
}
function routers() {
  const format = (y) => show(y);
  const charts = [curves("load of the fullest expert, worst layer", "router_load", { format: (y) => show(y) + "×", low: 1, log: true }),
    curves("entropy, worst layer", "router_entropy", { format, low: 0, high: 1 }),
    curves("dead experts, all layers", "router_dead", { format, low: 0 })].filter(Boolean);
  return charts.length ? section("Routers", "Load: tokens of an expert over the mean of its layer; 1 is even. Entropy of the experts' shares: 1 is even, 0 is one expert alone. " +
    "An expert is dead where it gets no token of a step.", el("div", { class: "charts" }, charts)) : null;
}
