"use strict";
// The report's own script. It draws the data embedded in the page, and needs no network.
const DATA = JSON.parse(document.getElementById("data").textContent);
const STATES = ["running", "waiting", "lock", "io", "sleeping", "computing"];
const WORDS = ["running", "waiting for the GIL", "blocked on a lock", "blocked in I/O", "sleeping", "C code without the GIL"];
const ROW = 20, AXIS = 22, LABELS = 150;
const MOST_ROWS_PX = 560; // the canvas is as tall as what is seen of it: browsers draw none beyond 65,535 pixels
const ORDERS = [
  ["start", "in order of their start", () => 0],
  ["name", "by name", (a, b) => a.name.localeCompare(b.name, "en", { numeric: true })],
  ...WORDS.map((word, state) => [STATES[state], `most ${word}`, (a, b) => b.totals[state] - a.totals[state]]),
];
let process = DATA.processes[0], view = null, threads = [], selected = null, marked = null;

const $ = (id) => document.getElementById(id);
const body = (id) => $(id).querySelector(".body");
function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}
function prose(tag, className, text) {
  const made = element(tag, className);
  text.split("`").forEach((part, at) => made.append(at % 2 ? element("code", "", part) : part));
  return made;
}
function time(ns) {
  for (const [size, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]])
    if (Math.abs(ns) >= size) { const v = ns / size; return v.toFixed(v < 10 ? 2 : v < 100 ? 1 : 0) + " " + unit; }
  return Math.round(ns) + " ns";
}
const count = (n) => Number(n).toLocaleString("en-US");
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// ---------------------------------------------------------------- words and tables

