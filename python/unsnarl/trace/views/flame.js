// ---------------------------------------------------------------- stacks

// The lines of a stack, the innermost first.
function linesOf(node) {
  const lines = [];
  for (let at = node; process.nodes[at] && lines.length < 64; at = process.nodes[at][0]) lines.push(process.lines[process.nodes[at][1]]);
  return lines;
}
const placeOf = (node) => linesOf(node).slice(0, 6).join("\n");

// What is nested in what, as boxes: entries have a name, the number of their parent, and their time with and without
// the nested ones. A click makes an entry the root, and back.
const LIGHT = ["var(--io)", "var(--sleeping)"];
function icicle(entries, root, show, tipOf) {
  const frame = element("div", "icicle"), tints = ["#1a7f64", "#2b6cb0", "#7a4fa3", "#9a5b13", "#a13d5b"];
  const children = new Map();
  entries.forEach((entry, at) => { const list = children.get(entry.parent) || []; list.push(at); children.set(entry.parent, list); });
  let deepest = 0;
  const place = (at, left, width, depth) => {
    const entry = entries[at];
    if (width < 0.05) return;
    deepest = Math.max(deepest, depth);
    const box = element("div", "", entry.name);
    Object.assign(box.style, { left: left + "%", width: width + "%", top: depth * 20 + "px", background: entry.tint || tints[depth % tints.length] });
    if (LIGHT.includes(entry.tint)) box.style.color = "var(--ink)";
    box.dataset.tip = tipOf(entry);
    box.addEventListener("click", () => show(at === root ? null : at));
    frame.append(box);
    let x = left;
    for (const child of children.get(at) || []) { const w = width * entries[child].total_ns / (entry.total_ns || 1); place(child, x, w, depth + 1); x += w; }
  };
  const tops = root === null ? children.get(null) || [] : [root], all = tops.reduce((sum, at) => sum + entries[at].total_ns, 0) || 1;
  let x = 0;
  for (const at of tops) { const width = 100 * entries[at].total_ns / all; place(at, x, width, 0); x += width; }
  frame.style.height = (deepest + 1) * 20 + "px";
  return frame;
}

// The time of the shown threads by stack and state, in the selection or in all of the recording: [state, node, time].
function stackTimes() {
  const times = new Map(), add = (state, node, part) => { if (part > 0) times.set(node * 8 + state, (times.get(node * 8 + state) || 0) + part); };
  if (!selected) {
    const shown = new Set(threads.map((thread) => thread.number));
    for (const [thread, state, node, part] of process.stacks) if (shown.has(thread)) add(state, node, part);
    return times;
  }
  for (const thread of threads) {
    const flat = thread.s;
    for (let at = 4 * firstAfter(flat, selected.begin); at < flat.length && flat[at] < selected.end; at += 4) {
      const from = Math.max(flat[at], selected.begin), to = Math.min(flat[at] + flat[at + 1], selected.end);
      const nodes = flat[at + 2] === 0 ? sampledIn(thread.sampled, from, to) : [];
      // A hold whose stack was read from outside is divided among the samples in it.
      if (nodes.length && flat[at + 3] >= FIRST_SAMPLED) for (const node of nodes) add(0, node, (to - from) / nodes.length);
      else add(flat[at + 2], flat[at + 3], to - from);
    }
  }
  return times;
}
const FIRST_SAMPLED = 1 << 20; // nodes from here on come from the sampler: crates/trace/src/samples.rs
function sampledIn(flat, from, to) {
  let low = 0, high = flat.length / 2;
  while (low < high) { const mid = (low + high) >> 1; if (flat[2 * mid] < from) low = mid + 1; else high = mid; }
  const nodes = [];
  for (let at = 2 * low; at < flat.length && flat[at] < to; at += 2) nodes.push(flat[at + 1]);
  return nodes;
}
// The stacks as a tree whose leaves are states.
function flameEntries(times, wanted) {
  const entries = [], numbers = new Map();
  const entryOf = (parent, name, tint) => {
    const key = `${parent}\n${name}`;
    if (!numbers.has(key)) { numbers.set(key, entries.length); entries.push({ name, parent, total_ns: 0, self_ns: 0, tint }); }
    return numbers.get(key);
  };
  for (const [key, part] of times) {
    const state = key % 8;
    if (wanted !== "" && String(state) !== wanted) continue;
    let at = null;
    for (const line of linesOf(Math.floor(key / 8)).reverse()) { at = entryOf(at, shortLine(line)); entries[at].total_ns += part; }
    at = entryOf(at, at === null ? `${WORDS[state]}, no line known` : WORDS[state], `var(--${STATES[state]})`);
    entries[at].total_ns += part;
    entries[at].self_ns += part;
  }
  return entries;
}
function shortLine(line) {
  const [, file, number, name] = /^(.*):(\d+) in (.*)$/s.exec(line) || [];
  return name === undefined ? line : `${name} (${file.split("/").pop()}:${number})`;
}
function showFlame(root = null) {
  const entries = flameEntries(stackTimes(), $("flame-state").value), all = entries.filter((one) => one.parent === null).reduce((sum, one) => sum + one.total_ns, 0);
  const share = (part) => `${time(part)} (${(100 * part / (all || 1)).toFixed(1)} %)`;
  const words = `${selected ? `${time(selected.end - selected.begin)} from ${time(selected.begin)}` : "the whole recording"}, ${count(threads.length)} threads: ${time(all)}`;
  $("flame").dataset.all = Math.round(all);
  body("flame").replaceChildren(element("p", "quiet", words),
    entries.length ? icicle(entries, root, showFlame, (one) => `${one.name}\n${share(one.total_ns)}`) : element("p", "quiet", "no time of this kind"));
}
$("flame-state").append(Object.assign(element("option", "", "all time"), { value: "" }), ...WORDS.map((word, state) => Object.assign(element("option", "", word), { value: String(state) })));
$("flame-state").addEventListener("input", () => showFlame());

