"""``unsnarl run --green``: threads in user space, in an unchanged program.

Where gevent is not installed only its absence is tested, and the rest is skipped by
name (the extras `green` and `interop` have it).
"""

import re
import shutil
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Outcome, Programs

green = pytest.mark.skipif(find_spec("gevent") is None, reason="gevent is not installed: pip install '.[green]'")

REFUSAL = re.compile(r"error: [^\n]+\nhint: [^\n]+\n")
SETTLED = """
import os, queue, signal, socket, sys, threading, time

def settle():
    for _ in range(20):
        time.sleep(0)
"""
"""The beginning of each program; `settle` lets every other thread run until it waits."""


def run_green(programs: "Programs", text: str, *options: str) -> "Outcome":
    """Run a program in green threads."""
    script = programs.write("app.py", SETTLED + text)
    return programs.run("--green", *options, script)


def lines_of(shown: "Outcome") -> list[str]:
    """Return the output of a program that exited with 0 and an empty stderr."""
    assert (shown.status, shown.complaint) == (0, "")
    return shown.stdout.decode().splitlines()


@green
def test_all_threads_are_one(programs: "Programs") -> None:
    text = """
native = [threading.get_native_id()]
own = {threading.get_ident()}
threads = [threading.Thread(target=lambda: (native.append(threading.get_native_id()), own.add(threading.get_ident()),
    time.sleep(0.01))) for _ in range(5)]
for thread in threads: thread.start()
print(threading.active_count())
for thread in threads: thread.join()
import unsnarl
print(len(native), len(set(native)), len(own), threading.current_thread() is threading.main_thread())
print(unsnarl.gil.installed())
"""
    assert lines_of(run_green(programs, text)) == ["6", "6 1 6 True", "False"]


@green
@pytest.mark.parametrize(
    "text",
    [
        "print(sys.argv, __name__, sys.path[0] == os.path.dirname(os.path.abspath(__file__)), sys.flags.optimize)",
        "sys.exit(3)",
        "sys.exit('a message')",
        "raise SystemExit",
        "threading.Thread(target=sys.exit, args=(5,)).start()",
        "import atexit; atexit.register(print, 'at the end'); threading.Thread(target=settle).start()",
        "threading.Thread(target=lambda: (settle(), print('a late thread'))).start()",
        "threading.Thread(target=time.sleep, args=(1000,), daemon=True).start(); settle(); print('gone')",
        "os._exit(4)",
        "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
        "os.abort()",
    ],
    ids=lambda text: text[:40],
)
def test_a_program_ends_as_it_does_without(programs: "Programs", text: str) -> None:
    script = programs.write("app.py", SETTLED + text)
    stock = programs.python(script)
    assert programs.run("--green", script) == stock


@green
def test_an_exception_in_a_thread_is_shown_as_ever(programs: "Programs") -> None:
    script = programs.write("app.py", SETTLED + "threading.Thread(target=lambda: 1 / 0, name='t').start()\nsettle()")
    stock, mine = programs.python(script), programs.run("--green", script)
    assert mine == stock


@green
def test_queues_locks_and_pools_work(programs: "Programs") -> None:
    text = """
from concurrent.futures import ThreadPoolExecutor
for kind in (queue.Queue, queue.LifoQueue, queue.PriorityQueue):
    items = kind(3)
    producer = threading.Thread(target=lambda: [items.put(n) for n in range(50)])
    producer.start()
    print(sum(items.get() for _ in range(50)))
    producer.join()
barrier, total = threading.Barrier(4), []
threads = [threading.Thread(target=lambda: (barrier.wait(), total.append(1))) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join(timeout=30)
print(len(total), threading.Semaphore(0).acquire(timeout=0.01), threading.Event().wait(0.01))
with ThreadPoolExecutor(4) as pool:
    print(sum(pool.map(lambda n: n * n, range(10))))
"""
    assert lines_of(run_green(programs, text)) == ["1225", "1225", "1225", "4 False False", "285"]


