"""The server of one key: imports once, forks a worker for every request.

| what arrives | from | what follows |
|---|---|---|
| "taken", with the client's connection | a spare that has accepted | it is a worker now; spares are forked anew |
| death or stop of a child | the kernel | the client is told |
| hang-up of a connection | the kernel | the client was killed: so is the worker |
| a file event | inotify | stale: no more requests, running workers end in peace |
| SIGTERM, a long silence, the end of the session | | the same |

The spares accept by themselves, so that no fork and no second process stands
between a client and its worker.

Invariant: this process never runs a line of the command but its imports, is
single-threaded, and leaves by ``os._exit``: what imports have registered to run
at exit belongs to the workers.
"""

from __future__ import annotations

import _socket
import fcntl
import gc
import os
import sys
import time
from select import POLLHUP, POLLIN, poll

from .. import facts as facts_of
from .. import wire
from ..importing import preload, temporary
from ..importing.trampolines import HIGH_FD
from ..worker import forks, limits, pages, signals, streams, teardown, worker
from ..worker.exit import Ending
from ..worker.import_hooks import Finders
from ..worker.inherited import Imported, Inherited
from ..worker.spare import REFUSED_STATUS, UNWANTED_STATUS, Spare, Taken, is_committed
from . import successor
from .file_watch import Files

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    import signal as _signal
    from types import CodeType
    from typing import NoReturn
else:
    import _signal

# Loaded before the first fork, and used after it.
_FOR_WORKERS = (Ending, pages, signals, streams, teardown, worker)

# Seconds without a request after which a server ends.
IDLE_S = 3600.0
# Longest queue of clients that nobody has accepted yet; the kernel may bound it lower.
BACKLOG = 512
# Spares while nobody calls: one is taken, one is there for a call beside it.
SPARES = 2
# Spares that may die in a row before anybody has come.
MOST_LOST = 16
# Runs that are asked which pages they have copied; the first ones differ most.
SURVEYS = 3

_FINAL = wire.REPLY.pack


