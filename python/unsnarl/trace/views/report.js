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
    const place = placeOf(flat[at + 3]);
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
  if (imports.length) parts.push(icicle(imports, root, showStart, (i) => `${i.name}\nitself ${time(i.self_ns)}, with all it imports ${time(i.total_ns)}`), table(["slowest modules themselves", "#self", "#with all it imports"],
    [...imports].sort((a, b) => b.self_ns - a.self_ns).slice(0, 15).map((i) => [i.name, time(i.self_ns), time(i.total_ns)])));
  if (start.calls.length) parts.push(table(["file-system calls while importing", "#calls", "#time"], start.calls.map((c) => [c.name, count(c.calls), time(c.time_ns)])));
  fill("start", ...parts);
}
