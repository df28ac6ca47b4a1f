"""Compares a module's outcomes with the scheduler to those without it.

A test whose outcome differs is judged by running it alone, both ways, several
times: it counts against the scheduler only if it has an outcome with the scheduler that it
never has without. So a test that is flaky on this machine is distinguished
from a defect. Invariant: no difference is dropped. Each is reported as a regression, as
not reproduced, with all outcomes, or as expected, with its reason.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.contract.cpython.regrtest import Outcomes, Run, Way
from tests.contract.cpython.suite import EXPLAINED, Module

REPEATS = 3
"""Runs of a differing test alone, each way."""
ABSENT = "absent"

Runner = Callable[[Module, Way, Sequence[str]], Run]


@dataclass(frozen=True)
class Difference:
    """A test whose outcome differs."""

    test: str
    plain: frozenset[str]
    """Every outcome seen without the scheduler."""
    scheduled: frozenset[str]
    """Every outcome seen with the scheduler when the test was run alone."""
    first: str
    """The outcome with the scheduler in the run of the whole module."""

    @property
    def explanation(self) -> str | None:
        """Return why the test has to fail with the scheduler, if it has to."""
        return EXPLAINED.get(self.test) if self.scheduled == {"failed"} else None

    @property
    def is_regression(self) -> bool:
        """Return whether the test, run alone, had an unexpected outcome that it never has without the scheduler."""
        return not self.scheduled <= self.plain and self.explanation is None

    def __str__(self) -> str:
        """Describe the outcomes."""
        verdict = "not reproduced alone, or flaky without it too"
        if not self.scheduled <= self.plain:
            verdict = f"to be expected: {self.explanation}" if self.explanation else "REGRESSION"
        return (
            f"{self.test}: {self.first} with the scheduler; "
            f"alone {'/'.join(sorted(self.scheduled))}, without it {'/'.join(sorted(self.plain))}: {verdict}"
        )


@dataclass
class Comparison:
    """One module, both ways."""

    module: Module
    plain: Run
    scheduled: Run
    differences: list[Difference] = field(default_factory=list[Difference])

    @property
    def regressions(self) -> list[Difference]:
        """Return the differences that count."""
        return [difference for difference in self.differences if difference.is_regression]


def compare(module: Module, runner: Runner) -> Comparison:
    """Run a module both ways, and judge what differs."""
    comparison = Comparison(module, runner(module, "plain", ()), runner(module, "scheduled", ()))
    before, after = comparison.plain.outcomes, comparison.scheduled.outcomes
    for test in differing(before, after):
        comparison.differences.append(judge(module, test, before, after, runner))
    return comparison


def differing(before: Outcomes, after: Outcomes) -> list[str]:
    """Return the tests whose outcome differs, or, where a run has no results, its module."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    whole = [name for name in names if name.startswith("(")]
    # A process that crashed wrote no results: every test of it would seem to differ.
    return whole or names


def judge(module: Module, test: str, before: Outcomes, after: Outcomes, runner: Runner) -> Difference:
    """Run one test alone, both ways in turn (or all of the module, if it is the module that differs)."""
    only = () if test.startswith("(") else (test,)
    plain, scheduled = {before.get(test, ABSENT)}, set[str]()
    for _ in range(REPEATS):
        plain.add(runner(module, "plain", only).outcomes.get(test, ABSENT))
        scheduled.add(runner(module, "scheduled", only).outcomes.get(test, ABSENT))
    return Difference(test, frozenset(plain), frozenset(scheduled), after.get(test, ABSENT))


def counts(outcomes: Outcomes) -> str:
    """Return the number of tests by outcome, in words."""
    tests = [outcome for name, outcome in outcomes.items() if not name.startswith("(")]
    return ", ".join(f"{tests.count(outcome)} {outcome}" for outcome in ("passed", "failed", "skipped"))