function table(heads, rows) {
  const wide = element("div", "wide"), made = element("table"), top = element("tr");
  for (const head of heads) top.append(element("th", head.startsWith("#") ? "n" : "", head.replace("#", "")));
  made.append(top);
  for (const row of rows) {
    const line = element("tr");
    row.forEach((cell, at) => line.append(element("td", heads[at].startsWith("#") ? "n" : "place", cell)));
    made.append(line);
  }
  wide.append(made);
  return wide;
}
function fill(id, ...parts) {
  body(id).replaceChildren(...parts);
  $(id).hidden = parts.length === 0;
}
function showFindings() {
  fill("findings", ...DATA.findings.filter((f) => f.pid === null || f.pid === process.pid).map((finding) => {
    const card = element("div", "finding " + finding.severity);
    card.dataset.kind = finding.kind;
    card.append(prose("strong", "", finding.title));
    if (finding.details.length) {
      const list = element("ul");
      finding.details.forEach((line) => list.append(prose("li", "", line)));
      card.append(list);
    }
    for (const remedy of [finding.remedy, finding.alternative]) {
      if (!remedy) continue;
      const line = element("div", "remedy", remedy.what + (remedy.command ? ": " : " "));
      if (remedy.command) line.append(element("code", "", remedy.command));
      if (remedy.saves_ns) line.append(element("span", "quiet", `, up to ${time(remedy.saves_ns)}`));
      card.append(line);
    }
    if (process.threads.some((thread) => thread.name === finding.thread)) {
      card.classList.add("leads");
      card.tabIndex = 0;
      card.title = "Show it in the timeline";
      card.addEventListener("click", () => goTo(finding));
      card.addEventListener("keydown", (event) => { if (event.key === "Enter") goTo(finding); });
    }
    return card;
  }));
}
// Shows the thread of a finding, and the longest stretch at its line.
function goTo(finding) {
  const thread = process.threads.find((one) => one.name === finding.thread), flat = thread.s;
  let best = -1;
  for (let at = 0; at < flat.length; at += 4) {
    const place = process.places[flat[at + 3]];
    if (finding.place && place && place.split("\n").includes(finding.place) && (best < 0 || flat[at + 1] > flat[best + 1])) best = at;
  }
  marked = thread;
  $("search").value = "";
  choose();
  $("timeline").querySelector(".scroll").scrollTop = Math.max(0, threads.indexOf(thread) * ROW - MOST_ROWS_PX / 3);
  if (best < 0) setView(0, process.length_ns);
  else setView(flat[best] - 2 * flat[best + 1], flat[best] + 3 * flat[best + 1]);
  $("timeline").scrollIntoView({ block: "nearest" });
}
function sumOf(members) {
  return {
    totals: STATES.map((_, state) => members.reduce((sum, thread) => sum + thread.totals[state], 0)),
    longest_wait_ns: Math.max(...members.map((thread) => thread.longest_wait_ns)),
  };
}
function showTotals() {
  const groups = process.groups.map(([label, numbers]) => {
    const members = numbers.map((number) => process.threads[number]);
    return { name: label, members, ...sumOf(members) };
  }).sort((a, b) => b.totals[1] - a.totals[1]).slice(0, 60);
  fill("totals", ...groups.map((group) => {
    if (group.members.length === 1) return totalLine(group);
    const made = element("details", "group"), top = element("summary");
    top.append(totalLine({ ...group, name: `${group.name} (${count(group.members.length)})` }));
    made.append(top);
    made.addEventListener("toggle", () => {
      if (made.open && made.children.length === 1) made.append(...group.members.slice(0, 500).map(totalLine));
    });
    return made;
  }));
}
function totalLine(thread) {
    const line = element("div", "total"), parts = element("div", "parts");
    const all = thread.totals.reduce((sum, part) => sum + part, 0) || 1;
    line.append(Object.assign(element("span", "name", thread.name), { title: thread.name }), parts);
    thread.totals.forEach((part, state) => {
      const piece = element("i");
      piece.style.width = (100 * part / all) + "%";
      piece.style.background = `var(--${STATES[state]})`;
      piece.title = `${WORDS[state]}: ${time(part)} (${(100 * part / all).toFixed(1)} %)`;
      parts.append(piece);
    });
    line.append(element("span", "figures quiet", `waited ${time(thread.totals[1])} · ran ${time(thread.totals[0])} · longest wait ${time(thread.longest_wait_ns)}`));
    return line;
}
function showLocks() {
  const rows = process.locks.map((l) => [l.waits_at, l.thread, l.held, count(l.count), time(l.total_ns), time(l.longest_ns), l.for_work ? "waits for work" : ""]);
  fill("locks", rows.length ? table(["waits at", "thread", "held by, at", "#times", "#total", "#longest", ""], rows)
    : element("p", "quiet", "No thread was blocked on a lock."));
}
function showWakeups() {
  const rows = process.wakeups.map((g) => [g.waiters_to === null ? `${g.waiters_from} and more` : `${g.waiters_from} to ${g.waiters_to}`,
    count(g.waits), count(g.wakeups), (g.wakeups / g.waits).toFixed(1)]);
  fill("wakeups", ...(rows.length ? [table(["others that waited", "#waits", "#wake-ups", "#wake-ups per wait"], rows)] : []));
}
function showSyscalls() {
  const calls = DATA.syscalls, parts = [];
  if (calls.reason) parts.push(element("p", "quiet", calls.reason));
  if (calls.rows.length) parts.push(table(["call", "#calls", "#errors", "#time", "#per call", "threads"],
    calls.rows.map((r) => [r.name, count(r.calls), count(r.errors), time(r.time_ns), time(r.time_ns / r.calls), r.threads])));
  if (calls.known.length) parts.push(table(["known without", "#"], calls.known));
  fill("syscalls", ...parts);
}

// ---------------------------------------------------------------- pictures

