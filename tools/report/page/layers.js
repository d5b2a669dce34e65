// Layers, experts and ranks at the step of the slider, and each layer's router over all steps.

const withShots = () => runs.filter((run) => run.snapshots.length);
const snapshot = (i) => {
  const list = runs[i].snapshots, end = most(withShots().map((run) => run.snapshots.at(-1).step)), begin = least(withShots().map((run) => run.snapshots[0].step));
  const wanted = begin + state.part * (end - begin);
  return list.length ? list.reduce((a, b) => (Math.abs(b.step - wanted) < Math.abs(a.step - wanted) ? b : a)) : null;
};
const layersOf = (shot) => (shot && shot.layers && shot.layers[state.set]) || null;
const layerOf = (i) => { const layers = layersOf(snapshot(i)); return layers && layers[state.layer]; };
const loadsOf = (shot) => (shot && shot.tokens_per_expert && shot.tokens_per_expert[state.set]) || null;
function chooseLayer(l) { state.layer = l; steer(); }
function chooseStep(step) {
  const end = most(withShots().map((run) => run.snapshots.at(-1).step)), begin = least(withShots().map((run) => run.snapshots[0].step));
  state.part = end > begin ? (step - begin) / (end - begin) : 1;
  steer();
}

// ---- routers over all steps

function routerOf(tokens) {
  const all = sum(tokens), shares = tokens.filter((n) => n > 0).map((n) => n / all);
  return { load: all ? (most(tokens) * tokens.length) / all : 1, dead: tokens.filter((n) => n === 0).length,
    entropy: tokens.length > 1 && all ? -sum(shares.map((s) => s * Math.log(s))) / Math.log(tokens.length) : 1 };
}
// [{step, load, entropy, dead}], a list of layers each; of older logs by their loads.
function routerSteps(i) {
  const told = runs[i].routers.map((line) => ({ step: line.step, ...(line.of[state.set] || {}) })).filter((line) => Array.isArray(line.load) && line.load.length);
  if (told.length) return told;
  return runs[i].snapshots.filter(loadsOf).map((shot) => {
    const layers = loadsOf(shot).map(routerOf);
    return { step: shot.step, load: layers.map((l) => l.load), entropy: layers.map((l) => l.entropy), dead: layers.map((l) => l.dead) };
  });
}
function routerMap(i) {
  const steps = routerSteps(i);
  if (!steps.length) return null;
  const experts = ((runOf(i).sets || {})[state.set] || {}).experts || (loadsOf(runs[i].snapshots.at(-1)) || [[]])[0].length || 1;
  const color = { load: (x) => heat(x), entropy: (x) => alarm(1 - x), dead: (x) => alarm(x / experts) }[state.metric];
  const text = (s, l) => `load ${show(s.load[l])}×, entropy ${show(s.entropy[l])}, ${s.dead[l]} of ${experts} experts dead`;
  return matrix({ name: `${state.metric} of each layer's router over the steps`, rows: steps[0].load.length, columns: steps.length, row: state.layer,
    color: (l, s) => (steps[s][state.metric][l] === undefined ? null : color(steps[s][state.metric][l])), tell: (l, s) => `layer ${l}, step ${steps[s].step}: ${text(steps[s], l)}`,
    rowName: (l) => l, columnName: (s) => show(steps[s].step, 4), click: chooseLayer }, { height: 340, square: 40 });
}
function metrics() {
  return el("div", { class: "choice", role: "group", "aria-label": "of a router" }, ["load", "entropy", "dead"].map((name) =>
    chosen(state.metric === name, { load: "load", entropy: "entropy", dead: "dead experts" }[name], { onclick: (event) => {
      state.metric = name;
      for (const button of event.currentTarget.parentNode.children) button.setAttribute("aria-pressed", String(button === event.currentTarget));
      steer();
    } })));
}
function expertsOverTime(i) {
  const shots = runs[i].snapshots.filter((shot) => (loadsOf(shot) || [])[state.layer]);
  if (shots.length < 2) return null;
  const rows = shots.map((shot) => loadsOf(shot)[state.layer]), means = rows.map((row) => sum(row) / row.length || 1);
  return matrix({ name: `tokens of each expert of layer ${state.layer} over the steps`, rows: rows[0].length, columns: shots.length, column: shots.indexOf(snapshot(i)),
    color: (e, s) => heat(rows[s][e] / means[s]), tell: (e, s) => `expert ${e}, step ${shots[s].step}: ${rows[s][e]} tokens, ${(rows[s][e] / means[s]).toFixed(2)} × the mean`,
    rowName: (e) => e, columnName: (s) => show(shots[s].step, 4), click: (_, s) => chooseStep(shots[s].step) }, { height: 384, square: 40 });
}

