"""Opens the built site in Chromium as readers do, at 1400 and at 400 pixels, in light and in dark colours.

    python scripts/documentation/browser.py SITE [--pictures DIRECTORY]

Serves SITE on a free port of the loopback interface, and tries on each width: no page scrolls sideways, the navigation
leads from page to page, the search finds a page and opens it, a copy button copies its block, the colours can be
switched, and nothing is asked of another host. Prints each complaint; closes with `N passed, N failed`; --pictures
keeps screenshots. Exits with 77 and the reason where there is no Chromium.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SIZES = {"wide": (1400, 900), "narrow": (400, 800)}
SCREENSHOTS = ["", "guide/troubleshooting/", "reference/modules/sync/", "reference/platforms/", "results/worlds/"]
PATIENCE_MS = 20_000
SIDEWAYS_BELOW_HEADER = "document.querySelector('.md-main').scrollWidth - document.documentElement.clientWidth"
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

Trial = Callable[["Page", str, bool], None]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves the files, and logs nothing."""

    def log_message(self, *_arguments: object) -> None:
        """Drop the line."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve the site from a thread; the address ends with a slash."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


def the_navigation_leads_on(page: Page, address: str, is_narrow: bool) -> None:
    """Go from the start page to a page of another section by clicks alone."""
    page.goto(address)
    if is_narrow:
        page.locator("label.md-header__button[for=__drawer]").click()
        page.locator("nav.md-nav--primary label.md-nav__link", has_text="Guide").first.click()
    else:
        page.locator(".md-tabs__link", has_text="Guide").click()
    page.locator("nav.md-nav--primary a.md-nav__link", has_text="Troubleshooting").click()
    page.wait_for_url("**/guide/troubleshooting/")
    assert page.locator("h1").inner_text().startswith("Troubleshooting")


def the_search_finds(page: Page, address: str, is_narrow: bool) -> None:
    """Search for a word of one page, and open what is found."""
    page.goto(address)
    if is_narrow:
        page.locator("label.md-header__button[for=__search]").click()
    page.locator(".md-search-result__meta", has_text="Type to start searching").wait_for(state="attached")
    page.locator("input.md-search__input").press_sequentially("OwnerDied")
    page.locator("a.md-search-result__link").first.click()
    page.wait_for_url(lambda url: url.removeprefix(address).split("#")[0] not in {"", "?"})
    assert "OwnerDied" in page.locator("article").inner_text()
    assert page.evaluate(SIDEWAYS) <= 0, "the search leaves the page too wide"


def a_block_is_copied(page: Page, address: str, is_narrow: bool) -> None:
    """Press the copy button of the start page's first block."""
    del is_narrow
    page.goto(address)
    block = page.locator("div.highlight").first
    block.hover()
    block.locator("button.md-clipboard, button[data-md-type=copy]").first.click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.strip() == block.locator("code").inner_text().strip(), f"copied: {copied!r}"


def the_colours_switch(page: Page, address: str, is_narrow: bool) -> None:
    """Press the switch until the page is dark, and until it is light; a reload keeps the choice."""
    del is_narrow
    page.goto(address)
    scheme = "document.body.getAttribute('data-md-color-scheme')"
    seen = set[str]()
    for _ in range(3):
        page.locator("form[data-md-component=palette] label:visible").first.click()
        seen.add(page.evaluate(scheme))
    chosen = page.evaluate(scheme)
    page.reload()
    assert page.evaluate(scheme) == chosen
    assert seen == {"default", "slate"}, seen


TRIALS: list[Trial] = [the_navigation_leads_on, the_search_finds, a_block_is_copied, the_colours_switch]


def tried(browser: Browser, address: str, trial: Trial, size: str) -> str | None:
    """Try one thing in a fresh context, and return what is wrong."""
    from playwright.sync_api import Error

    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.set_default_timeout(PATIENCE_MS)
    elsewhere = list[str]()
    context.on("request", lambda request: None if request.url.startswith(address) else elsewhere.append(request.url))
    try:
        trial(context.new_page(), address, size == "narrow")
        assert not elsewhere, f"asks another host: {elsewhere[0]}"
    except (AssertionError, Error) as error:
        return str(error).splitlines()[0]
    finally:
        context.close()
    return None


def too_wide(browser: Browser, address: str, site: Path) -> Iterator[str]:
    """Open every page, and yield those that scroll sideways; long code and wide tables scroll by themselves.

    Scripts are off, which saves most of the time: the layout is that of the style sheets, but for the header, which
    the trials look at.
    """
    page = browser.new_page(java_script_enabled=False)
    paths = sorted(str(file.parent.relative_to(site)) for file in site.glob("**/index.html"))
    for path in paths:
        page.goto(f"{address}{path}/")
        for width, height in SIZES.values():
            page.set_viewport_size({"width": width, "height": height})
            wide = page.evaluate(SIDEWAYS_BELOW_HEADER)
            if wide > 0:
                yield f"{path}: {wide} px too wide at {width} px"
    page.close()


def take_pictures(browser: Browser, address: str, directory: Path) -> None:
    """Keep screenshots of some pages, in each width and both colours."""
    directory.mkdir(parents=True, exist_ok=True)
    for size, (width, height) in SIZES.items():
        for scheme in ("light", "dark"):
            page = browser.new_page(
                viewport={"width": width, "height": height},
                color_scheme="dark" if scheme == "dark" else "light",
            )
            for path in SCREENSHOTS:
                page.goto(address + path)
                page.screenshot(path=directory / f"{size}-{scheme}-{path.strip('/').replace('/', '-') or 'start'}.png")
            page.close()


def main() -> int:
    """Try everything; return the exit status."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser()
    parser.add_argument("site", type=Path)
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    program = next((path for path in map(shutil.which, NAMES) if path), None)
    if program is None:
        print(f"error: no browser to try the site in: none of {', '.join(NAMES)} is in PATH")
        return 77
    complaints = list[str]()
    with served(options.site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        complaints += too_wide(browser, address, options.site)
        for size in SIZES:
            for trial in TRIALS:
                complaint = tried(browser, address, trial, size)
                complaints += [] if complaint is None else [f"{trial.__name__}, {size}: {complaint}"]
        if options.pictures:
            take_pictures(browser, address, options.pictures)
        browser.close()
    for complaint in complaints:
        print(f"error: {complaint}")
    print(f"{max(0, 1 + len(SIZES) * len(TRIALS) - len(complaints))} passed, {len(complaints)} failed")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
