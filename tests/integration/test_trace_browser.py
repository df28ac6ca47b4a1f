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

from tests.unit.test_trace_views import EVIL, process
from unsnarl.trace import report

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

PROBE = """
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
  seen.icicle = [...document.querySelectorAll(".icicle div")].map((e) => e.textContent);
  q(".icicle div").click();
  seen.icicleAfterClick = document.querySelectorAll(".icicle div").length;
  seen.buttons = [...document.querySelectorAll("nav button")].map((e) => e.textContent);
  const second = document.querySelectorAll("nav button")[1];
  second.click();
  seen.second = document.body.dataset.ready;
  seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  seen.dialogs = window.alerted || 0;
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = btoa(unescape(encodeURIComponent(JSON.stringify(seen))));
  document.body.append(out);
})();
</script>
"""


def browser() -> str:
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is in PATH")
    return found


def opened(page: Path, profile: Path, *options: str) -> dict[str, Any]:
    """Open a page in the browser, and return the observations of its probe."""
    command = [
        browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}", *options,
        "--virtual-time-budget=4000", "--dump-dom", page.as_uri(),
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