// ---- at one step

function loadMap(i) {
  const shot = snapshot(i), loads = loadsOf(shot);
  if (!loads) return el("p", {}, "This log has no loads (--set log.loads=N).");
  const means = loads.map((row) => sum(row) / row.length || 1);
  return matrix({ name: `tokens of ${loads[0].length} experts in ${loads.length} layers at step ${shot.step}`, rows: loads.length, columns: loads[0].length, row: state.layer,
    color: (l, e) => heat(loads[l][e] / means[l]), tell: (l, e) => `layer ${l}, expert ${e}: ${loads[l][e]} tokens, ${(loads[l][e] / means[l]).toFixed(2)} × the mean`,
    rowName: (l) => l, columnName: (e) => e, click: chooseLayer }, { height: 300 });
}
function placementMap(i) {
  const shot = snapshot(i), layer = layerOf(i);
  if (!layer) return el("p", {}, "Every rank has all experts of this run.");
  const loads = loadsOf(shot)[state.layer], mean = sum(loads) / loads.length || 1, copies = new Set(layer.replicas.map(([e, r]) => e + " " + r));
  const held = (r, e) => (layer.owner[e] === r ? "owns" : copies.has(e + " " + r) ? "has a copy of" : null);
  const own = css("rest"), copy = css("after"), none = css("faint");
  return matrix({ name: `who holds which expert of layer ${state.layer} at step ${shot.step}: ` + words(shot, state.layer), rows: layer.before.length, columns: layer.owner.length,
    color: (r, e) => ({ owns: own, "has a copy of": copy })[held(r, e)] || none, rowName: (r) => r, columnName: (e) => e,
    tell: (r, e) => `rank ${r} ${held(r, e) || "does not hold"} expert ${e}, ${(loads[e] / mean).toFixed(2)} × the mean` }, { height: 300 });
}
// One scale for all runs.
const highest = (of) => most([0, ...shown().map((i) => layersOf(snapshot(i))).filter(Boolean).map((layers) => of(layers) || 0)]);
function loadBars(i) {
  const layer = layerOf(i);
  if (!layer) return null;
  return bars(`rows of each rank in layer ${state.layer}, by owners and as placed`, layer.before.map((n, r) => ({ name: r,
    groups: [[[n, "before", "by owners"]], [[layer.after[r], "after", "as placed"]]] })), (x) => show(x), sum(layer.after) / layer.after.length,
    highest((other) => other[state.layer] && most(other[state.layer].before)));
}
function layerBars(i) {
  const layers = layersOf(snapshot(i));
  if (!layers) return null;
  return bars("the fullest rank over the mean, layer by layer", layers.map((layer, l) => ({ name: l, strong: l === state.layer,
    groups: [[[imbalance(layer.before), "before", "by owners"]], [[imbalance(layer.after), "after", "as placed"]]] })), (x) => Number(x.toFixed(2)) + "×", 1,
    highest((other) => most(other.map((layer) => imbalance(layer.before)))), chooseLayer);
}
function exposedBars(i) {
  const layers = layersOf(snapshot(i));
  if (!layers || !layers.some((layer) => layer.exposed_ms > 0)) return null;
  return bars("waited for experts to move, layer by layer", layers.map((layer, l) => ({ name: l, strong: l === state.layer,
    groups: [[[layer.exposed_ms, "wait", "waited"]]] })), milliseconds, 0, 0, chooseLayer);
}
function rankBars(i) {
  const shot = snapshot(i);
  if (!shot || !shot.ranks || !shot.ranks.length) return null;
  return bars("where the time of each rank goes", shot.ranks.map((rank, r) => {
    const other = Math.max(rank.waited_ms - rank.exposed_ms - rank.late_ms, 0);
    return { name: r, strong: shot.watch && shot.watch.slowest === r, groups: [[[Math.max(rank.ms - rank.waited_ms, 0), "run0", "computes"],
      [rank.exposed_ms, "wait", "waits for experts"], [rank.late_ms, "run3", "waits for late ranks"], [other, "late", "waits for rows, counts, sums"]]] };
  }), milliseconds);
}
function memoryBars(i) {
  const shot = snapshot(i);
  if (!shot || !shot.ranks || shot.ranks.length < 2) return null;
  return bars("memory of each rank", shot.ranks.map((rank, r) => ({ name: r, groups: [[[rank.memory, "rest", "memory"]]] })), bytes);
}
function slowBars(i) {
  const counts = runs[i].slowest;
  if (counts.length < 2) return null;
  return bars("how often the others waited for each rank", counts.map((n, r) => ({ name: r, groups: [[[n / sum(counts), "run1", "slowest in"]]] })), finePercent);
}

