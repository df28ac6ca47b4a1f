"""Imports a command's modules in the server, and notes what its workers have to put right.

The imports run under the circumstances of the caller that has started the server: its limits, its file mode mask
and, if the imports read it, its directory. Afterwards the server restores its own circumstances.

Invariant: a module that cannot be imported is left out, and each run imports it itself. Anything that would
make a worker differ from a plain run raises :class:`UnfitError`.
"""

from __future__ import annotations

import os
import sys

from .. import changed, ledger
from ..importing import environment_copies, library, main_module, origins, preload, temporary
from ..worker import forks, signals, streams, worker
from ..worker.import_hooks import Finders
from ..worker.inherited import Imported
from ..worker.limits import Limits
from . import successor
from .proof import Proof

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from types import CodeType

    from ..facts import Facts
    from .log import Log
    from .origin import Origin


class UnfitError(Exception):
    """The imports cannot be kept for others; the text says why."""


class UnprovenError(Exception):
    """One learning run was not enough to know the imports; the text says why."""


def run(origin: Origin, facts: Facts, log: Log) -> tuple[Imported, int]:
    """Import what was learned; return it, and the milliseconds of the imports. Raises UnfitError, or UnprovenError."""
    command, limits, buffering = origin.command, Limits(), streams.Imports()
    proof = Proof(origin.record, origin.umask) if facts.is_unproven else None
    begun_ms = ledger.used_ms()
    with limits, buffering, signals.Imports():
        main, directories, copies = _import(origin, facts, log)
    imports_ms = ledger.used_ms() - begun_ms
    limits.widen()
    if proof is not None:
        _prove(proof, facts)
    changed_size = changed.size(origin.record)
    if name := changed.news(origin.record, facts.changed_size, facts.late):
        raise UnprovenError(f"a run has changed {changed.in_words(name)}, which its imports have read")
    is_beside = command.kind == "module" and not sys.flags.safe_path
    imported = Imported(
        main=main,
        line_buffering=buffering.line_buffering(),
        environment_delta=preload.environment_delta(origin.environment, worker.environment_data()),
        kept_variables=preload.kept_variables(origin.environment),
        argument_lists=preload.argument_copies()[0],
        # With -m Python searches the caller's directory first for each module that is not loaded yet.
        hideable=preload.hideable() if is_beside else frozenset(),
        late=frozenset(facts.late),
        is_observed=changed.is_there(origin.record),
        changed_size=changed_size,
        changed=frozenset(changed.read(origin.record, 0, changed_size)),
        functions=library.functions(),
        baseline=frozenset(sys.modules) | considered(origin),
        finders=Finders(),
        code=_compile(command),
        renewals=facts.renewals,
        asks_signals=facts.asks_signals,
        temporary=directories,
        copies=copies,
        limits=limits,
    )
    return imported, imports_ms


def _prove(proof: Proof, facts: Facts) -> None:
    lack = proof.lack(facts)
    if lack:
        proof.drop()
        raise UnprovenError(lack)
    proof.keep(facts)


def _import(
    origin: Origin, facts: Facts, log: Log
) -> tuple[main_module.MainModule, temporary.Directories, environment_copies.Copies]:
    if not facts.asks_cwd:
        os.chdir("/")
    # In any case: files in __pycache__ get the modes that a plain run gives them.
    os.umask(origin.umask)
    preload.terminals(origin.tty)
    preload.arrange(origin.command)
    main = main_module.MainModule(origin.command)
    if covered := preload.covered():
        raise UnfitError(covered)
    directories, copies = temporary.expected(facts.renewals), environment_copies.Copies()
    with forks.Imports(), copies:
        for name in [
            m for m in ("runpy", "pkgutil") if origin.command.kind == "module" or origin.command.is_on_path
        ] + facts.modules:
            try:
                __import__(name)
                main.announce()
            except BaseException as problem:
                log.write(f"{name} is left out: {type(problem).__name__}")
    _check_kept(facts)
    if moved := origins.moved(facts.origins):
        raise UnfitError(moved)
    if odd := copies.settle(facts, origin.environment):
        raise UnfitError(odd)
    if lost := directories.hand_over(facts.renewals):
        raise UnfitError(f"{lost} of its imports cannot be made again in each run")
    os.chdir("/")
    os.umask(0o077)
    return main, directories, copies


def _check_kept(facts: Facts) -> None:
    """Compare the globals that keep a value with what each worker would set them to: learning may be wrong."""
    for one in facts.renewals:
        module = sys.modules.get(one.module)
        if one.recipe.is_kept and module is not None and vars(module).get(one.name) != one.recipe.value():
            raise UnfitError(f"{one.module}.{one.name} is not made of {one.recipe.source} in the way that was learned")


def considered(origin: Origin) -> set[str]:
    """Return the modules that runs had loaded when the command was learned: they were taken then, or left out."""
    try:
        with open(f"{origin.record}.wanted", "rb") as file:
            lines = file.read(successor.learned_bytes(origin.record)).splitlines()
            return {os.fsdecode(line.partition(b"\t")[0]) for line in lines}
    except OSError:
        return set()


def _compile(command: preload.Command) -> CodeType | str:
    if command.kind == "module" or command.is_on_path:
        return ""
    with open(command.name, "rb") as file:
        return compile(file.read(), command.name, "exec", dont_inherit=True)
