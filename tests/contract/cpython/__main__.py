"""``scripts/cpython-tests``: CPython's own tests, with the scheduler and without.

Prints a line for each module with the counts both ways, then every difference.
Exit status: 0 where the scheduler changes nothing, 1 for a regression, 77 where
this interpreter does not ship its tests.
"""

import argparse
import platform
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.contract.cpython import regrtest, suite
from tests.contract.cpython.comparison import Comparison, compare, counts
from tests.contract.cpython.regrtest import Outcomes

NOT_SHIPPED = 77


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests that the arguments select; return the exit status."""
    options = parser().parse_args(arguments)
    # A shell starts background processes with SIGINT ignored, but some of the tests rely on SIGINT.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    modules, absent = suite.choose(suite.QUICK if options.quick else suite.FULL)
    if options.modules:
        modules, absent = suite.named(options.modules)
    if not modules:
        print(f"error: Python {platform.python_version()} does not ship these tests")
        print("hint: install them (Debian: libpython3-testsuite)")
        return NOT_SHIPPED
    for name in absent:
        print(f"not run: {name} is not shipped with Python {platform.python_version()}")
    with ThreadPoolExecutor(options.jobs) as pool:
        done = [shown(one) for one in pool.map(lambda module: compare(module, regrtest.run), modules)]
    return conclude(done)


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    parser = argparse.ArgumentParser(prog="scripts/cpython-tests", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="only the modules about threads, in a few minutes")
    parser.add_argument("--python", metavar="PATH", help="the interpreter of an environment that has unsnarl")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="modules at a time (default: 1)")
    parser.add_argument("modules", nargs="*", help="test modules; by default those that the scheduler concerns")
    return parser


def shown(one: Comparison) -> Comparison:
    """Print a module's line as soon as it is done."""
    same = "same" if not one.differences else f"{len(one.differences)} differ"
    print(f"{one.module.title}: plain {counts(one.plain.outcomes)}; scheduled {counts(one.scheduled.outcomes)}; {same}")
    for difference in one.differences:
        print(f"    {difference}")
    if one.regressions:
        print(indented(one.scheduled.text))
    sys.stdout.flush()
    return one


def indented(text: str) -> str:
    """Indent the output of a run, to distinguish it from this program's own lines."""
    return "\n".join(f"    | {line}" for line in text.splitlines())


def conclude(done: Sequence[Comparison]) -> int:
    """Print the sums; return the exit status."""
    plain, scheduled = Outcomes(), Outcomes()
    for number, one in enumerate(done):
        plain |= {f"{name} {number}": outcome for name, outcome in one.plain.outcomes.items()}
        scheduled |= {f"{name} {number}": outcome for name, outcome in one.scheduled.outcomes.items()}
    regressions = sum(len(one.regressions) for one in done)
    print(f"Python {platform.python_version()}, {len(done)} modules")
    print(f"plain {counts(plain)}; scheduled {counts(scheduled)}")
    print(f"{sum(len(one.differences) for one in done)} differences, {regressions} regressions")
    return 1 if regressions else 0


if __name__ == "__main__":
    sys.exit(main())