@green
@pytest.mark.parametrize("options", [(), ("--patch",)], ids=["plain", "patched"])
def test_primitives_of_unsnarl_work(programs: "Programs", options: tuple[str, ...]) -> None:
    text = """
import unsnarl
items, lock, turns = unsnarl.Queue(3), unsnarl.Lock(), []
def take_turns():
    for _ in range(20):
        with lock:
            before = len(turns); time.sleep(0); turns.append(None)
            assert len(turns) == before + 1
threads = [threading.Thread(target=take_turns) for _ in range(4)]
threads += [threading.Thread(target=lambda: [items.put(n) for n in range(100)])]
for thread in threads: thread.start()
print(sum(items.get() for _ in range(100)))
for thread in threads: thread.join()
print(len(turns), unsnarl.Semaphore(0).acquire(timeout=0.01), unsnarl.Event().wait(0.01))
print(issubclass(threading.Event, unsnarl.Event), issubclass(queue.Queue, unsnarl.Queue))
"""
    is_patched = str("--patch" in options)
    assert lines_of(run_green(programs, text, *options)) == ["4950", "80 False False", f"{is_patched} {is_patched}"]


@green
def test_a_signal_handler_raises_in_the_main_thread(programs: "Programs") -> None:
    """This holds if all threads wait and if another one computes. A handler may itself wait."""
    text = """
class Late(Exception): pass
def late(number, frame): raise Late
def attempt(wait):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        wait()
    except Late: print("late", threading.current_thread() is threading.main_thread())
def burn():
    until = time.monotonic() + 0.3
    while time.monotonic() < until: pass
    burnt.set()
signal.signal(signal.SIGALRM, late)
print(signal.getsignal(signal.SIGALRM) is late, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
never, burnt = threading.Event(), threading.Event()
attempt(never.wait)
threading.Thread(target=burn).start()
attempt(never.wait)
print(burnt.wait(30))
def patient(number, frame): time.sleep(0.01); never.set()
print(signal.signal(signal.SIGALRM, patient) is late)
signal.setitimer(signal.ITIMER_REAL, 0.05)
print(never.wait(30))
"""
    assert lines_of(run_green(programs, text)) == ["True True", "late True", "late True", "True", "True", "True"]


@green
def test_an_interrupt_ends_the_program_by_its_signal(programs: "Programs") -> None:
    text = "threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start(); time.sleep(60)"
    shown = run_green(programs, text)
    assert shown.status == -signal.SIGINT
    assert shown.complaint.endswith("KeyboardInterrupt\n")
    assert shown.complaint.count("KeyboardInterrupt") == 1


@green
@pytest.mark.parametrize("options", [(), ("--patch",)], ids=["plain", "patched"])
def test_a_forked_child_has_the_forking_thread_alone(programs: "Programs", options: tuple[str, ...]) -> None:
    """The other threads do not continue in the child, and the primitives that it inherits work."""
    text = """
items, gate, event, parent = queue.Queue(), threading.Semaphore(0), threading.Event(), os.getpid()
here, there = socket.socketpair()
def say(*words): os.write(1, (" ".join(map(str, words)) + f" {os.getpid() == parent}\\n").encode())
def sleeping():
    try: time.sleep(0.3)
    finally: say("slept")
for wait in (lambda: say(items.get()), lambda: (gate.acquire(), say("gate")), lambda: say(here.recv(5)),
             lambda: (event.wait(), say("event")), sleeping):
    threading.Thread(target=wait).start()
settle()
listener = socket.create_server(("127.0.0.1", 0))
child = os.fork()
if child == 0:
    print(threading.active_count(), threading.current_thread() is threading.main_thread(), flush=True)
    items.put("x"); gate.release(); event.set(); settle()
    print(items.get(timeout=30), gate.acquire(timeout=30), event.wait(30), flush=True)
    connection, _ = listener.accept()
    connection.sendall(connection.recv(10))
    time.sleep(0.4)
    worker = threading.Thread(target=print, args=("a new thread",), kwargs={"flush": True})
    worker.start(); worker.join()
    sys.exit(7)
client = socket.create_connection(listener.getsockname())
client.sendall(b"hi")
print(client.recv(10), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
items.put("y"); gate.release(); event.set(); there.send(b"z")
"""
    lines = lines_of(run_green(programs, text, *options))
    assert [line for line in lines if line.endswith("False")] == []
    in_child = ["1 True", "x True True", "a new thread"]
    in_parent = ["b'hi' 7", "y True", "gate True", "event True", "b'z' True", "slept True"]
    assert sorted(lines) == sorted(in_child + in_parent)