// The plan of a layer as sentences.
function words(shot, l) {
  const layer = layersOf(shot)[l], loads = loadsOf(shot)[l], mean = sum(loads) / loads.length || 1;
  const holders = new Map();
  for (const [expert, rank] of layer.replicas) holders.set(expert, [...(holders.get(expert) || []), rank]);
  const told = [...holders].sort((a, b) => loads[b[0]] - loads[a[0]]).slice(0, 4).map(([expert, ranks]) =>
    `expert ${expert} (${(loads[expert] / mean).toFixed(1)} × the mean) of rank ${layer.owner[expert]} is also on ${ranks.length > 4 ? ranks.length + " more ranks" : "rank" + (ranks.length > 1 ? "s " : " ") + ranks.join(", ")}`);
  const more = holders.size - told.length;
  const plan = told.length ? told.join("; ") + (more > 0 ? `; ${more} more experts have copies` : "") : "owners alone compute";
  const calibrated = layer.calibrated && layer.calibrated.taken ? `; the exact counts asked for more copies, worth ${milliseconds(layer.calibrated.gain_ms)} for ${milliseconds(layer.calibrated.price_ms)}` : "";
  const dropped = layer.dropped ? `; ${layer.dropped} rows were dropped` : "", waves = layer.waves > 1 ? `; ${layer.waves} waves` : "";
  return `${plan}. The fullest rank has ${imbalance(layer.before).toFixed(2)} × the mean by owners, ${imbalance(layer.after).toFixed(2)} × as placed${calibrated}${dropped}${waves}.`;
}
function plan(i) {
  const shot = snapshot(i), layers = layersOf(shot);
  if (!layers || !layers[state.layer]) return null;
  const others = layers.map((_, l) => l).filter((l) => l !== state.layer);
  return el("div", { class: "words" }, el("p", {}, el("b", {}, `Layer ${state.layer}: `), words(shot, state.layer)),
    others.length ? el("details", {}, el("summary", {}, "the other layers"), el("ul", {}, others.map((l) => el("li", {}, el("b", {}, `Layer ${l}: `), words(shot, l))))) : null);
}

// ---- the parts, for each run that is shown, made anew where the slider moves