function svg(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const name in attributes) made.setAttribute(name, attributes[name]);
  if (text !== undefined) made.textContent = text;
  return made;
}
function showWaits() {
  const bins = process.histogram, last = bins.findLastIndex((n) => n > 0);
  if (last < 0) return fill("waits", element("p", "quiet", "No thread waited for the GIL."));
  const first = bins.findIndex((n) => n > 0), shown = bins.slice(first, last + 1), top = Math.max(...shown);
  const picture = svg("svg", { viewBox: "0 0 440 150", role: "img" }), width = 440 / shown.length;
  shown.forEach((n, at) => {
    const height = n ? Math.max(1.5, 112 * n / top) : 0;
    const bar = svg("rect", { x: at * width + 1, y: 128 - height, width: Math.max(1, width - 2), height, rx: 2, fill: "var(--waiting)" });
    bar.append(svg("title", {}, `below ${time(2 ** (first + at) * 1000)}: ${count(n)} waits`));
    picture.append(bar);
    if (n && width > 24) picture.append(svg("text", { x: (at + .5) * width, y: 124 - height, "text-anchor": "middle" }, n > 9999 ? Math.round(n / 1000) + "k" : n));
    if (at % Math.ceil(60 / width) === 0) picture.append(svg("text", { x: at ? (at + .5) * width : 0, y: 144, "text-anchor": at ? "middle" : "start" }, "<" + time(2 ** (first + at) * 1000)));
  });
  fill("waits", picture);
}
function showRates() {
  const rates = process.rates, perSecond = (list) => list.map((n) => n / (rates.bin_ns / 1e9));
  const lines = [["hand-overs", "running", perSecond(rates.hand_overs)], ["wake-ups", "waiting", perSecond(rates.wakeups)], ["lock waits", "lock", perSecond(rates.lock_waits)]];
  const top = Math.max(1, ...lines.flatMap((line) => line[2]));
  const picture = svg("svg", { viewBox: "0 0 440 150", role: "img" });
  picture.append(svg("line", { x1: 0, x2: 440, y1: 128, y2: 128, stroke: "var(--rule)" }), svg("text", { x: 0, y: 10 }, count(Math.round(top)) + "/s"));
  lines.forEach(([name, tint, values], at) => {
    const points = values.map((value, bin) => `${(bin + .5) * 440 / values.length},${(128 - 112 * value / top).toFixed(1)}`);
    picture.append(svg("polyline", { points: points.join(" "), fill: "none", stroke: `var(--${tint})`, "stroke-width": 1.6, "stroke-linejoin": "round" }));
    picture.append(svg("rect", { x: 90 + at * 110, y: 138, width: 9, height: 9, rx: 2, fill: `var(--${tint})` }), svg("text", { x: 103 + at * 110, y: 146 }, name));
  });
  fill("rates", picture);
}
function showStart(root = null) {
  const start = process.start, imports = process.imports, parts = [];
  const phases = [["interpreter and site", start.before_ns], ["to the first line", start.first_line_ns ? start.first_line_ns - start.before_ns : 0]];
  parts.push(element("p", "quiet", phases.filter((p) => p[1] > 0).map((p) => `${p[0]} ${time(p[1])}`).concat(`${count(new Set(imports.map((i) => i.name)).size)} imports ${time(imports.filter((i) => i.parent === null).reduce((s, i) => s + i.total_ns, 0))}`).join(" · ")));
  if (imports.length) parts.push(icicle(imports, root), table(["slowest modules themselves", "#self", "#with all it imports"],
    [...imports].sort((a, b) => b.self_ns - a.self_ns).slice(0, 15).map((i) => [i.name, time(i.self_ns), time(i.total_ns)])));
  if (start.calls.length) parts.push(table(["file-system calls while importing", "#calls", "#time"], start.calls.map((c) => [c.name, count(c.calls), time(c.time_ns)])));
  fill("start", ...parts);
}
function icicle(imports, root) {
  const frame = element("div", "icicle"), tints = ["#1a7f64", "#2b6cb0", "#7a4fa3", "#9a5b13", "#a13d5b"];
  const children = new Map();
  imports.forEach((entry, at) => { const list = children.get(entry.parent) || []; list.push(at); children.set(entry.parent, list); });
  let deepest = 0;
  const place = (at, left, width, depth) => {
    const entry = imports[at];
    if (width < 0.05) return;
    deepest = Math.max(deepest, depth);
    const box = element("div", "", entry.name);
    Object.assign(box.style, { left: left + "%", width: width + "%", top: depth * 20 + "px", background: tints[depth % tints.length] });
    box.dataset.tip = `${entry.name}\nitself ${time(entry.self_ns)}, with all it imports ${time(entry.total_ns)}`;
    box.addEventListener("click", () => showStart(at === root ? null : at));
    frame.append(box);
    let x = left;
    for (const child of children.get(at) || []) { const w = width * imports[child].total_ns / (entry.total_ns || 1); place(child, x, w, depth + 1); x += w; }
  };
  const tops = root === null ? children.get(null) || [] : [root], all = tops.reduce((sum, at) => sum + imports[at].total_ns, 0) || 1;
  let x = 0;
  for (const at of tops) { const width = 100 * imports[at].total_ns / all; place(at, x, width, 0); x += width; }
  frame.style.height = (deepest + 1) * 20 + "px";
  return frame;
}

