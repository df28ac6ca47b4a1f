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
// Begin, length, state and node of each stretch, as stretches.py has encoded them.
function decoded(text) {
  const bytes = atob(text);
  let read = 0, found = 0;
  const number = () => {
    let value = 0, factor = 1, byte;
    do { byte = bytes.charCodeAt(read++); value += (byte & 127) * factor; factor *= 128; } while (byte > 127);
    return value;
  };
  for (let at = 0; at < bytes.length; at++) if (bytes.charCodeAt(at) < 128) found++;
  const flat = new Float64Array(found > 1 ? 2 * (found - 1) : 0), unit = process.unit_ns;
  if (!flat.length) return flat;
  let end = number();
  for (let at = 0; at < flat.length; at += 4) {
    const length = number(), kind = process.kinds[number()];
    flat[at] = end * unit; flat[at + 1] = length * unit; flat[at + 2] = kind[0]; flat[at + 3] = kind[1];
    end += length;
  }
  return flat;
}
const scrolled = () => $("timeline").querySelector(".scroll").scrollTop;
// While a selection is dragged, the flame graph follows at the screen's pace.
let flameIsDue = false;
function showFlameSoon() {
  if (flameIsDue) return;
  flameIsDue = true;
  setTimeout(() => { flameIsDue = false; showFlame(); }, 30);
}
// The time of the shown threads in a part of the timeline, by state.
function showSelection() {
  $("selection").hidden = !selected;
  showFlameSoon();
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
    drawRow(flat, y, left, width, scale, tints, ratio);
  });
  pen.restore();
}
// Draws the stretches of a thread. Those within one pixel share it: the state with most of its time has it.
function drawRow(flat, y, left, width, scale, tints, ratio) {
  const paint = (state, from, to) => {
    const low = state > 2;
    pen.fillStyle = tints[state];
    pen.fillRect(from, y + (low ? 6 : 2), to - from, ROW - (low ? 12 : 4));
  };
  const sums = STATES.map(() => 0);
  let column = -1;
  const flush = () => {
    if (column < 0) return;
    const state = sums.indexOf(Math.max(...sums));
    paint(state, column / ratio, (column + 1) / ratio);
    sums.fill(0);
    column = -1;
  };
  for (let at = 4 * firstAfter(flat, view.begin); at < flat.length && flat[at] < view.end; at += 4) {
    const from = Math.max(left, left + (flat[at] - view.begin) * scale), to = Math.min(left + width, left + (flat[at] + flat[at + 1] - view.begin) * scale);
    const pixel = Math.floor(from * ratio);
    if (pixel !== column) flush();
    if ((to - from) * ratio >= 1) { flush(); paint(flat[at + 2], from, to); continue; }
    column = pixel;
    sums[flat[at + 2]] += to - from + 1e-9;
  }
  flush();
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
  return { thread, moment, begin: flat[4 * at], length: flat[4 * at + 1], state: flat[4 * at + 2], place: placeOf(flat[4 * at + 3]) };
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
  process.threads.forEach((thread, number) => {
    thread.number = number;
    if (typeof thread.s === "string") thread.s = decoded(thread.s);
  });
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
