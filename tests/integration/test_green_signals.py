"""Green threads: a wait for a signal blocks only the waiting thread."""

import signal
from typing import TYPE_CHECKING

import pytest

from tests.integration.test_run_green import green, lines_of, run_green

if TYPE_CHECKING:
    from tests.conftest import Programs


@green
def test_a_pause_lets_the_others_run_until_a_handler_has_run(programs: "Programs") -> None:
    text = """
def handle(number, frame): print("handled")
def send():
    settle()
    print("worked")
    os.kill(os.getpid(), signal.SIGUSR1)
signal.signal(signal.SIGUSR1, handle)
for _ in range(2):
    threading.Thread(target=send).start()
    signal.pause()
    print("over")
paused = threading.Thread(target=lambda: (signal.pause(), print("over")))
paused.start()
settle()
os.kill(os.getpid(), signal.SIGUSR1)
paused.join()
"""
    assert lines_of(run_green(programs, text)) == ["worked", "handled", "over"] * 2 + ["handled", "over"]


@green
@pytest.mark.parametrize(
    "sender", ["os.kill(os.getpid(), signal.SIGUSR1)", "subprocess.run(kill)"], ids=["own", "other"]
)
def test_what_a_handler_raises_ends_the_pause(programs: "Programs", sender: str) -> None:
    """In every thread that may be running when the signal arrives, and in none."""
    text = f"""
import subprocess
kill = ["sh", "-c", f"kill -USR1 {{os.getpid()}}"]
class Over(Exception): pass
def handle(number, frame): raise Over
signal.signal(signal.SIGUSR1, handle)
threading.Thread(target=lambda: (settle(), {sender})).start()
try:
    signal.pause()
except Over:
    print("over")
settle()
"""
    assert lines_of(run_green(programs, text)) == ["over"]


@green
@pytest.mark.parametrize("is_blocked", [True, False])
def test_waits_for_signals_let_the_others_run(programs: "Programs", is_blocked: bool) -> None:
    """The program need not block the signal, though POSIX requires it; the mask is restored afterwards."""
    text = f"""
waited = {{signal.SIGUSR1, signal.SIGUSR2}}
if {is_blocked}: signal.pthread_sigmask(signal.SIG_BLOCK, waited)
before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
def send(number):
    settle()
    print("worked")
    os.kill(os.getpid(), number)
def during(number, wait):
    thread = threading.Thread(target=send, args=(number,))
    thread.start()
    found = wait()
    thread.join()
    return found
print(repr(during(signal.SIGUSR1, lambda: signal.sigwait(iter(waited)))))
print(during(signal.SIGUSR2, lambda: signal.sigwaitinfo(waited)).si_signo == signal.SIGUSR2)
print(during(signal.SIGUSR2, lambda: signal.sigtimedwait(waited, 60)).si_pid == os.getpid())
print(signal.sigtimedwait(waited, 0.01), signal.sigtimedwait(waited, 0))
try:
    signal.sigtimedwait(waited, -1)
except ValueError as error:
    print(error)
print(signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before)
"""
    assert lines_of(run_green(programs, text)) == [
        *("worked", repr(signal.SIGUSR1), "worked", "True", "worked", "True"),
        *("None None", "timeout must be non-negative", "True"),
    ]


@green
def test_children_do_not_inherit_what_a_wait_blocks(programs: "Programs") -> None:
    text = """
import subprocess
ask = [sys.executable, "-c", "import signal; print(signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, ()))"]
def work():
    settle()
    print(signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    print(subprocess.run(ask, capture_output=True, text=True).stdout, end="")
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=work).start()
print(signal.sigwait({signal.SIGTERM}) == signal.SIGTERM)
"""
    assert lines_of(run_green(programs, text)) == ["True", "False", "True"]


@green
def test_a_signal_for_a_thread(programs: "Programs") -> None:
    """By its own ident, by the main thread's, and by one that no thread has."""
    text = """
done = []
def handle(number, frame): done.append(threading.current_thread() is threading.main_thread())
signal.signal(signal.SIGUSR1, handle)
gate = threading.Event()
waiting = threading.Thread(target=gate.wait)
waiting.start()
for number in (threading.get_ident(), threading.main_thread().ident, waiting.ident):
    signal.pthread_kill(number, signal.SIGUSR1)
    settle()
gate.set()
waiting.join()
print(done)
try:
    signal.pthread_kill(waiting.ident, 0)
except ProcessLookupError as error:
    print(error)
"""
    assert lines_of(run_green(programs, text)) == ["[True, True, True]", "[Errno 3] No such process"]
