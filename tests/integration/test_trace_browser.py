"""The report in a real browser: it needs no network, reacts to clicks and zoom, and shows the trace's numbers.

A probe in a copy of the page acts as a reader would and records its observations; headless
Chromium returns the page in that state. Skipped, with the reason, if there is no Chromium.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.test_trace_findings import thread
from tests.unit.test_trace_views import EVIL, process
from unsnarl.trace import report
from unsnarl.trace.comparing import page as comparison_page
from unsnarl.trace.comparing.comparison import compare

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

ENDED = """
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = btoa(unescape(encodeURIComponent(JSON.stringify(seen))));
  document.body.append(out);
})();
</script>
"""

PROBE_OF_MANY = """
<script>
(() => {
  const seen = {}, q = (s) => document.querySelector(s), timeline = q("#timeline"), canvas = q("canvas");
  const ratio = devicePixelRatio || 1, labels = canvas.clientWidth < 520 ? 80 : 150;
  const pixel = (x, y) => [...canvas.getContext("2d").getImageData(x * ratio, y * ratio, 1, 1).data].join();
  const type = (id, value) => { q(id).value = value; q(id).dispatchEvent(new Event("input")); };
  seen.address = [timeline.dataset.begin, timeline.dataset.end, timeline.dataset.threads, q("#search").value].join();
  q("#zoom-all").click();
  type("#search", "");
  seen.all = timeline.dataset.threads;
  seen.height = canvas.height / ratio;
  seen.first = pixel(labels + 20, 32);
  q(".scroll").scrollTop = q(".scroll").scrollHeight;
  q(".scroll").dispatchEvent(new Event("scroll"));
  seen.last = pixel(labels + 20, canvas.height / ratio - 10);
  type("#search", "WORKER-399");
  seen.found = timeline.dataset.threads;
  seen.hash = location.hash;
  type("#sort", "running");
  const box = canvas.getBoundingClientRect(), width = canvas.clientWidth - labels;
  const at = (part, more) =>
    ({ clientX: box.left + labels + part * width, clientY: box.top + 32, bubbles: true, ...more });
  canvas.dispatchEvent(new PointerEvent("pointerdown", at(0, { shiftKey: true })));
  canvas.dispatchEvent(new PointerEvent("pointermove", at(1 / 3)));
  canvas.dispatchEvent(new PointerEvent("pointerup", at(1 / 3)));
  seen.sums = JSON.parse(q("#selection").dataset.sums);
  q("#selection button").click();
  seen.span = timeline.dataset.end - timeline.dataset.begin;
  const finding = [...document.querySelectorAll(".finding.leads")].find((card) => card.dataset.kind === "long-hold");
  finding.click();
  seen.led = [timeline.dataset.begin, timeline.dataset.end, timeline.dataset.threads].join();
  seen.rows = document.querySelectorAll("#totals .body > *").length;
  const group = q("details.group");
  seen.group = group.querySelector(".name").textContent;
  group.open = true;
  setTimeout(() => {
    seen.opened = group.querySelectorAll(":scope > .total").length;
    seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
""" + ENDED.replace("})();", "  }, 200);\n})();")

PROBE_OF_FLAMES = """
<script>
(() => {
  const seen = {}, q = (s) => document.querySelector(s), canvas = q("canvas");
  const boxes = () => Object.fromEntries([...document.querySelectorAll("#flame .icicle div")].map(
    (e) => [e.textContent, parseFloat(e.style.width)]));
  const wait = () => new Promise((resolve) => setTimeout(resolve, 100));
  const labels = canvas.clientWidth < 520 ? 80 : 150, box = canvas.getBoundingClientRect();
  const at = (part) => ({ clientX: box.left + labels + part * (canvas.clientWidth - labels), clientY: box.top + 32,
    bubbles: true, shiftKey: true });
  wait().then(() => {
    seen.all = [q("#flame").dataset.all, boxes()];
    canvas.dispatchEvent(new PointerEvent("pointerdown", at(0)));
    canvas.dispatchEvent(new PointerEvent("pointermove", at(0.5)));
    canvas.dispatchEvent(new PointerEvent("pointerup", at(0.5)));
    return wait();
  }).then(() => {
    seen.selected = [q("#flame").dataset.all, boxes()];
    q("#flame-state").value = "3";
    q("#flame-state").dispatchEvent(new Event("input"));
    seen.io = boxes();
    seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
""" + ENDED.replace("})();", "  });\n})();")

PROBE_OF_TWO = """
<script>
addEventListener("load", () => setTimeout(() => {
  const seen = {}, frames = ["before", "after"].map((id) => document.getElementById(id));
  const inside = (at, s) => frames[at].contentDocument.querySelector(s);
  const span = (at) => inside(at, "#timeline").dataset.end - inside(at, "#timeline").dataset.begin;
  seen.first = [span(0), span(1)];
  inside(0, "#zoom-in").click();
  setTimeout(() => {
    seen.zoomed = [span(0), span(1)];
    document.getElementById("linked").click();
    inside(1, "#zoom-in").click();
    setTimeout(() => {
      seen.apart = [span(0), span(1)];
      seen.worse = [...document.querySelectorAll("#worse li")].map((e) => e.textContent);
      seen.better = [...document.querySelectorAll("#better li")].map((e) => e.textContent);
      seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
""" + ENDED.replace("})();", "    }, 100);\n  }, 100);\n}, 500));")

PROBE = (
    """
<script>
(() => {
  const seen = {}, q = (s) => document.querySelector(s), timeline = q("#timeline"), canvas = q("canvas");
  const span = () => timeline.dataset.end - timeline.dataset.begin;
  seen.ready = document.body.dataset.ready;
  seen.whole = span();
  q("#zoom-in").click(); q("#zoom-in").click();
  seen.zoomed = span();
  const turn = { deltaY: 100, ctrlKey: true, clientX: 400, bubbles: true, cancelable: true };
  canvas.dispatchEvent(new WheelEvent("wheel", turn));
  seen.wheeled = span();
  canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "0" }));
  seen.back = span();
  const box = canvas.getBoundingClientRect();
  const labels = canvas.clientWidth < 520 ? 80 : 150;
  const at = { clientX: box.left + labels + 20, clientY: box.top + 32, bubbles: true };
  canvas.dispatchEvent(new PointerEvent("pointermove", at));
  seen.tip = q("#tip").hidden ? "" : q("#tip").textContent;
  const ratio = devicePixelRatio || 1;
  seen.pixel = [...canvas.getContext("2d").getImageData((labels + 20) * ratio, 32 * ratio, 1, 1).data];
  seen.findings = [...document.querySelectorAll(".finding strong")].map((e) => e.textContent);
  seen.totals = document.querySelectorAll(".total").length;
  seen.icicle = [...document.querySelectorAll("#start .icicle div")].map((e) => e.textContent);
  q("#start .icicle div").click();
  seen.icicleAfterClick = document.querySelectorAll("#start .icicle div").length;
  seen.buttons = [...document.querySelectorAll("nav button")].map((e) => e.textContent);
  const second = document.querySelectorAll("nav button")[1];
  second.click();
  seen.second = document.body.dataset.ready;
  seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  seen.dialogs = window.alerted || 0;
"""
    + ENDED
)


def browser() -> str:
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is in PATH")
    return found


def opened(page: Path, profile: Path, *options: str, fragment: str = "") -> dict[str, Any]:
    """Open a page in the browser, and return the observations of its probe."""
    command = [
        browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}", *options,
        "--virtual-time-budget=4000", "--dump-dom", page.as_uri() + fragment,
    ]  # fmt: skip
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=280).stdout
    match = re.search(r'<pre id="seen">([^<]*)</pre>', shown)
    assert match, shown[-2000:]
    import base64

    seen: dict[str, Any] = json.loads(base64.b64decode(match[1]).decode())
    return seen


@pytest.fixture
def page(tmp_path: Path) -> Path:
    made = report.make([process(EVIL), process("other", pid=8)])
    path = tmp_path / "trace.html"
    made.write_page(path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("</body>", PROBE + "</body>"), encoding="utf-8")
    return path


@pytest.mark.parametrize("size", ["1400,1000", "500,900"], ids=["wide", "narrow"])
def test_the_report_can_be_read_and_zoomed(page: Path, tmp_path: Path, size: str) -> None:
    seen = opened(page, tmp_path / "profile", f"--window-size={size}")
    assert seen["ready"] == "7"
    assert seen["whole"] == 9_000_000
    assert seen["zoomed"] == pytest.approx(9_000_000 / 4, abs=2)
    assert seen["wheeled"] == pytest.approx(9_000_000 / 4 * 1.25, abs=2)
    assert seen["back"] == 9_000_000
    assert "running" in seen["tip"]
    assert "5.00 ms from 0 ns" in seen["tip"]
    assert seen["pixel"][3] == 255
    assert seen["totals"] == 2
    assert any("GIL is not the cause" in title for title in seen["findings"])
    assert seen["icicle"] == [EVIL]
    assert seen["icicleAfterClick"] == 1
    assert seen["buttons"] == ["process 7", "process 8"]
    assert seen["second"] == "8"
    assert seen["overflow"] <= 0
    assert seen["dialogs"] == 0


@pytest.mark.parametrize("size", ["1400,1000", "400,900"])
def test_four_thousand_threads_are_searched_selected_and_drawn(tmp_path: Path, size: str) -> None:
    count, ms = 4001, 1_000_000
    entries = [
        thread(number, f"worker-{number}", running_ns=9 * ms) | {"stretches": [[0, 9 * ms, 0, 1]]}
        for number in range(count)
    ]
    entries[3995]["stretches"] = [[0, 3 * ms, 2, 0], [3 * ms, ms, 0, 1], [4 * ms, 5 * ms, 3, 0]]
    hold = {"thread": 3995, "begin_ns": 3 * ms, "length_ns": 200 * ms, "waited_ns": ms, "victims": 1, "node": 1}
    contention = {"pairs": [], "long_holds": [hold] * 3, "wakeups": [], "histogram": [0] * 32}
    path = tmp_path / "trace.html"
    report.make([process(threads=entries, contention=contention)]).write_page(path)
    assert path.stat().st_size < 5_000_000
    path.write_text(path.read_text("utf-8").replace("</body>", PROBE_OF_MANY + "</body>"), "utf-8")
    fragment = "#pid=7&begin=1000000&end=4000000&threads=worker-12&sort=name"
    seen = opened(path, tmp_path / "profile", f"--window-size={size}", fragment=fragment)
    assert seen["address"] == "1000000,4000000,111,worker-12"
    assert (seen["all"], seen["found"]) == ("4001", "11")
    assert seen["height"] <= 560
    assert seen["first"] == seen["last"]
    assert seen["first"] != "0,0,0,0"
    assert "threads=WORKER-399" in seen["hash"]
    assert seen["sums"] == pytest.approx([10 * 3 * ms, 0, 3 * ms, 0, 0, 0], abs=20_000)
    assert seen["span"] == pytest.approx(3 * ms, abs=2_000)
    # The longest stretch at the finding's line, with what is before and after it.
    assert seen["led"] == f"{ms},{6 * ms},{count}"
    assert seen["rows"] == 1
    assert seen["group"] == "worker-0 … worker-4000 (4,001)"
    assert seen["opened"] == 500
    assert seen["overflow"] <= 0


@pytest.mark.parametrize("size", ["1400,1000", "500,900"])
def test_two_recordings_are_on_one_page_and_move_together(tmp_path: Path, size: str) -> None:
    path = tmp_path / "comparison.html"
    made = compare([process(EVIL, executed_ns=1)], [process(EVIL, executed_ns=1, length_ns=18_000_000)])
    text = comparison_page.page(made)
    path.write_text(text.replace("</main>", "</main>" + PROBE_OF_TWO, 1), "utf-8")
    seen = opened(path, tmp_path / "profile", f"--window-size={size}")
    assert seen["first"] == [9_000_000, 18_000_000]
    assert seen["zoomed"] == [4_500_000, 4_500_000]
    assert seen["apart"] == [4_500_000, 2_250_000]
    assert seen["worse"] == ["the run: 9.00 ms → 18.0 ms (2.00 ×)"]
    assert seen["better"] == ["nothing"]
    assert seen["overflow"] <= 0


@pytest.mark.parametrize("size", ["1400,1000", "400,900"])
def test_the_flame_graph_shows_the_selected_time_by_stack(tmp_path: Path, size: str) -> None:
    """A hold without a stack of its own is divided among the samples in the selection, not in the whole hold."""
    ms, sampled = 1_000_000, 1 << 20
    entries = [thread(0, "main", running_ns=8 * ms, io_ns=2 * ms)]
    entries[0]["stretches"] = [[0, 8 * ms, 0, sampled], [8 * ms, 2 * ms, 3, 2]]
    made = process(
        threads=entries, length_ns=10 * ms,
        locations={"1": ["/app/a.py", "main", 1], "2": ["/app/a.py", "first", 2], "3": ["/app/a.py", "then", 3]},
        nodes={"1": [0, 1], "2": [1, 3], str(sampled): [1, 2], str(sampled + 1): [1, 3]},
        sampled=[[0, ms, sampled], [0, 2 * ms, sampled], [0, 3 * ms, sampled], [0, 4 * ms, sampled + 1],
                 [0, 6 * ms, sampled + 1]],
        stacks=[[0, 0, sampled, 5 * ms], [0, 0, sampled + 1, 3 * ms], [0, 3, 2, 2 * ms]],
    )  # fmt: skip
    path = tmp_path / "trace.html"
    report.make([made]).write_page(path)
    path.write_text(path.read_text("utf-8").replace("</body>", PROBE_OF_FLAMES + "</body>"), "utf-8")
    seen = opened(path, tmp_path / "profile", f"--window-size={size}")
    time_ns, boxes = seen["all"]
    assert int(time_ns) == 10 * ms
    assert boxes == {
        "main (a.py:1)": 100, "first (a.py:2)": 50, "then (a.py:3)": 50, "running": 30, "blocked in I/O": 20,
    }  # fmt: skip
    time_ns, boxes = seen["selected"]
    assert int(time_ns) == pytest.approx(5 * ms, rel=0.02)
    assert boxes["first (a.py:2)"] == pytest.approx(75, abs=1)
    assert boxes["then (a.py:3)"] == pytest.approx(25, abs=1)
    assert seen["io"] == {}
    assert seen["overflow"] <= 0
