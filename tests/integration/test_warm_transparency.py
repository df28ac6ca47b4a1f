"""A warm command is the plain command: what it sees, what it writes, how it ends."""

import json
import os
import resource
import signal
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.integration.waiting import until

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

REPORT = """
import sys, os, json, signal, resource, locale, logging, subprocess
main = sys.modules["__main__"]
masks = [n for n in range(1, 65) if n in signal.pthread_sigmask(signal.SIG_BLOCK, [])]
print(json.dumps({
    "argv": sys.argv, "path": sys.path, "cwd": os.getcwd(), "environ": list(os.environ.items()),
    "umask": oct(os.umask(0)), "limits": [resource.getrlimit(n) for n in range(16)],
    "nice": os.nice(0), "affinity": sorted(os.sched_getaffinity(0)),
    "main": [main.__name__, main.__file__, repr(main.__spec__), type(main.__loader__).__name__],
    "streams": [[s.encoding, s.errors, s.line_buffering, s.write_through, s.mode, s.name, s.isatty()]
                for s in (sys.stdin, sys.stdout, sys.stderr)],
    "signals": [str(signal.getsignal(n)) for n in signal.valid_signals()], "blocked": masks,
    "flags": str(sys.flags), "orig_argv": sys.orig_argv, "locale": locale.setlocale(locale.LC_ALL),
    "groups": os.getgroups(), "ids": [os.getresuid(), os.getresgid()],
    "fds": sorted(int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) < 100)[:-1],
    "child": sorted(subprocess.check_output(["env"], text=True).splitlines()),
    "comm": open("/proc/self/comm").read(), "hash_seeded": sys.flags.hash_randomization,
}))
sys.stderr.write("warm\\n" if "_unsnarl_warm" in sys.modules else "plain\\n")
"""


def reports(rig: "Rig", script: str, *args: str, **options: object) -> tuple[dict[str, object], dict[str, object]]:
    """Return the script's report of a plain and of a warm run."""
    rig.start(script, **{k: v for k, v in options.items() if k in ("env", "preexec_fn")})
    plain, warm = rig.plain(script, *args, **options), rig.served(script, *args, **options)
    assert (plain.stderr, warm.stderr) == (b"plain\n", b"warm\n"), rig.log()
    return json.loads(plain.stdout), json.loads(warm.stdout)


LOCALES: list[dict[str, str] | None] = [
    None,
    {},
    {"LANG": "C"},
    {"LC_ALL": "POSIX"},
    {"LC_CTYPE": "C", "LANG": "C.UTF-8"},
]


# Without any, as cron, systemd and Docker start a command, the interpreter sets LC_CTYPE itself (PEP 538).
@pytest.mark.parametrize("names", LOCALES, ids=str)
def test_a_command_sees_the_same(rig: "Rig", names: dict[str, str] | None) -> None:
    env = rig.env
    if names is not None:
        env = {name: value for name, value in env.items() if not name.startswith(("LANG", "LC_"))} | names
    plain, warm = reports(rig, rig.script("report", REPORT), "a", "", "ü", "--x=1", env=env)
    for name, value in plain.items():
        assert warm[name] == value, name
    # Learning ends with the server of this very caller.
    assert [line.count("report") for line in rig.servers()] == [1]


def test_limits_mask_and_ignored_signals_are_the_callers(rig: "Rig") -> None:
    def arrange() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (777, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        os.umask(0o027)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])

    plain, warm = reports(rig, rig.script("report", REPORT), preexec_fn=arrange)
    for name, value in plain.items():
        assert warm[name] == value, name


def test_a_nice_caller_gets_a_nice_worker_and_the_others_do_not(rig: "Rig") -> None:
    script = rig.script("report", REPORT)
    _, nicer = reports(rig, script, preexec_fn=lambda: os.nice(5))
    _, usual = reports(rig, script)
    assert (nicer["nice"], usual["nice"]) == (min(os.nice(0) + 5, 19), os.nice(0))


def test_inherited_descriptors_keep_their_numbers(rig: "Rig") -> None:
    script = rig.script("fds", "import os, sys\nfor n in sys.argv[1:]: os.write(int(n), n.encode())\n")
    rig.start(script)
    pipes = [os.pipe() for _ in range(50)]
    ends = [w for _, w in pipes]
    outcome = rig.served(script, *map(str, ends), pass_fds=ends)
    assert outcome.returncode == 0, outcome.stderr
    for read, write in pipes:
        os.close(write)
        assert os.read(read, 100) == str(write).encode()
        os.close(read)


