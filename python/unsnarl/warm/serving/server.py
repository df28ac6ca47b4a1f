"""The server of one key: imports once, then forks a worker for every request.

| what arrives | from | what follows |
|---|---|---|
| "taken", with the client's connection | a spare that has accepted | it is a worker now; missing spares are forked |
| death or stop of a child | the kernel | its client is notified |
| hang-up of a connection | the kernel | the client was killed: the worker is killed too |
| a file event | inotify | if a loaded file has changed: no more requests, running workers end in peace |
| SIGTERM, no request for :data:`IDLE_S`, the end of the session | | the same |

The spares accept by themselves, so that no fork and no second process stands between a client and its worker.

Invariant: this process never runs a line of the command but its imports, is single-threaded, and leaves by
``os._exit``: what imports have registered to run at exit belongs to the workers.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from select import POLLIN, poll

from .. import changed, ledger, pidfd
from .. import facts as facts_of
from ..worker import pages, signals, streams, teardown, worker
from ..worker.exit import Ending
from ..worker.inherited import Inherited
from ..worker.spare import Spare, Taken
from . import import_phase, successor
from .children import Children
from .descriptors import copied, raised
from .file_watch import Files
from .listener import Listener
from .log import Log
from .origin import Origin

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    import signal as _signal
    from typing import NoReturn
else:
    import _signal

# Loaded before the first fork, and used after it.
_FOR_WORKERS = (Ending, pages, signals, streams, teardown, worker)

# Seconds without a request after which a server ends.
IDLE_S = 3600.0
# Longest time between two looks at whether the server still is of use, in seconds.
LOOK_S = 60.0
# Spares that may die in a row before a client has arrived.
MOST_LOST = 16
# Runs that report which pages they have copied; the first ones differ most.
SURVEYS = 3


class Server:
    """One server, from its imports to its end."""

    def __init__(self, words: list[str]) -> None:
        # The log is out of the way of what imports are given for their standard streams.
        self._log = Log(copied(2), words[7])
        self._origin = Origin.of(words)
        self._facts = self._learned()
        self._record, self._record_stamp = self._read_record()
        self._pages: pages.Rows = []
        self._surveys_left = SURVEYS
        self._requests, self._used, self._published = 0, time.monotonic(), 0.0
        self._began = self._used
        self._shown = 0  # of these requests, those in the published state
        self._is_open = True
        self._pid = os.getpid()

    # -- before the first request ------------------------------------------

    def _learned(self) -> facts_of.Facts:
        """Return what was learned: for this key alone, if its imports differ from the usual ones."""
        facts = facts_of.load(f"{self._origin.stem}.own") or facts_of.load(f"{self._origin.record}.facts")
        if facts is None:
            os._exit(1)
        return facts

    def _read_record(self) -> tuple[str, tuple[int, int, int]]:
        path = f"{self._origin.record}.rec"
        stamp = facts_of.stamp_of(path)
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                return file.read(), stamp
        except OSError:
            return "", stamp

    def prepare(self) -> None:
        """Import, freeze, listen."""
        self._files = Files(self._facts)
        self._files.fd = raised(self._files.fd) if self._files.fd >= 0 else -1
        try:
            self._imported, imports_ms = import_phase.run(self._origin, self._facts, self._log)
        except (import_phase.UnfitError, import_phase.UnprovenError) as why:
            self._turn_down(why)
        gc.collect()
        gc.freeze()
        self._frozen = gc.get_freeze_count()
        if (changed := self._facts.changed_file() or self._files.reason() or self._files.moved()) is not None:
            self._give_up(f"{changed} while it was imported")
        self._listener = Listener(self._origin)
        self._ledger = ledger.Serving(self._origin.record, imports_ms, self._origin.environment)
        self._children = Children(self._log)
        # One byte while the server judges an event, more once a loaded file has changed: spares poll this pipe.
        self._doubt, self._doubt_out = map(raised, os.pipe())
        # Signals write here.
        self._wake, self._wake_out = map(raised, os.pipe())
        os.set_blocking(self._wake, False)
        os.set_blocking(self._wake_out, False)

    def _turn_down(self, why: import_phase.UnfitError | import_phase.UnprovenError) -> NoReturn:
        """End since the imports cannot be kept, or since their learning has to be repeated in two runs."""
        if isinstance(why, import_phase.UnfitError):
            facts_of.rule_out(self._origin.stem, self._facts, str(why))
        self._give_up(str(why))

    def _give_up(self, why: str) -> NoReturn:
        """End before a client has arrived; the next call starts again."""
        ledger.note_failed(self._origin.record, self._origin.environment)
        self._log.write(f"does not start, {why}")
        os._exit(1)

    # -- serving ------------------------------------------------------------

    def serve(self) -> Inherited:
        """Serve until there is a reason to end; returns only in a forked process."""
        self._handlers = signals.take_over(self._wake_out)
        leader = self._watch_session()
        self._publish()
        while True:
            if self._is_open and self._children.fork_spares():
                return self._inherited()
            question = poll()
            watched = (leader, self._files.fd) if self._is_open else ()
            for fd in (self._wake, self._children.taken_in, *watched):
                if fd >= 0:
                    question.register(fd, POLLIN)
            for connection in self._children.workers.values():
                question.register(connection, 0)
            self._handle(dict(question.poll(self._timeout_ms())), leader)
            # A spare may be a worker that has not reported so yet.
            if not (self._is_open or self._children.workers or self._children.spares):
                self._leave()

    def _inherited(self) -> Inherited:
        return Inherited(
            server_pid=self._pid,
            command=self._origin.command,
            runtime_directory=self._origin.runtime_directory,
            record=self._origin.record,
            stem=self._origin.stem,
            key=self._origin.key,
            environment=self._origin.environment,
            is_in_session=self._origin.is_in_session,
            handlers=self._handlers,
            imported=self._imported,
            frozen=self._frozen,
            files=self._files,
            listener=self._listener.fd,
            taken=self._children.taken,
            doubt=self._doubt,
            connections=tuple(self._children.workers.values()),
            pages=self._pages,
            is_surveyed=self._surveys_left > 0,
        )

    def _handle(self, events: dict[int, int], leader: int) -> None:
        caught = b""
        if self._wake in events:
            caught = os.read(self._wake, 4096)
        # Which spares were taken must be known before the dead are reaped.
        if self._children.taken_in in events or caught:
            self._children.note_taken()
        if bytes([_signal.SIGCHLD]) in caught:
            self._children.reap()
        self._children.end_abandoned(events)
        self._note_ended()
        if self._is_open:
            self._consider_ending(bytes([_signal.SIGTERM]) in caught, leader in events, self._files.fd in events)
        self._check()

    def _note_ended(self) -> None:
        """Learn from the workers that have ended; start a successor if runs have loaded more than was learned."""
        for pid, is_run in self._children.pop_ended():
            found = pages.take(f"{self._origin.stem}.pages.{pid}")
            if found and self._surveys_left:
                self._pages = found
                self._surveys_left -= 1
            if is_run:  # a client that only checks for a server does not keep it alive
                self._used = time.monotonic()
                self._requests += 1
                self._ledger.note(self._requests)
                if self._is_open and not self._children.successor:
                    limits, modules = self._imported.limits, len(self._facts.modules)
                    self._children.successor = successor.start_if_wanted(self._origin, limits, self._requests, modules)
            elif self._files.have_moved():  # a spare may have refused for a change that makes no event
                self._retire("a loaded file has changed")

    # -- ending, and being replaced ------------------------------------------

    def _consider_ending(self, is_asked: bool, is_alone: bool, is_in_doubt: bool) -> None:
        if is_asked:
            if self._children.successor:
                os.kill(self._children.successor, _signal.SIGTERM)
            self._retire("asked to end")
        elif is_alone:
            self._retire("its session has ended")
            signals.release_stopped(self._children.workers)
        elif is_in_doubt:
            self._judge_files()

    def _judge_files(self) -> None:
        os.write(self._doubt_out, b"?")
        reason = self._files.reason()
        if reason is None:
            os.read(self._doubt, 1)
        else:
            os.write(self._doubt_out, b"!")  # spares that wait for the verdict have it
            self._retire(reason)

    def _check(self) -> None:
        """End for the reasons that no event announces; publish the state once a second."""
        if not self._is_open:
            return  # the successor, if there is one, publishes its own state
        now = time.monotonic()
        if abs(now - self._used) > _idle_s() and not self._children.workers:
            self._retire("idle")
        elif not self._listener.is_current():
            self._retire("replaced")
        elif why := self._outdated() or self._imported.limits.reason(len(self._children.workers)):
            self._retire(why)
        elif self._children.lost > MOST_LOST:
            self._retire("its spares die")  # for lack of memory, for example
        elif abs(now - self._published) > 1:
            self._publish()

    def _outdated(self) -> str:
        """Return in words that what was learned no longer holds for this server, or nothing."""
        if self._has_other_key():
            return "learned again, with another key"
        name = changed.news(self._origin.record, self._imported.changed_size, self._imported.late)
        return f"a run has changed {changed.in_words(name)}, which its imports have read" if name else ""

    def _has_other_key(self) -> bool:
        """Return whether learning again has changed what belongs to a key: no client finds this server then."""
        if facts_of.stamp_of(f"{self._origin.record}.rec") == self._record_stamp:
            return False
        text, self._record_stamp = self._read_record()
        return text not in ("", self._record)

    def _retire(self, reason: str) -> None:
        """Take no more requests; running workers go on."""
        if self._is_open:
            self._is_open = False
            self._log.write(f"ends, {reason}")
            self._listener.close()

    def _publish(self) -> None:
        """Write the state of this server to ``KEY.info``, for `unsnarl warm status`."""
        origin = self._origin
        self._published, self._shown = time.monotonic(), self._requests
        facts_of.mark(origin.record)
        running = self._children.running()
        if running:
            self._used = self._published
        rows = {
            "command": origin.command.name, "python": sys.executable, "session": origin.session, "used": self._used,
            "requests": self._requests, "workers": running, "modules": len(self._facts.modules),
            "command_id": origin.command_id, "pid": os.getpid(),
        }  # fmt: skip
        unfinished = f"{origin.stem}.info.{os.getpid()}"
        try:
            with open(unfinished, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.writelines(f"{name}\t{value}\n" for name, value in rows.items())
            os.rename(unfinished, f"{origin.stem}.info")
        except OSError:
            pass  # no room on the disk: `unsnarl warm status` shows less, and commands run on

    def _leave(self) -> None:
        self._ledger.note(self._requests, is_last=True)
        if not os.path.exists(f"{self._origin.stem}.sock"):
            try:
                os.unlink(f"{self._origin.stem}.info")
            except OSError:
                pass
        os._exit(0)

    def _timeout_ms(self) -> int:
        if self._children.successor:
            return 50  # it renames its socket over this one, which makes no event here
        # What came within a second of the last publication is published although no event follows.
        is_awaited = self._children.is_short or (self._is_open and self._shown != self._requests)
        # No event announces that the command was learned again with another key. That happens early or never.
        look_s = min(max(1.0, time.monotonic() - self._began), LOOK_S)
        return 1000 if is_awaited else int(min(_idle_s(), look_s) * 1000)

    def _watch_session(self) -> int:
        """Return a descriptor that becomes readable when this session's leader ends; -1 without a session."""
        if not self._origin.is_in_session:
            return -1
        try:
            return raised(pidfd.open_of(os.getsid(0)))
        except OSError:
            os._exit(1)


def _idle_s() -> float:
    try:
        return float(os.environ.get("UNSNARL_WARM_IDLE", "") or IDLE_S)
    except ValueError:
        return IDLE_S


def main(words: list[str]) -> Taken:
    """Run a server; returns only in a worker, with its request."""
    return Spare(_serve(words)).wait()


def _serve(words: list[str]) -> Inherited:
    """Return in each spare what it inherits. The server's other objects are freed there before the spare waits."""
    server = Server(words)
    server.prepare()
    return server.serve()