@green
def test_processes_of_multiprocessing(programs: "Programs") -> None:
    text = """
import multiprocessing
def answer(pipe): pipe.send(len(pipe.recv())); sys.exit(3)
if __name__ == "__main__":
    for method in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context(method)
        mine, its = context.Pipe()
        process = context.Process(target=answer, args=(its,))
        process.start()
        received = []
        reader = threading.Thread(target=lambda: received.append(mine.recv()))
        reader.start(); settle()
        mine.send("x" * 300_000)
        reader.join(); process.join()
        print(received, process.exitcode)
"""
    assert lines_of(run_green(programs, text)) == ["[300000] 3"] * 3


@green
def test_children_are_green_too_unless_told_otherwise(programs: "Programs") -> None:
    text = """
import subprocess
ask = "import sys, unsnarl; print('gevent' in sys.modules, unsnarl.gil.installed())"
done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
print(done.returncode, done.stdout, end="")
"""
    assert lines_of(run_green(programs, text)) == ["0 True False"]
    assert lines_of(run_green(programs, text, "--no-children")) == ["0 False False"]


@green
def test_asyncio_and_tls(programs: "Programs") -> None:
    text = """
assert "ssl" not in sys.modules
import asyncio
async def main():
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    return await process.wait(), await asyncio.to_thread(threading.get_native_id) == threading.get_native_id()
print(asyncio.run(main()))
import ssl, importlib
print(ssl.SSLContext.__module__, ssl.__spec__.name, importlib.import_module("ssl") is ssl)
"""
    assert lines_of(run_green(programs, text)) == ["(0, True)", "gevent.ssl ssl True"]


def futex_calls(programs: "Programs", *command: str | Path) -> int:
    """Return how many futex calls a command makes, by strace, or skip."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    probe = subprocess.run([strace, "-o", "/dev/null", "true"], capture_output=True, check=False, timeout=60)
    if probe.returncode != 0:
        pytest.skip("strace may not trace here")
    report = programs.directory / "calls"
    shown = programs.execute([strace, "-f", "-e", "trace=futex", "-o", report, *command])
    assert (shown.status, shown.complaint) == (0, "")
    return sum("futex(" in line for line in report.read_text().splitlines())


@green
def test_threads_make_no_futex_call(programs: "Programs") -> None:
    """The rest is the start of the interpreter, which varies from run to run."""
    text = """
items = queue.Queue(10)
producer = threading.Thread(target=lambda: [items.put(n) for n in range(10_000)])
producer.start()
for _ in range(10_000): items.get()
producer.join()
"""
    script = programs.write("app.py", SETTLED + text)
    empty = programs.write("empty.py", "")
    command = (sys.executable, "-P", "-m", "unsnarl", "run", "--green")
    start_up = futex_calls(programs, *command, empty)
    assert futex_calls(programs, *command, script) <= start_up + 100
    assert futex_calls(programs, *command, "--patch", script) <= start_up + 100
    assert futex_calls(programs, sys.executable, script) > start_up + 1000


def assert_refused(shown: "Outcome", status: int, *words: str) -> None:
    assert REFUSAL.fullmatch(shown.complaint), shown.complaint
    assert (shown.status, shown.stdout) == (status, b"")
    for word in words:
        assert word in shown.complaint


def test_gevent_is_not_installed(programs: "Programs") -> None:
    text = """
import sys, unsnarl.cli
sys.modules["gevent"] = None
sys.exit(unsnarl.cli.main(["run", "--green", "-c", "print(1)"]))
"""
    assert_refused(programs.python("-c", text), 1, "gevent", "pip install 'gevent>=25'")


@pytest.mark.parametrize("option", ["--stats", "--slice=5", "--no-kernel-hints"])
def test_options_of_the_scheduler_are_refused(programs: "Programs", option: str) -> None:
    programs.write("app.py", "print('this must not run')")
    assert_refused(programs.run("--green", option, "app.py"), 2, option.partition("=")[0], "--green")
    assert_refused(programs.run("--green=yes", "app.py"), 2, "--green")


def test_switched_off_the_program_is_plain(programs: "Programs") -> None:
    text = "import sys; print([name for name in sys.modules if name.startswith(('unsnarl', 'gevent'))])"
    assert programs.run("--green", "-c", text, env={"UNSNARL": "off"}) == (0, b"[]\n", b"")


@green
def test_modules_that_are_patched_late_can_be_looked_for(programs: "Programs") -> None:
    text = """