def test_a_large_environment_arrives(rig: "Rig") -> None:
    script = rig.script(
        "env", "import os\nimport sys\nprint(sum(map(len, os.environ.values())), '_unsnarl_warm' in sys.modules)\n"
    )
    env = rig.env | {f"V{n}": "x" * 100_000 for n in range(20)}
    rig.start(script)
    plain, warm = rig.plain(script, env=env), rig.served(script, env=env)
    assert warm.stdout.split() == [plain.stdout.split()[0], b"True"]


ENDINGS = {
    "falls off the end": "print('x')",
    "status": "import sys; sys.exit(7)",
    "large status": "import sys; sys.exit(300)",
    "message": "import sys; sys.exit('bad')",
    "exception": "def f():\n    1 / 0\nprint('x')\nf()",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('x') from e",
    "interrupt": "raise KeyboardInterrupt",
    "os._exit": "import os; os._exit(9)",
    "kill": "import os; os.kill(os.getpid(), 9)",
    "term": "import os; os.kill(os.getpid(), 15)",
    "abort": "import os; os.abort()",
    "atexit": "import atexit, sys\natexit.register(print, 'bye')\nsys.exit(2)",
    "atexit raises": (
        "import atexit\n"
        "class F:\n"
        "    def __call__(self): 1 / 0\n"
        "    def __repr__(self): return 'F'\n"
        "atexit.register(F())"
    ),
    "thread": (
        "import threading\n"
        "def f():\n"
        "    import time; time.sleep(0.2); print('late')\n"
        "threading.Thread(target=f).start()"
    ),
    "unflushed file": "f = open('out', 'w'); f.write('data'); print(open('out').read())",
    "finaliser": "class C:\n    def __del__(self): print('gone')\nkept = C()",
    "what a class of the imports keeps": (
        "import json, os\n"
        "class C:\n    def __del__(self, write=os.write): write(1, b'gone')\n"
        "json.JSONDecoder.kept = C()"
    ),
    "the same, frozen by the program": (
        "import gc, json, os\n"
        "class C:\n    def __del__(self, write=os.write): write(1, b'gone')\n"
        "json.JSONDecoder.kept = C()\n"
        "gc.collect(); gc.freeze()"
    ),
    "generator": "def g():\n    try:\n        yield\n    finally:\n        print('closed')\nkept = g(); next(kept)",
    "half-made file": (
        "import gzip, sys\ntry: gzip.open('/nonexistent')\nexcept OSError as problem: kept = problem\nsys.exit(5)"
    ),
    "a class named generator": "class generator: pass\nkept = generator()\nprint('x')",
    "temporary directory": "import tempfile\nd = tempfile.TemporaryDirectory(prefix='here', dir='.')",
    "fork": (
        "import os\n"
        "pid = os.fork()\n"
        "print('child' if not pid else 'parent', flush=True) if not pid else os.waitpid(pid, 0)\n"
        "if pid: print('parent')"
    ),
    "buffer of C": "import ctypes; ctypes.CDLL(None).puts(b'from c')",
    "callbacks from C": (
        "import ctypes\n"
        "f = open(__file__)\n"  # where libffi's own descriptor would be, had it been closed
        "kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)\n"
        "made = [kind(lambda n, k=k: n + k) for k in range(3000)]\n"
        "print(sum(function(1) for function in made))"
    ),
    "subprocess": "import subprocess; subprocess.run(['sh', '-c', 'echo out; echo err >&2; exit 3'], check=True)",
    "multiprocessing": (
        "import multiprocessing as m\n"
        "def f(n): return n * n\n"
        "if __name__ == '__main__':\n"
        "    with m.get_context('fork').Pool(2) as p: print(p.map(f, range(4)))"
    ),
    "replaced stream": (
        "import io, sys\n"
        "sys.stdout.write('old')\n"
        "sys.stdout = io.TextIOWrapper(sys.stdout.buffer, line_buffering=False)\n"
        "sys.stdout.write('new')"
    ),
    "detached stream": "import io, sys; sys.stdout = io.TextIOWrapper(sys.stdout.detach()); print('x')",
    "twice detached": "import io, sys\nfor _ in 1, 2: sys.stdout = io.TextIOWrapper(sys.stdout.detach())\nprint('x')",
    "closed stdout": "import sys; sys.stdout.close()",
    "warning": "import warnings; warnings.warn('old', DeprecationWarning)",
    "syntax": "import sys\nexec('1 +')",
    **{
        name: f"import sys\nprint('x')\n{text}"
        for name, text in {
            "huge status": "sys.exit(2**64 + 3)",
            "negative status": "sys.exit(-3)",
            "status of a class": "class S(int):\n    def __and__(self, other): return 99\nsys.exit(S(4))",
            "nameless message": "class X:\n    def __str__(self): 1 / 0\nsys.exit(X())",
            "exit without a code": "class E(SystemExit):\n    code = property(lambda self: 1 / 0)\nraise E('bad')",
            "hook raises": "def hook(*_): raise ValueError(1)\nsys.excepthook = hook\n1 / 0",
            "hook is nothing": "sys.excepthook = None\n1 / 0",
            "hook exits": "def hook(*_): sys.exit(4)\nsys.excepthook = hook\n1 / 0",
            "hook is missing": "del sys.excepthook\n1 / 0",
            "hook sees no other": "sys.excepthook = lambda *_: print(sys.exc_info())\n1 / 0",
            "exit function sees no other": "import atexit\natexit.register(lambda: print(sys.exc_info()))\n1 / 0",
            "no stdout": "del sys.stdout",
            "no stderr": "del sys.stderr\nsys.exit('message')",
            "nothing as stderr": "sys.stderr = None\nsys.exit('message')",
            "closed stderr": "sys.stderr.close()\nsys.exit('message')",
            "stdout that cannot be closed": "class S:\n    def write(self, text): pass\n    def flush(self): 1 / 0\n"
            "    def __repr__(self): return 'S'\n"
            "sys.stdout = S()\nsys.exit(3)",
            "shutdown of threads raises": "import threading\ndef shutdown(): 1 / 0\nthreading._shutdown = shutdown",
        }.items()
    },
}


