"""Libraries that change how threads run, together with the scheduler.

One smoke test each; a library that is not installed is skipped by name (the extra `interop`
has all of them).
"""

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration import gil_programs

if TYPE_CHECKING:
    from tests.conftest import Programs

pytestmark = pytest.mark.needs_gil


def needs(module: str) -> None:
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed: pip install '.[interop]'")


def test_gevent(programs: "Programs") -> None:
    needs("gevent")
    gil_programs.succeed(
        programs,
        """
import gevent, gevent.threadpool
gil.install()
with contention.hogs(2):
    pool = gevent.threadpool.ThreadPool(4)
    jobs = [pool.spawn(contention.compute) for _ in range(50)]
    greenlets = [gevent.spawn(lambda: [gevent.sleep(0) for _ in range(20)]) for _ in range(50)]
    gevent.joinall(greenlets, raise_error=True)
    assert [job.get() for job in jobs] == [contention.compute()] * 50
""",
    )


def test_gevent_with_everything_patched(programs: "Programs") -> None:
    needs("gevent")
    script = programs.write(
        "patched.py",
        """\
import gevent.monkey
gevent.monkey.patch_all()
import threading, time
from unsnarl import gil
gil.install()
done = []
def work(number):
    time.sleep(0.001)
    done.append(number)
threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert sorted(done) == list(range(20)), done
assert gil.installed()
""",
    )
    outcome = programs.python(script)
    assert outcome.status == 0, outcome.complaint


def test_uvloop(programs: "Programs") -> None:
    needs("uvloop")
    gil_programs.succeed(
        programs,
        """
import asyncio, uvloop
gil.install()
async def echo(reader, writer):
    while word := await reader.read(100):
        writer.write(word)
    writer.close()
async def main():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(100):
        writer.write(b"x")
        assert await reader.read(1) == b"x"
    await asyncio.to_thread(contention.work_through)
    writer.close()
    server.close()
with contention.hogs(2):
    uvloop.run(main())
""",
    )


def test_numpy(programs: "Programs") -> None:
    needs("numpy")
    gil_programs.succeed(
        programs,
        """
import numpy
gil.install()
# Whole numbers below 2 ** 53, sums included: exact in any order of addition.
matrix = numpy.arange(250_000.0).reshape(500, 500) % 1000
expected = float((matrix @ matrix).sum())
def step():
    assert float((matrix @ matrix).sum()) == expected
with contention.hogs(1), contention.Threads(2, step) as numbers, contention.pollers(2) as pollers:
    numbers.await_progress(5)
    pollers.await_progress()
""",
    )


def test_memray(programs: "Programs") -> None:
    """The profiler writes relocation slots as well, those of every object."""
    needs("memray")
    gil_programs.succeed(
        programs,
        """
import memray
gil.install()
with memray.Tracker("inside.bin"):
    with contention.hogs(2), contention.pollers(2) as pollers:
        pollers.await_progress(50)
assert gil.installed()
gil.uninstall()
with memray.Tracker("outside.bin"):
    gil.install()
    with contention.hogs(2), contention.pollers(2) as pollers:
        pollers.await_progress(50)
    assert gil.uninstall()
contention.work_through()
gil.install()
assert gil.installed()
contention.work_through()
""",
    )


def test_py_spy(programs: "Programs") -> None:
    """py-spy stops all threads, at any instruction, and reads their memory."""
    command = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")
    if command is None:
        pytest.skip("py-spy is not installed: pip install '.[interop]'")
    printed = gil_programs.succeed(
        programs,
        f"""
import subprocess
gil.install()
with contention.hogs(2) as hogs, contention.pollers(2) as pollers:
    for _ in range(5):
        done = subprocess.run([{command!r}, "dump", "--pid", str(os.getpid())], capture_output=True, text=True)
        hogs.await_progress()
        pollers.await_progress()
print(done.returncode, done.stderr if done.returncode else done.stdout)
""",
    )
    refusals = ("permission", "not permitted", "python version", "version of python")
    if any(words in printed.lower() for words in refusals):
        pytest.skip(f"py-spy cannot look at this process: {printed.splitlines()[0]}")
    assert printed.startswith("0 "), printed
    assert "hog" in printed or "compute" in printed, printed