from importlib.util import find_spec
import inspect
for name in ("ssl", "multiprocessing.connection"):
    specs = find_spec(name), find_spec(name)
    print(name in sys.modules, {spec.origin.endswith(name.replace(".", "/") + ".py") for spec in specs})
    print(specs[0].loader.get_source(name) is not None)
import ssl, multiprocessing.connection
from importlib.machinery import SourceFileLoader
for module in (ssl, multiprocessing.connection):
    print(module.__spec__.name, type(module.__loader__) is type(module.__spec__.loader) is SourceFileLoader)
print(ssl.SSLSocket.__module__, multiprocessing.connection.Connection._recv.__defaults__[0].__module__)
"""
    assert lines_of(run_green(programs, text)) == [
        *("False {True}", "True", "False {True}", "True"),
        *("ssl True", "multiprocessing.connection True"),
        "gevent.ssl unsnarl.green.late",
    ]


@green
def test_only_the_main_thread_and_handlers_set_handlers(programs: "Programs") -> None:
    text = """
def attempt(done, number=signal.SIGUSR1):
    try:
        signal.signal(number, again)
        done.append("set")
    except ValueError as error:
        done.append(str(error))
def again(number, frame): pass
def once(number, frame):
    done.append(signal.signal(number, signal.SIG_DFL) is once)
def in_thread():
    done = []
    thread = threading.Thread(target=attempt, args=(done,))
    thread.start()
    thread.join()
    print(*done)
in_thread()
done = []
signal.signal(signal.SIGUSR2, once)
os.kill(os.getpid(), signal.SIGUSR2)  # in the main thread
settle()
signal.signal(signal.SIGUSR2, once)
def burn():
    os.kill(os.getpid(), signal.SIGUSR2)
    for _ in range(1000): pass
thread = threading.Thread(target=burn)  # in another one
thread.start()
thread.join()
signal.signal(signal.SIGUSR2, once)
import subprocess
killer = subprocess.Popen(["sh", "-c", f"kill -USR2 {os.getpid()}"])
killer.wait()  # in the loop, most likely
while len(done) < 3: time.sleep(0.001)
print(*done)
def fork():
    pid = os.fork()
    if pid == 0:  # the thread that forks is the child's main thread
        attempt(done)
        os.write(1, f"{done[-1]}\\n".encode())
        os._exit(0)
    os.waitpid(pid, 0)
thread = threading.Thread(target=fork)
thread.start()
thread.join()
"""
    only = "signal only works in main thread of the main interpreter"
    assert sorted(lines_of(run_green(programs, text))) == sorted([only, "True True True", "set"])


@green
def test_children_can_be_waited_for_after_a_subprocess(programs: "Programs") -> None:
    text = """
import subprocess
subprocess.run(["true"])
def fork(status):
    pid = os.fork()
    if pid == 0: os._exit(status)
    return pid
def waited():
    pid, status = os.wait()
    return pid, os.waitstatus_to_exitcode(status)
pid = fork(4)
print(waited() == (pid, 4))
three = {fork(status): status for status in (1, 2, 3)}
print(dict(waited() for _ in three) == three)
first = fork(5)
settle(); time.sleep(0.05)  # it is known by now
print(waited() == (first, 5))
reading, writing = os.pipe()
pid = os.fork()
if pid == 0:
    os.read(reading, 1)
    os._exit(6)
threading.Timer(0.01, os.write, (writing, b"x")).start()  # other threads run while this one waits
print(waited() == (pid, 6))
try:
    os.wait()
except ChildProcessError:
    print("no more")
child = subprocess.Popen(["sh", "-c", "exit 7"])
print(waited() == (child.pid, 7), child.wait(), child.poll())
"""
    assert lines_of(run_green(programs, text)) == ["True", "True", "True", "True", "no more", "True 7 7"]


@green
def test_a_gevent_that_does_not_load(programs: "Programs") -> None:
    """The program runs with the interpreter's threads, and one line reports it."""
    programs.write("broken/gevent/__init__.py", "raise ImportError('by itself')")
    programs.write("app.py", "import threading; print(threading.Lock)")
    shown = programs.run("--green", "app.py", env={"PYTHONPATH": str(programs.directory / "broken")})
    assert (shown.status, b"gevent" in shown.stdout) == (0, False)
    said = r"unsnarl: the program runs with the interpreter's own threads, [^\n]*by itself\n"
    assert re.fullmatch(said, shown.complaint)