// ---------------------------------------------------------------- the timeline

const canvas = document.querySelector("canvas"), pen = canvas.getContext("2d");
const plot = () => { const labels = canvas.clientWidth < 520 ? 80 : LABELS; return { left: labels, width: Math.max(50, canvas.clientWidth - labels) }; };
function setView(begin, end) {
  const all = process.length_ns || 1, width = Math.min(all, Math.max(end - begin, 1000));
  const from = Math.min(Math.max(0, begin), all - width);
  view = { begin: from, end: from + width };
  Object.assign($("timeline").dataset, { begin: Math.round(view.begin), end: Math.round(view.end) });
  $("window").textContent = `${time(view.begin)} – ${time(view.end)}`;
  remember();
  if (parent !== window && !isLed) parent.postMessage({ kind: "unsnarl-view", begin: view.begin, end: view.end }, "*");
  draw();
}
// Within a comparison of two traces, the other one leads.
let isLed = true; // until the page is as its address asks
addEventListener("message", (event) => {
  if (event.source !== parent || !event.data || event.data.kind !== "unsnarl-view") return;
  isLed = true;
  setView(event.data.begin, event.data.end);
  isLed = false;
});
// Keeps what is shown in the address, so that it can be sent and reloaded.
function remember() {
  const state = new URLSearchParams({ pid: process.pid, begin: Math.round(view.begin), end: Math.round(view.end) });
  if ($("search").value) state.set("threads", $("search").value);
  if ($("sort").value !== ORDERS[0][0]) state.set("sort", $("sort").value);
  try { history.replaceState(null, "", "#" + state); } catch { /* too often, or a page without an address */ }
}
function choose() {
  const words = $("search").value.toLowerCase(), order = ORDERS.find((one) => one[0] === $("sort").value) || ORDERS[0];
  threads = process.threads.filter((thread) => thread.name.toLowerCase().includes(words)).sort(order[2]);
  $("shown").textContent = threads.length === process.threads.length ? `${count(threads.length)} threads` : `${count(threads.length)} of ${count(process.threads.length)} threads`;
  $("timeline").dataset.threads = threads.length;
  $("rows").style.height = AXIS + threads.length * ROW + "px";
  showSelection();
}
const scrolled = () => $("timeline").querySelector(".scroll").scrollTop;
// The time of the shown threads in a part of the timeline, by state.
function showSelection() {
  $("selection").hidden = !selected;
  if (!selected) return;
  const sums = STATES.map(() => 0);
  for (const thread of threads) {
    const flat = thread.s;
    for (let at = 4 * firstAfter(flat, selected.begin); at < flat.length && flat[at] < selected.end; at += 4)
      sums[flat[at + 2]] += Math.min(flat[at] + flat[at + 1], selected.end) - Math.max(flat[at], selected.begin);
  }
  const whole = sums.reduce((sum, part) => sum + part, 0) || 1;
  const zoomed = element("button", "", "zoom to it"), dropped = element("button", "", "drop");
  zoomed.addEventListener("click", () => setView(selected.begin, selected.end));
  dropped.addEventListener("click", () => { selected = null; showSelection(); draw(); });
  $("selection").replaceChildren(element("strong", "", `${time(selected.end - selected.begin)} from ${time(selected.begin)}, ${count(threads.length)} threads`),
    ...sums.flatMap((part, state) => part ? [element("span", "", `${WORDS[state]} ${time(part)} (${(100 * part / whole).toFixed(1)} %)`)] : []), zoomed, dropped);
  $("selection").dataset.sums = JSON.stringify(sums.map(Math.round));
}
function zoom(factor, at = (view.begin + view.end) / 2) {
  setView(at - (at - view.begin) * factor, at + (view.end - at) * factor);
}
function firstAfter(flat, moment) { // the first stretch that ends after a moment
  let low = 0, high = flat.length / 4;
  while (low < high) { const mid = (low + high) >> 1; if (flat[4 * mid] + flat[4 * mid + 1] <= moment) low = mid + 1; else high = mid; }
  return low;
}
function draw() {
  const { left, width } = plot(), ratio = devicePixelRatio || 1, top = scrolled();
  const height = Math.min(MOST_ROWS_PX, AXIS + threads.length * ROW);
  canvas.style.height = height + "px";
  canvas.width = canvas.clientWidth * ratio; canvas.height = height * ratio;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, canvas.clientWidth, height);
  pen.font = "12px system-ui, 'DejaVu Sans', sans-serif"; pen.textBaseline = "middle";
  const scale = width / (view.end - view.begin), tints = STATES.map(colour), ink = colour("ink"), quiet = colour("quiet"), rule = colour("rule");
  drawAxis(left, width, scale, quiet, rule, height);
  if (selected) {
    const from = Math.max(left, left + (selected.begin - view.begin) * scale), to = left + (selected.end - view.begin) * scale;
    pen.fillStyle = rule; pen.globalAlpha = .6; pen.fillRect(from, AXIS, Math.max(0, to - from), height); pen.globalAlpha = 1;
  }
  pen.save(); pen.beginPath(); pen.rect(0, AXIS, canvas.clientWidth, height); pen.clip();
  threads.slice(Math.floor(top / ROW), Math.ceil((top + height) / ROW)).forEach((thread, place) => {
    const y = AXIS + (Math.floor(top / ROW) + place) * ROW - top, flat = thread.s;
    if (thread === marked) { pen.fillStyle = rule; pen.fillRect(0, y, left - 4, ROW); }
    pen.fillStyle = ink;
    pen.fillText(fit(thread.name, left - 10), 2, y + ROW / 2);
    for (let at = firstAfter(flat, view.begin); at < flat.length / 4 && flat[4 * at] < view.end; at++) {
      const from = Math.max(left, left + (flat[4 * at] - view.begin) * scale), to = Math.min(left + width, left + (flat[4 * at] + flat[4 * at + 1] - view.begin) * scale);
      pen.fillStyle = tints[flat[4 * at + 2]];
      const low = flat[4 * at + 2] > 2;
      pen.fillRect(from, y + (low ? 6 : 2), Math.max(0.6, to - from), ROW - (low ? 12 : 4));
    }
  });
  pen.restore();
}
function fit(text, width) {
  if (pen.measureText(text).width <= width) return text;
  while (text.length > 1 && pen.measureText(text + "…").width > width) text = text.slice(0, -1);
  return text + "…";
}
function drawAxis(left, width, scale, quiet, rule, height) {
  const rough = 90 / scale, power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  for (let mark = Math.ceil(view.begin / step) * step; mark <= view.end; mark += step) {
    const x = left + (mark - view.begin) * scale;
    pen.fillStyle = rule; pen.fillRect(x, AXIS - 6, 1, height);
    pen.fillStyle = quiet;
    if (x + 60 < left + width) pen.fillText(time(mark), x + 4, 8);
  }
}
function momentAt(event) {
  const { left, width } = plot();
  return view.begin + (event.clientX - canvas.getBoundingClientRect().left - left) / width * (view.end - view.begin);
}
function stretchAt(event) {
  const box = canvas.getBoundingClientRect(), { left, width } = plot();
  const row = Math.floor((event.clientY - box.top - AXIS + scrolled()) / ROW), thread = event.clientY - box.top < AXIS ? undefined : threads[row];
  const moment = momentAt(event);
  if (!thread || event.clientX - box.left < left) return null;
  const at = firstAfter(thread.s, moment), flat = thread.s;
  if (4 * at >= flat.length || flat[4 * at] > moment) return { thread, moment };
  return { thread, moment, begin: flat[4 * at], length: flat[4 * at + 1], state: flat[4 * at + 2], place: process.places[flat[4 * at + 3]] };
}
function tip(event, text) {
  const box = $("tip");
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  box.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8)) + "px";
  box.style.top = (event.clientY + 18 + box.offsetHeight > innerHeight ? event.clientY - box.offsetHeight - 8 : event.clientY + 18) + "px";
}
let drag = null;
canvas.addEventListener("pointerdown", (event) => {
  drag = { x: event.clientX, ...view, from: event.shiftKey ? momentAt(event) : null };
  try { canvas.setPointerCapture(event.pointerId); } catch { /* a pointer that is gone */ }
});
canvas.addEventListener("pointerup", () => { drag = null; });
canvas.addEventListener("pointerleave", () => tip(null, ""));
canvas.addEventListener("pointermove", (event) => {
  if (drag && drag.from !== null) {
    const moments = [drag.from, momentAt(event)].map((at) => Math.min(Math.max(at, view.begin), view.end)).sort((a, b) => a - b);
    selected = { begin: moments[0], end: moments[1] };
    showSelection();
    return draw();
  }
  if (drag) {
    const shift = (drag.x - event.clientX) / plot().width * (drag.end - drag.begin);
    return setView(drag.begin + shift, drag.end + shift);
  }
  const found = stretchAt(event);
  tip(event, !found ? "" : found.length === undefined ? `${found.thread.name}\n${time(found.moment)}: no record`
    : `${found.thread.name}: ${WORDS[found.state]}\n${time(found.length)} from ${time(found.begin)}${found.place ? "\n" + found.place : ""}`);
});
canvas.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  const found = stretchAt(event);
  zoom(event.deltaY > 0 ? 1.25 : 0.8, found ? found.moment : undefined);
}, { passive: false });
canvas.addEventListener("dblclick", (event) => { const found = stretchAt(event); zoom(0.25, found ? found.moment : undefined); });
canvas.addEventListener("keydown", (event) => {
  const span = view.end - view.begin, moves = { ArrowLeft: -0.2, ArrowRight: 0.2 };
  if (event.key in moves) setView(view.begin + moves[event.key] * span, view.end + moves[event.key] * span);
  else if (event.key === "+" || event.key === "=") zoom(0.5);
  else if (event.key === "-") zoom(2);
  else if (event.key === "0") setView(0, process.length_ns);
  else return;
  event.preventDefault();
});
document.addEventListener("pointermove", (event) => {
  if (event.target !== canvas) tip(event, event.target.dataset ? event.target.dataset.tip || "" : "");
});
$("zoom-in").addEventListener("click", () => zoom(0.5));
$("zoom-out").addEventListener("click", () => zoom(2));
$("zoom-all").addEventListener("click", () => setView(0, process.length_ns));
$("sort").append(...ORDERS.map(([value, words]) => Object.assign(element("option", "", words), { value })));
for (const id of ["search", "sort"]) $(id).addEventListener("input", () => {
  $("timeline").querySelector(".scroll").scrollTop = 0;
  choose();
  remember();
  draw();
});
$("timeline").querySelector(".scroll").addEventListener("scroll", () => draw());

