"""Classification of threads by their behaviour, read from the statistics.

One thread repeats an action while another is CPU-bound; the classes of its waits show how it was
classified. Shares are compared, not numbers: a busy machine delays some returns, which then look
like returns of another class.
"""

from typing import TYPE_CHECKING

import pytest

from tests.integration import gil_programs

if TYPE_CHECKING:
    from tests.conftest import Programs

pytestmark = pytest.mark.needs_gil

STEPS = {
    "long work in C": "zlib.compress(data)",
    "sleep(0)": "time.sleep(0)",
    "a short sleep": "time.sleep(0.0002)",
}

WAITS = {
    "Event": ("Event()", "it.wait(), it.clear()", "it.set()"),
    "Semaphore": ("Semaphore(0)", "it.acquire()", "it.release()"),
    "Lock": ("Lock()", "it.acquire()", "it.release()"),
    "Condition": ("Condition()", "wait_on(it)", "notify(it)"),
    "Queue": ("Queue()", "it.get()", "it.put(None)"),
    "Barrier": ("Barrier(2)", "it.wait()", "it.wait()"),
}
"""A primitive, the call that waits for it, and the call that ends the wait."""


@pytest.mark.parametrize("kind", STEPS)
def test_who_blocks_is_not_taken_for_cpu_bound(programs: "Programs", kind: str) -> None:
    gil_programs.succeed(
        programs,
        f"""
import zlib
data = os.urandom(100_000)
gil.install()
with contention.hogs(1):
    for _ in range(20):
        {STEPS[kind]}
    gil.reset_stats()
    blocked = 0
    # While the machine does not run the hog, no thread has the GIL, and none waits for it.
    for _ in range(100):
        for _ in range(300):
            {STEPS[kind]}
        waits = {{each.name: each.waits for each in gil.stats().classes}}
        # The hog waits once for each forced drop, always as batch.
        blocked = waits["handed"] + waits["io"] + waits["yielded"]
        if blocked >= 100:
            break
assert blocked >= 100, waits
assert waits["handed"] + waits["io"] >= blocked / 2, waits
""",
    )


@pytest.mark.parametrize("kind", WAITS)
def test_who_waits_for_a_primitive_is_served_like_who_waits_for_a_lock(programs: "Programs", kind: str) -> None:
    make, wait, release = WAITS[kind]
    gil_programs.succeed(
        programs,
        f"""
import unsnarl
def wait_on(condition):
    with condition:
        condition.wait()
def notify(condition):
    with condition:
        condition.notify()
def waits():
    return sum(each.waits for each in gil.stats().classes)
it = unsnarl.{make}
passed = []
def work():
    while True:
        {wait}
        passed.append(None)
gil.install()
threading.Thread(target=work, daemon=True).start()
gil.reset_stats()
while not it.waiting:
    contention.block()
goal = len(passed)
for _ in range(200):
    while len(passed) < goal or not it.waiting:
        contention.block()
    before = waits()
    {release}
    while waits() == before:
        pass  # with the GIL held: the woken thread has to wait for it
    goal += 1
served = {{each.name: each.served for each in gil.stats().classes}}
# A machine that is busy with other things delays some threads on their way to the GIL.
assert served["handed"] >= 100, served
""",
    )


def test_who_computes_is_taken_for_cpu_bound(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        """
gil.install()
with contention.hogs(3) as hogs:
    gil.reset_stats()
    hogs.await_progress(2000)
    stats = gil.stats()
hogs_waits = {each.name: each.waits for each in stats.classes}
assert hogs_waits["batch"] > 0, hogs_waits
assert stats.forced_drops > 0, stats
assert stats.longest_hold_ns > 0 and stats.longest_hold_thread, stats
""",
    )


def test_one_long_call_is_reported_with_its_thread(programs: "Programs") -> None:
    """No policy can interrupt the call; the statistics name its thread."""
    gil_programs.succeed(
        programs,
        """
gil.install()
numbers = list(range(3_000_000, 0, -1))
def hold():
    # Again and again: any thread that has no processor for a while holds the GIL as long.
    while not ended.is_set():
        sorted(numbers, key=None)
        sum(range(20_000_000))
ended = threading.Event()
with contention.pollers(1):
    gil.reset_stats()
    holder = threading.Thread(target=hold, name="the one long call")
    holder.start()
    while (stats := gil.stats()).longest_hold_ns < 50_000_000 or stats.longest_hold_thread != holder.name:
        contention.block()
    ended.set()
    holder.join()
    # It has a name as long as anybody refers to it.
    assert gil.stats().longest_hold_thread == "the one long call", gil.stats()
""",
    )