class Server:
    """Hold what the server knows; see the head of this file."""

    def __init__(self, words: list[str]) -> None:
        self.exe, self.house, self.command_id, self.key_id, self.session, self.tty = words[:6]
        self.command = preload.Command(words[6], words[7])
        self.stem = f"{self.house}/{self.key_id}"
        with open(4, "rb") as file:
            self.key = file.read()
        # The log is out of the way of what imports are given for their standard streams.
        self.lock, self.log_fd = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH_FD) for fd in (3, 2))
        os.close(3)
        self.first_environment = preload.environment_as_given()
        self.facts = self._learned()
        # The caller's: the mask while the command is imported, the directory only if the imports ask for it.
        # A successor starts with both.
        self.umask, self.directory = os.umask(0o077), os.readlink("/proc/self/cwd")
        self.spares, self.ending = set[int](), set[int]()
        self.workers: dict[int, int] = {}
        self.requests, self.lost = 0, 0
        self.pages: pages.Rows = []
        self.surveys_left = SURVEYS
        self.used = time.monotonic()
        self.is_open, self.is_short = True, False
        self.successor = 0
        self.record, self.record_stamp = self._record()
        self.told = 0.0
        self.pid, self.cpus = os.getpid(), os.cpu_count() or 1

    # -- before the first request ------------------------------------------

    def _learned(self) -> facts_of.Facts:
        """Return what was learned: for this key alone, where that is something else than usual."""
        facts = facts_of.load(f"{self.stem}.own") or facts_of.load(f"{self.house}/{self.command_id}.facts")
        if facts is None:
            os._exit(1)
        return facts

    def _record(self) -> tuple[str, tuple[int, int, int]]:
        path = f"{self.house}/{self.command_id}.rec"
        stamp = facts_of.stamp_of(path)
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                return file.read(), stamp
        except OSError:
            return "", stamp

    def prepare(self) -> None:
        """Import, freeze, listen."""
        self.files = Files(self.facts)
        self.files.fd = _high(self.files.fd) if self.files.fd >= 0 else -1
        self.launch_argv = list(sys.orig_argv)
        self.limits, buffering = limits.Limits(), streams.Imports()
        with self.limits, buffering, signals.Imports():
            self._import()
        self.limits.widen()
        is_beside = self.command.kind == "module" and not sys.flags.safe_path
        self.imported = Imported(
            line_buffering=buffering.line_buffering(),
            environment_delta=preload.environment_delta(self.first_environment, worker.environment_data()),
            kept_variables=preload.kept_variables(self.first_environment),
            argument_lists=preload.argument_copies()[0],
            # With -m the caller's directory is the first to be looked in, by who has not imported yet.
            hideable=preload.hideable() if is_beside else frozenset(),
            # What a run has loaded before and learning has left out is no news.
            baseline=frozenset(sys.modules) | self._considered(),
            finders=Finders(),
            code=self._compile(),
            renewals=self.facts.renewals,
            temporary=self.temporary,
            limits=self.limits,
        )
        gc.collect()
        gc.freeze()
        if (changed := self.facts.changed_file() or self.files.reason()) is not None:
            self._give_up(f"{changed} while it was imported")
        self._listen()

    def _import(self) -> None:
        """Import what was learned, in the caller's place as far as the imports ask for it."""
        if not self.facts.asks_cwd:
            os.chdir("/")
        # Asked for or not: what is cached in __pycache__ is there for all who may read it plainly.
        os.umask(self.umask)
        preload.terminals(self.tty)
        preload.arrange(self.command)
        if covered := preload.covered():
            self._rule_out(covered)
        self.temporary = temporary.expected(self.facts.renewals)
        with forks.Imports():
            for name in [m for m in ("runpy", "pkgutil") if self.command.kind == "module"] + self.facts.modules:
                try:
                    __import__(name)
                except BaseException as problem:
                    self._log(f"{name} is left out: {type(problem).__name__}")
        if lost := self.temporary.settle(self.facts.renewals):
            self._rule_out(f"{lost} of its imports cannot be made anew")
        os.chdir("/")
        os.umask(0o077)

    def _considered(self) -> set[str]:
        try:
            with open(f"{self.house}/{self.command_id}.wanted", encoding="utf-8", errors="surrogateescape") as file:
                return {line.partition("\t")[0] for line in file}
        except OSError:
            return set()

    def _compile(self) -> CodeType | str:
        if self.command.kind == "module":
            return ""
        with open(self.command.name, "rb") as file:
            return compile(file.read(), self.command.name, "exec", dont_inherit=True)

    def _listen(self) -> None:
        unfinished = f"{self.stem}.{os.getpid()}.tmp"
        listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        # By the descriptor of the directory: an address holds 107 bytes only.
        directory = os.open(self.house, os.O_PATH | os.O_DIRECTORY)
        listener.bind(f"/proc/self/fd/{directory}/{os.path.basename(unfinished)}")
        os.close(directory)
        listener.listen(BACKLOG)
        os.rename(unfinished, self.stem + ".sock")
        self.socket_inode = os.stat(self.stem + ".sock").st_ino
        # A start that has brought a server: the next one needs no pause (crates/client/src/server/start.rs).
        os.ftruncate(self.lock, 0)
        self.listener = _high(listener.detach())
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        self.taken_in = _high(ours.detach())
        self.taken_out = _high(theirs.detach())
        self.doubt_in, self.doubt_out = map(_high, os.pipe())
        self.wake_in, self.wake_out = map(_high, os.pipe())
        os.set_blocking(self.wake_in, False)
        os.set_blocking(self.wake_out, False)

    # -- serving ------------------------------------------------------------

    def serve(self) -> Inherited:
        """Serve until there is a reason to end; returns only in a forked process."""
        self.handlers = signals.take_over(self.wake_out)
        leader = self._watch_session()
        self._tell()
        while True:
            if self._fork_spares():
                return self._inherited()
            question = poll()
            for fd in (self.wake_in, self.taken_in, *((leader, self.files.fd) if self.is_open else ())):
                if fd >= 0:
                    question.register(fd, POLLIN)
            for conn in self.workers.values():
                question.register(conn, 0)
            self._handle(dict(question.poll(self._timeout_ms())), leader)
            # A spare may be a worker that has not said so yet.
            if not self.is_open and not self.workers and not self.spares:
                self._leave()

    def _fork_spares(self) -> bool:
        """Fork the spares that are missing; True in each of them."""
        while len(self.spares) < self._wanted_spares():
            try:
                pid = os.fork()
            except OSError as problem:
                if not self.is_short:
                    self._log(f"{self.command.name}: no spare, {problem.strerror}")
                self.is_short = True
                return False  # those who come meanwhile run plainly; tried again soon
            self.is_short = False
            if pid == 0:
                return True
            self.spares.add(pid)
        return False

    def _inherited(self) -> Inherited:
        return Inherited(
            server_pid=self.pid,
            command=self.command,
            runtime_directory=self.house,
            record=f"{self.house}/{self.command_id}",
            stem=self.stem,
            key=self.key,
            environment=self.first_environment,
            is_in_session=self.session == "shared",
            handlers=self.handlers,
            imported=self.imported,
            files=self.files,
            listener=self.listener,
            taken=self.taken_out,
            doubt=self.doubt_in,
            connections=tuple(self.workers.values()),
            pages=self.pages,
            is_surveyed=self.surveys_left > 0,
        )

    def _wanted_spares(self) -> int:
        if not self.is_open:
            return 0
        if len(self.workers) + len(self.ending) == 1:
            # The next one is forked when this worker is gone for good: a fork beside it, and the copying
            # of pages in the new spare, would take processor time from it and its client.
            return 1
        return min(SPARES + len(self.workers), max(SPARES, self.cpus))

    def _handle(self, events: dict[int, int], leader: int) -> None:
        caught = b""
        if self.wake_in in events:
            caught = os.read(self.wake_in, 4096)
        # Who was taken must be known before who has died is asked for.
        if self.taken_in in events or caught:
            self._note_taken()
        if bytes([_signal.SIGCHLD]) in caught:
            self._reap()
        for pid, conn in list(self.workers.items()):
            if events.get(conn, 0) & POLLHUP:
                self._kill(pid)
        if self.is_open:
            self._consider_ending(bytes([_signal.SIGTERM]) in caught, leader in events, self.files.fd in events)
        self._keep_house()

    def _consider_ending(self, is_asked: bool, is_alone: bool, is_in_doubt: bool) -> None:
        if is_asked:
            if self.successor:
                os.kill(self.successor, _signal.SIGTERM)
            self.retire("asked to end")
        elif is_alone:
            self.retire("its session has ended")
            signals.release_stopped(self.workers)
        elif is_in_doubt:
            self._judge_files()

    def _note_taken(self) -> None:
        channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, self.taken_in)
        try:
            while True:
                data, rights, _, _ = channel.recvmsg(8, _socket.CMSG_SPACE(4), _socket.MSG_DONTWAIT)
                pid = int.from_bytes(data, "little")
                conn = int.from_bytes(rights[0][2][:4], "little") if rights else -1
                self.spares.discard(pid)
                self.lost = 0
                if conn >= 0:
                    self.workers[pid] = _high(conn)
        except BlockingIOError:
            return
        finally:
            channel.detach()

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if os.WIFSTOPPED(status):
                self._say(pid, wire.STOPPED, os.WSTOPSIG(status))
                continue
            if pid in self.spares:
                self._note_taken()  # if it was taken it has said so, before it died
            is_unwanted = os.waitstatus_to_exitcode(status) == UNWANTED_STATUS and not self._is_committed(pid)
            self._say(pid, *((wire.REFUSED, wire.REQUEST) if is_unwanted else (wire.ENDED, status)))
            is_refusal = os.WIFEXITED(status) and os.WEXITSTATUS(status) >= REFUSED_STATUS
            if is_refusal and pid in self.workers and not self._is_committed(pid):
                self._log(f"{self.command.name}: worker {pid} ended with {os.WEXITSTATUS(status)}")
            self._forget(pid)
            self._consider_failure(pid)
            self.spares.discard(pid)
            self.ending.discard(pid)
            if pid == self.successor:
                self.successor = 0

    def _is_committed(self, pid: int) -> bool:
        return pid in self.workers and is_committed(self.workers[pid])

    def _consider_failure(self, pid: int) -> None:
        """End where spares die before anybody has come: there is no memory for them, say."""
        if pid in self.spares and self.is_open:
            self.lost += 1
            if self.lost > MOST_LOST:
                self.retire("its spares die")

    def _note_pages(self, pid: int) -> None:
        found = pages.take(f"{self.stem}.pages.{pid}")
        if found and self.surveys_left:
            self.pages = found
            self.surveys_left -= 1

    def _say(self, pid: int, kind: int, value: int) -> None:
        conn = self.workers.get(pid, -1)
        if conn < 0:
            return
        channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, conn)
        try:
            channel.send(_FINAL(kind, value), _socket.MSG_NOSIGNAL | _socket.MSG_DONTWAIT)
        except OSError:
            pass  # the worker has told the client itself, and the client is gone
        finally:
            channel.detach()

    def _kill(self, pid: int) -> None:
        """End a worker whose client is gone: killed, or content with what it was told."""
        try:
            os.kill(pid, _signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.ending.add(pid)
        self._forget(pid)

    def _forget(self, pid: int) -> None:
        """A worker is over: take what it has left for the next ones."""
        conn = self.workers.pop(pid, -1)
        if conn < 0:
            return
        is_run = is_committed(conn)
        os.close(conn)
        self._note_pages(pid)
        if is_run:  # who only asks whether anybody serves does not keep a server up
            self.used = time.monotonic()
            self.requests += 1
            if self.is_open and not self.successor:
                self.successor = successor.start_if_wanted(self)
        elif self.files.have_moved():  # it was refused, perhaps, for what no event tells of
            self.retire("a loaded file has changed")

    # -- ending, and being replaced ------------------------------------------

    def _judge_files(self) -> None:
        os.write(self.doubt_out, b"?")
        reason = self.files.reason()
        if reason is None:
            os.read(self.doubt_in, 1)
        else:
            os.write(self.doubt_out, b"!")  # who waits for the verdict has it
            self.retire(reason)

    def retire(self, reason: str) -> None:
        """Take no more requests; running workers go on."""
        if not self.is_open:
            return
        self.is_open = False
        self._log(f"{self.command.name}: ends, {reason}")
        if self._owns_socket():
            os.unlink(self.stem + ".sock")
        # Wakes the spares that wait in accept, and they end; one that has just been
        # taken goes on. A signal could hit it in the middle of a command.
        listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, self.listener)
        listener.shutdown(_socket.SHUT_RDWR)
        listener.close()
        # The start lock is free for the next server of this key.
        os.close(self.lock)

    def _owns_socket(self) -> bool:
        return facts_of.stamp_of(self.stem + ".sock")[2] == self.socket_inode

    def _keep_house(self) -> None:
        now = time.monotonic()
        if self.is_open and abs(now - self.used) > _idle_s() and not self.workers:
            self.retire("idle")
        elif self.is_open and not self._owns_socket():
            self.retire("replaced")
        elif self.is_open and self._has_other_key():
            self.retire("learned again, with another key")
        elif self.is_open and (why := self.limits.reason(len(self.workers))):
            self.retire(why)
        # What is retired has a successor, perhaps, that tells who it is.
        if self.is_open and abs(now - self.told) > 1:
            self._tell()

    def _has_other_key(self) -> bool:
        """Say whether learning again has changed what belongs to a key: then no client comes here any more."""
        if facts_of.stamp_of(f"{self.house}/{self.command_id}.rec") == self.record_stamp:
            return False
        text, self.record_stamp = self._record()
        return text not in ("", self.record)

    def _rule_out(self, why: str) -> NoReturn:
        facts_of.rule_out(self.stem, self.facts, why)
        self._give_up(why)

    def _give_up(self, why: str) -> NoReturn:
        """End before anybody has come: the next call looks again."""
        self._log(f"{self.command.name}: does not start, {why}")
        os._exit(1)

    def _log(self, text: str) -> None:
        """Write a line to the log: words and names, never a value of the environment."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        try:
            os.write(self.log_fd, f"{stamp} {os.getpid()} {text}\n".encode(errors="surrogateescape"))
        except OSError:
            pass  # no room: the commands come first

    def _tell(self) -> None:
        """Write who this is, for `unsnarl warm status`."""
        self.told = time.monotonic()
        facts_of.mark(f"{self.house}/{self.command_id}")
        running = sum(map(is_committed, self.workers.values()))
        if running:
            self.used = self.told
        rows = {
            "command": self.command.name, "python": sys.executable, "session": self.session, "used": self.used,
            "requests": self.requests, "workers": running, "modules": len(self.facts.modules),
            "command_id": self.command_id, "pid": os.getpid(),
        }  # fmt: skip
        unfinished = f"{self.stem}.info.{os.getpid()}"
        try:
            with open(unfinished, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.writelines(f"{name}\t{value}\n" for name, value in rows.items())
            os.rename(unfinished, self.stem + ".info")
        except OSError:
            pass  # no room, or no place: `unsnarl warm status` knows less, and commands run on

    def _leave(self) -> None:
        if not os.path.exists(self.stem + ".sock"):
            try:
                os.unlink(self.stem + ".info")
            except OSError:
                pass
        os._exit(0)

    def _timeout_ms(self) -> int:
        return 50 if self.successor else 1000 if self.is_short else int(min(_idle_s(), 60) * 1000)

    def _watch_session(self) -> int:
        """Return a descriptor that becomes readable when this session's leader ends."""
        if self.session != "shared":
            return -1
        try:
            return _high(os.pidfd_open(os.getsid(0)))
        except OSError:
            os._exit(1)


def _idle_s() -> float:
    try:
        return float(os.environ.get("UNSNARL_WARM_IDLE", "") or IDLE_S)
    except ValueError:
        return IDLE_S


def _high(fd: int) -> int:
    """Move a descriptor out of the range of a command's own."""
    if fd >= HIGH_FD:
        return fd
    try:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH_FD)
    except OSError:
        return fd  # there are none left: in nobody's way as long as this process runs no command
    os.close(fd)
    return high


def main(words: list[str]) -> Taken:
    """Be a server; returns only in a worker, with its request."""
    return Spare(_serve(words)).wait()


def _serve(words: list[str]) -> Inherited:
    """Return in each spare what it inherits; it lets go of the server before it waits."""
    server = Server(words)
    server.prepare()
    return server.serve()