@pytest.mark.parametrize("name", ENDINGS)
def test_a_command_ends_the_same(rig: "Rig", name: str) -> None:
    script = rig.script("ending", ENDINGS[name] + "\n")
    rig.start(script)
    plain, warm = rig.plain(script), rig.served(script)
    assert (warm.returncode, warm.stdout, warm.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    # Output to one place arrives in the same order.
    both: dict[str, object] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    plain, warm = rig.plain(script, **both), rig.served(script, **both)
    assert (warm.returncode, warm.stdout) == (plain.returncode, plain.stdout)
    assert not list((rig.directory / "work").glob("here*"))


def test_a_module_runs_as_a_module(rig: "Rig") -> None:
    words = [sys.executable, "-m", "json.tool", "--sort-keys"]
    rig.start(*words)
    text = b'{"b": 1, "a": 2}'
    plain, warm = rig.plain(*words, input=text), rig.served(*words, input=text)
    assert (warm.returncode, warm.stdout, warm.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert warm.stdout.startswith(b"{")
    assert [line.count("json.tool") for line in rig.servers()] == [1]


def package(rig: "Rig", **modules: str) -> dict[str, str]:
    """Put a package ``pkg`` on the path; returns the environment that names it."""
    directory = rig.directory / "site" / "pkg"
    directory.mkdir(parents=True)
    for name, text in {"__init__": "", **modules}.items():
        (directory / f"{name}.py").write_text(text)
    return rig.env | {"PYTHONPATH": str(directory.parent)}


AS_MAIN = (
    "import sys\nif __name__ == '__main__':\n"
    "    for name in sys.argv[1:]: __import__(name)\n    print('run', file=sys.stderr)\n"
)


def test_a_module_is_not_there_before_it_runs(rig: "Rig") -> None:
    words = [sys.executable, "-m", "pkg.tool"]
    env = package(rig, tool=AS_MAIN, other="import pkg.tool\n", quiet="")
    rig.start(*words, env=env)
    # Modules of a run are imported ahead of the next ones, unless Python would then warn.
    assert rig.served(*words, "pkg.other", "pkg.quiet", env=env).stderr == b"run\n"
    until(lambda: b"pkg.other is not imported ahead" in rig.verb("why", "pkg.tool").stdout)
    rig.start(*words, env=env)
    warm = rig.served(*words, env=env)
    assert (warm.returncode, warm.stderr) == (0, b"run\n"), rig.log()


@pytest.mark.parametrize(
    ("init", "is_warned"), [("", False), ("import pkg.tool\n", True)], ids=["by what it imports", "by its package"]
)
def test_a_module_that_is_imported_as_well_is_warned_of_where_it_is_plainly(
    rig: "Rig", init: str, is_warned: bool
) -> None:
    words = [sys.executable, "-m", "pkg.tool"]
    env = package(rig, __init__=init, tool="from pkg import other\n" + AS_MAIN, other="import pkg.tool\n")
    plain = rig.plain(*words, env=env)
    rig.start(*words, env=env)
    warm = rig.served(*words, env=env)
    assert (warm.returncode, warm.stdout, warm.stderr) == (0, plain.stdout, plain.stderr)
    assert (b"RuntimeWarning" in plain.stderr) is is_warned


FULL = {
    "falls off the end": "print('x')\n",
    "status": "import sys\nprint('x')\nsys.exit(3)\n",
    "exception": "print('x')\n1 / 0\n",
    "interrupt": "print('x')\nraise KeyboardInterrupt\n",
    "stderr": "import sys\nsys.stderr.write('x')\nsys.exit(3)\n",
    "stdout in vain": "import sys\nsys.stdout.close()\nsys.exit(3)\n",
}


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("name", FULL)
def test_a_full_disk_is_reported_the_same(rig: "Rig", name: str, stream: str) -> None:
    script = rig.script("full", FULL[name])
    rig.start(script)
    with open("/dev/full", "wb") as full:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: full}
        plain, warm = rig.plain(script, **streams), rig.served(script, **streams)
    assert (warm.returncode, warm.stdout, warm.stderr) == (plain.returncode, plain.stdout, plain.stderr)


def test_a_reader_that_leaves_ends_a_pipeline_the_same(rig: "Rig") -> None:
    script = rig.script("yes", "import signal\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\nwhile True: print('y')\n")
    rig.start(script)
    statuses: list[bytes] = []
    for words in ([script], [str(rig_client()), "warm", "run", "--require", "--", script]):
        line = f"{' '.join(words)} | head -1; echo ${{PIPESTATUS[0]}}"
        statuses.append(rig.plain("bash", "-c", line).stdout)
    assert statuses[0] == statuses[1] == b"y\n141\n"


def rig_client() -> str:
    """Return the path of the client."""
    import sysconfig

    return os.path.join(sysconfig.get_path("scripts"), "unsnarl")


def test_random_numbers_differ_from_run_to_run(rig: "Rig") -> None:
    script = rig.script("dice", "import random, uuid\nprint(random.random(), uuid.uuid4())\n")
    rig.start(script)
    assert len({rig.served(script).stdout for _ in range(5)}) == 5


def test_what_imports_have_kept_of_arguments_is_replaced(rig: "Rig") -> None:
    (rig.directory / "bin" / "keeps.py").write_text(
        "import os, sys\nkept = [os.fsencode(a) for a in sys.argv]\nrest = sys.argv[1:]\n"
        "def show(args=sys.argv): return args, kept, rest\n"
    )
    script = rig.script("keeper", "import keeps\nprint(keeps.show(), '_unsnarl_warm' in __import__('sys').modules)\n")
    rig.start(script)
    assert rig.served(script, "one", "two").stdout.decode() == (
        f"(['{script}', 'one', 'two'], [b'{script}', b'one', b'two'], ['one', 'two']) True\n"
    )


@pytest.mark.parametrize("how", ["here = os.umask(0o77); os.umask(here)", "from keeper import here"])
def test_a_file_mode_mask_that_imports_have_kept_is_the_callers(rig: "Rig", how: str) -> None:
    (rig.directory / "bin" / "keeper.py").write_text("import os\nhere = os.umask(0o77)\nos.umask(here)\n")
    script = rig.script("masked", f"import keeper, os\n{how}\nprint(oct(keeper.here), oct(here), oct(os.umask(0)))\n")
    for mask in (0o022, 0o027, 0o777):
        plain = rig.plain(script, umask=mask)  # before the server watches where a .pyc goes
        rig.start(script, umask=mask)
        assert {stat.S_IMODE(path.stat().st_mode) for path in rig.house.glob("*.lo[cg]*")} == {0o600}
        warm = rig.served(script, umask=mask)
        assert warm.stdout == plain.stdout == f"{mask:#o} {mask:#o} {mask:#o}\n".encode(), rig.log()


def test_what_a_server_caches_is_there_for_all_who_may_read_it_plainly(rig: "Rig") -> None:
    (rig.directory / "bin" / "mod.py").write_text("")
    (rig.directory / "bin" / "mod.py").chmod(0o644)
    rig.start(rig.script("imports", "import mod\n"), umask=0o022)
    cache = rig.directory / "bin" / "__pycache__"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (cache, *cache.iterdir())] == [0o755, 0o644]


def test_what_imports_set_in_the_environment_is_set_again(rig: "Rig") -> None:
    (rig.directory / "bin" / "sets.py").write_text(
        "import os\nos.environ['SET_AT_IMPORT'] = os.environ.get('SOURCE', 'none')\nos.environ.pop('DROPPED', None)\n"
    )
    script = rig.script(
        "setter", "import sets, os\nprint(os.environ.get('SET_AT_IMPORT'), os.environ.get('DROPPED'))\n"
    )
    for source in ("a", "b"):
        env = rig.env | {"SOURCE": source, "DROPPED": "x"}
        rig.start(script, env=env)
        assert rig.served(script, env=env).stdout == rig.plain(script, env=env).stdout == f"{source} None\n".encode()
