"""The convoy: a thread that answers datagrams waits for a CPU-bound thread at every answer."""

from __future__ import annotations

import sys

from unsnarl.lab.experiment import Case, Experiment, Figure, Figures
from unsnarl.lab.running.child import Child
from unsnarl.lab.running.process import PROGRAMS, Run
from unsnarl.lab.variants import FREE_THREADED, INTERVAL, NO_HINTS, PYPY, SCHEDULER, STOCK

HOGS = (0, 1, 4)
SECONDS, QUICK_SECONDS = 1.0, 0.3
TIMEOUT_S = 30.0
CLIENT = PROGRAMS / "echo_client.py"


def measure(run: Run) -> Figures:
    """Start the server in its variant and a client; return the client's figures and the server's work.

    Raises:
        RunFailed: the server or the client failed.
    """
    seconds = run.case.arguments[-1]
    server_words = run.command(str(PROGRAMS / "echo_server.py"), *run.case.arguments[:-1], *run.variant.words)
    with Child("server", server_words, run.case.confinement) as server:
        port = server.receive_figures(TIMEOUT_S)["port"]
        client_words = [sys.executable, "-I", "-S", str(CLIENT), str(port), seconds]
        with Child("client", client_words, run.case.confinement) as client:
            client.expect("begin", TIMEOUT_S)
            before = server.request("read", TIMEOUT_S)
            client.expect("end", TIMEOUT_S + float(seconds))
            after = server.request("read", TIMEOUT_S)
            figures = client.receive_figures(TIMEOUT_S)
    if after["work"]:
        figures["work_per_s"] = (after["work"] - before["work"]) / (after["at_s"] - before["at_s"])
    return figures


def cases(seconds: float) -> tuple[Case, ...]:
    """Return the echo thread next to 0, 1 and 4 CPU-bound threads."""
    return tuple(
        Case(
            f"{hogs} CPU-bound thread{'' if hogs == 1 else 's'}",
            ("--hogs", str(hogs), str(seconds)),
            expected_s=seconds + 0.6,
        )
        for hogs in HOGS
    )


EXPERIMENT = Experiment(
    name="convoy",
    source="004: PythonPlus",
    title="The convoy",
    question="How many requests a second does one thread answer next to computing threads, and how fast?",
    program="echo_server.py",
    figures=(
        Figure("requests_per_s", "requests per second", is_better_higher=True),
        Figure("p50_us", "median round trip", "µs"),
        Figure("p99_us", "99th percentile", "µs"),
        Figure("work_per_s", "work of the CPU-bound threads", is_better_higher=True),
    ),
    variants=(STOCK, INTERVAL, SCHEDULER, NO_HINTS, FREE_THREADED, PYPY),
    cases=cases(SECONDS),
    quick=cases(QUICK_SECONDS),
    pairs=5,
    measure=measure,
    reading="One client in a closed loop: the faster it is answered, the less is left for the CPU-bound threads. A "
    "free-threaded interpreter is the better choice where it answers more and works more than the scheduler.",
)