// ---------------------------------------------------------------- all of it

function show(chosen) {
  process = chosen;
  selected = marked = null;
  document.title = DATA.title;
  $("command").textContent = process.command;
  $("about").textContent = process.about;
  $("resolution").textContent = process.note;
  [...$("processes").children].forEach((button, at) => button.setAttribute("aria-pressed", DATA.processes[at] === process));
  for (const part of [showFindings, showTotals, showWaits, showRates, showWakeups, showLocks, showSyscalls]) part();
  showStart();
  choose();
  setView(0, process.length_ns);
  document.body.dataset.ready = process.pid;
}
$("legend").append(...STATES.map((state, at) => {
  const key = element("span", "key"), mark = element("i");
  mark.style.background = `var(--${state})`;
  key.append(mark, WORDS[at]);
  return key;
}));
if (DATA.processes.length > 1) $("processes").append(...DATA.processes.map((entry) => {
  const button = element("button", "", `process ${entry.pid}`);
  button.title = entry.command;
  button.addEventListener("click", () => show(entry));
  return button;
}));
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
const wanted = new URLSearchParams(location.hash.slice(1));
$("search").value = wanted.get("threads") || "";
$("sort").value = ORDERS.some((one) => one[0] === wanted.get("sort")) ? wanted.get("sort") : ORDERS[0][0];
show(DATA.processes.find((one) => String(one.pid) === wanted.get("pid")) || process);
if (Number(wanted.get("end")) > Number(wanted.get("begin"))) setView(Number(wanted.get("begin")), Number(wanted.get("end")));
isLed = false;
