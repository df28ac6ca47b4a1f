"""The starts of a whole test-suite: 25,000, as Mercurial's made in the document. It runs only if it is named."""

from unsnarl.lab.experiment import Case, Experiment, Figure
from unsnarl.lab.experiments.storm import measure
from unsnarl.lab.running import commands
from unsnarl.lab.variants import PACKED, PLAIN, WARM

STARTS, QUICK_STARTS = 25_000, 25
INTERPRETER, COMMAND = "python -c pass", "hg --version -q"
LIMIT_S = 7200.0


def cases(starts: int) -> tuple[Case, ...]:
    """Return the starts of the interpreter alone, and those of Mercurial's command."""
    expected_s = {INTERPRETER: 0.01 * starts, COMMAND: 0.1 * starts}
    return tuple(
        Case(
            f"{starts:,} × {name}",
            (name, str(starts)),
            variants=(PLAIN.name,) if name == INTERPRETER else None,
            command=commands.script_of(name),
            expected_s=expected,
            limit_s=LIMIT_S,
        )
        for name, expected in expected_s.items()
    )


EXPERIMENT = Experiment(
    name="suite",
    source="003: Python's start-up time",
    title="The starts of a test-suite",
    question="How long do 25,000 starts take, on all cores, and how much processor time?",
    program="",
    figures=(
        Figure("elapsed_s", "time", "s"),
        Figure("cpu_s", "processor time", "s"),
        Figure("each_ms", "time per command", "ms"),
    ),
    variants=(PLAIN, WARM, PACKED),
    cases=cases(STARTS),
    quick=cases(QUICK_STARTS),
    pairs=1,
    measure=measure,
    reading="One pair takes most of an hour, so this experiment runs only if it is named: `unsnarl lab run suite`. "
    "As many commands run at a time as there are cores. Processor time is that of the started processes and, of a "
    "warm command, of its server and the ended workers.",
)
