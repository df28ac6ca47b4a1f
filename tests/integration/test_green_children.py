"""Green threads: forked children with any objects on the heap, children of subprocess, and ``os.system``."""

import signal
from typing import TYPE_CHECKING

from tests.integration.test_run_green import SETTLED, green, lines_of, run_green

if TYPE_CHECKING:
    from tests.conftest import Programs

OTHER = """
import subprocess
parent = os.getpid()
go_on = threading.Event()
def other():
    go_on.wait()
    os.write(1, b"the parent\\n" if os.getpid() == parent else b"another process\\n")
thread = threading.Thread(target=other)
thread.start()
settle()
"""
"""A thread that must not continue in any other process."""


@green
def test_a_fork_asks_nothing_of_the_objects_on_the_heap(programs: "Programs") -> None:
    """Neither a weak proxy whose object is dead, nor one that creates its object when its class is read."""
    text = """
import weakref
class Kept: pass
class Lazy:
    @property
    def __class__(self):
        os.write(1, b"evaluated\\n")
        raise RuntimeError("not yet")
objects = [weakref.proxy(Kept()), Lazy()]
child = os.fork()
if child == 0:
    go_on.set(); settle()
    os._exit(0)
print(os.waitpid(child, 0)[1], flush=True)
go_on.set()
"""
    assert lines_of(run_green(programs, OTHER + text)) == ["0", "the parent"]


@green
def test_a_child_that_executes_a_program_is_spared_the_walk_over_the_heap(programs: "Programs") -> None:
    """A walk reads the type of every object it finds, so counting the walks is enough."""
    text = """
import gc
walk = gc.get_objects
def walking():
    os.write(1, b"a walk\\n")
    return walk()
gc.get_objects = walking
def wait_in_child():
    go_on.set(); settle()
    os.write(1, b"before the program\\n")
print(subprocess.run(["true"]).returncode, flush=True)
print(subprocess.run(["true"], preexec_fn=wait_in_child).returncode, flush=True)
child = os.fork()
if child == 0: os._exit(0)
os.waitpid(child, 0)
go_on.set()
"""
    expected = ["0", "a walk", "before the program", "0", "a walk", "the parent"]
    assert lines_of(run_green(programs, OTHER + text)) == expected


@green
def test_no_handler_runs_in_a_child_that_is_about_to_execute_a_program(programs: "Programs") -> None:
    """The signal has the effect that it would have on the executed program."""
    text = """
def handle(number, frame): os.write(1, b"handled\\n")
signal.signal(signal.SIGUSR1, handle)
os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGUSR1))
print(subprocess.run(["true"]).returncode, flush=True)
go_on.set()
"""
    assert lines_of(run_green(programs, OTHER + text)) == [str(-signal.SIGUSR1), "the parent"]


@green
def test_a_command_of_the_shell_lets_the_others_run(programs: "Programs") -> None:
    text = """
reading, writing = os.pipe()
os.set_inheritable(reading, True)
threading.Thread(target=lambda: (settle(), os.write(writing, b"x\\n"))).start()
print(os.system(f"read word <&{reading}; test $word = x && exit 3"))
try:
    os.system(None)
except TypeError as error:
    print(error)
"""
    expected = ["768", "expected str, bytes or os.PathLike object, not NoneType"]
    assert lines_of(run_green(programs, text)) == expected


@green
def test_a_command_of_the_shell_has_the_interrupt_to_itself(programs: "Programs") -> None:
    """The output of stock Python: the program continues and the command ends, with handlers and without."""
    text = (
        SETTLED
        + """
def handle(number, frame): print("handled", flush=True)
for set_to in (signal.SIG_DFL, handle, signal.SIG_IGN):
    for name, number in (("INT", signal.SIGINT), ("QUIT", signal.SIGQUIT)):
        signal.signal(number, set_to)
        print(name, os.system(f"kill -{name} $PPID; ulimit -c 0; kill -{name} $$; exit 5"), flush=True)
        print(signal.getsignal(number) == set_to, flush=True)
signal.signal(signal.SIGINT, handle)
os.kill(os.getpid(), signal.SIGINT)
settle()
"""
    )
    script = programs.write("app.py", text)
    stock = programs.python(script)
    assert (stock.status, stock.stderr, len(stock.stdout.splitlines())) == (0, b"", 13)
    assert programs.run("--green", script) == stock


@green
def test_a_child_forked_during_a_command_of_the_shell_has_its_handlers(programs: "Programs") -> None:
    text = """
def handle(number, frame): os.write(1, b"handled\\n")
signal.signal(signal.SIGINT, handle)
reading, writing = os.pipe()
os.set_inheritable(reading, True)
def fork():
    settle()
    child = os.fork()
    if child == 0:
        os.kill(os.getpid(), signal.SIGINT)
        settle()
        os._exit(0)
    os.waitpid(child, 0)
    os.kill(os.getpid(), signal.SIGINT)
    os.write(writing, b"x\\n")
forking = threading.Thread(target=fork)
forking.start()
print(os.system(f"read word <&{reading}"))
forking.join()
"""
    assert lines_of(run_green(programs, text)) == ["handled", "0"]


@green
def test_a_handler_that_is_set_during_a_command_of_the_shell_stays(programs: "Programs") -> None:
    text = """
reading, writing = os.pipe()
os.set_inheritable(reading, True)
running = threading.Thread(target=lambda: os.system(f"read word <&{reading}"))
running.start()
settle()
def handle(number, frame): print("handled")
print(signal.signal(signal.SIGINT, handle) is signal.default_int_handler)
print(signal.getsignal(signal.SIGINT) is handle)
os.write(writing, b"x\\n")
running.join()
print(signal.getsignal(signal.SIGINT) is handle)
signal.raise_signal(signal.SIGINT)
settle()
"""
    assert lines_of(run_green(programs, text)) == ["True", "True", "True", "handled"]


@green
def test_a_manager_serves_threads_and_processes(programs: "Programs") -> None:
    """The manager's primitives are those of threading, in a process of its own."""
    text = """
import multiprocessing
def put(queue, numbers): numbers["child"] = 2; queue.put("child")
if __name__ == "__main__":
    with multiprocessing.Manager() as manager:
        queue, numbers, lock = manager.Queue(), manager.dict(), manager.Lock()
        received = []
        reader = threading.Thread(target=lambda: received.extend((queue.get(), lock.acquire())))
        reader.start(); settle()
        process = multiprocessing.Process(target=put, args=(queue, numbers))
        process.start(); process.join(); reader.join()
        print(process.exitcode, received, dict(numbers), lock.acquire(False))
"""
    assert lines_of(run_green(programs, text)) == ["0 ['child', True] {'child': 2} False"]