const steered = [];
let steer = () => { keep(); steered.forEach((draw) => draw()); };
function sides(title, text, of, ...above) {
  const pair = el("div", { class: "pair" }), whole = section(title, text, above, pair);
  steered.push(() => {
    const made = runs.map((_, i) => {
      if (state.hidden[i]) return null;
      try { return of(i); } catch (fault) { return el("p", {}, "The log has a fault in this step: " + fault.message); }
    });
    whole.hidden = made.every((inside) => !inside);
    pair.replaceChildren(...made.map((inside, i) => inside && el("div", { class: "side" }, runs.length > 1 ? el("h3", {}, label(i)) : null, inside)).filter(Boolean));
    paintAll(pair);
  });
  return whole;
}
function setsOf() {
  const sets = [...runs.flatMap((run) => run.snapshots.slice(0, 1).flatMap((shot) => Object.keys(shot.tokens_per_expert))), ...runs.flatMap((run) => run.routers.slice(0, 1).flatMap((line) => Object.keys(line.of)))];
  return [...new Set(sets)];
}
const layersThere = () => most([1, ...runs.map((_, i) => (loadsOf(snapshot(i)) || []).length), ...runs.map((_, i) => (routerSteps(i)[0] || { load: [] }).load.length)]);
function controls(sets) {
  const most_ = most([2, ...runs.map((run) => run.snapshots.length)]) - 1, any = withShots().length > 0;
  const output = el("output", {}), layer = el("select", { "aria-label": "layer", onchange: () => chooseLayer(Number(layer.value)) });
  const slider = el("input", { type: "range", min: 0, max: most_, value: Math.round(state.part * most_), "aria-label": "step", oninput: () => { state.part = slider.value / most_; steer(); } });
  const fill = () => layer.replaceChildren(...Array.from({ length: layersThere() }, (_, l) => el("option", { value: l }, "layer " + l)));
  const set = sets.length > 1 ? el("select", { "aria-label": "experts", onchange: () => { state.set = set.value; state.layer = 0; fill(); steer(); } },
    sets.map((name) => el("option", { selected: name === state.set ? "" : null }, name))) : null;
  let playing = 0;
  const play = el("button", { type: "button", onclick: () => {
    if (playing) { clearInterval(playing); playing = 0; play.textContent = "Play"; return; }
    if (Number(slider.value) === most_) slider.value = 0;
    play.textContent = "Stop";
    playing = setInterval(() => {
      slider.value = Number(slider.value) + 1;
      state.part = slider.value / most_;
      if (Number(slider.value) === most_) play.click();
      steer();
    }, 220);
  } }, "Play");
  fill();
  if (state.layer >= layersThere()) state.layer = 0;
  steered.unshift(() => {
    const shot = runs.map((_, i) => snapshot(i)).find(Boolean);
    output.textContent = shot ? "step " + shot.step : "";
    slider.value = Math.round(state.part * most_);
    layer.value = state.layer;
  });
  return el("div", { class: "steer", role: "group", "aria-label": "step and layer of the parts below" },
    any ? el("label", { class: "time" }, play, slider, output) : null, set, layer);
}
function layerParts() {
  const sets = setsOf(), hint = "Train with --set log.loads=N to see the experts of each layer, and who held which.";
  if (!sets.length) return [section("Layers", "This log has no loads of layers. " + hint)];
  if (!sets.includes(state.set)) state.set = sets[0];
  const two = () => keys(["by owners", "var(--before)", "box"], ["as placed", "var(--after)", "box"]);
  const many = runs.length > 1, place = (...inside) => el("div", { class: many ? "stack" : "two" }, inside);
  const over = sides("Each layer's router over the steps", "One row a layer; red is uneven. A click chooses a layer.", routerMap, metrics());
  if (!withShots().length) return [controls(sets), over, section("Layers", hint)];
  return [controls(sets),
    place(over, sides("Load of experts over the steps", "In the chosen layer, one row an expert: red has more than the mean, blue less. A click chooses a step.", expertsOverTime)),
    place(sides("Router's choices", "Tokens of each expert, one row a layer: red has more than the mean, blue less. A click chooses a layer.", loadMap),
      sides("Holders of experts", "One row a rank, in the chosen layer.", placementMap,
        keys(["owner", "var(--rest)", "box"], ["copy for this iteration", "var(--after)", "box"]))),
    place(sides("Rows of each rank", "In the chosen layer. The line is the mean, where all ranks end together.", loadBars, two()),
      sides("Balance of each layer", "The fullest rank over the mean.", layerBars, two()),
      sides("Where a step's time goes", "By rank; the one in bold waited least: the others waited for it.", rankBars,
        keys(["computes", "var(--run0)", "box"], ["waits for experts", "var(--wait)", "box"], ["for late ranks", "var(--run3)", "box"], ["for rows, counts, sums", "var(--late)", "box"])),
      sides("Communication that nothing hides", "Mean wait of a rank for transfers of the experts of each layer.", exposedBars),
      sides("Stragglers", "The share of all steps in which the others waited for this rank.", slowBars),
      sides("Memory of the ranks", "The most that each has had.", memoryBars)),
    sides("The plan in words", null, plan)];
}
