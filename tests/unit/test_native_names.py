"""`unsnarl._native` adds what the scheduler does not need when it is asked for."""

import subprocess
import sys

WATCHDOG_S = 60


def said(text: str) -> str:
    """Return what a new interpreter prints, in which nothing else has asked the module for a name."""
    return subprocess.run(
        [sys.executable, "-c", text], check=True, capture_output=True, timeout=WATCHDOG_S
    ).stdout.decode()


def test_the_scheduler_is_there_without_the_rest() -> None:
    text = "from unsnarl import _native, gil\nprint('install' in vars(_native), 'Lock' in vars(_native))"
    assert said(text) == "True False\n"


def test_a_name_of_the_rest_is_found_and_stays() -> None:
    text = "from unsnarl import _native\nclass_ = _native.IpcLock\nprint(class_ is vars(_native)['IpcLock'])"
    assert said(text) == "True\n"


def test_the_list_of_names_is_whole() -> None:
    text = "from unsnarl._native import *\nprint(install.__name__, Lock, IpcLock, trace_stop.__name__)"
    assert said(text) == "install <class 'unsnarl.Lock'> <class 'unsnarl.ipc.Lock'> trace_stop\n"


def test_dir_lists_every_name() -> None:
    text = "from unsnarl import _native\nnames = dir(_native)\nprint('Lock' in names, 'install' in names)"
    assert said(text) == "True True\n"


def test_a_name_that_is_not_there_is_an_attribute_error_that_names_it() -> None:
    text = "from unsnarl import _native\ntry: _native.Lok\nexcept AttributeError as error: print(error)"
    assert said(text) == "module 'unsnarl._native' has no attribute 'Lok'\n"


def test_threads_that_ask_at_once_get_the_same_class() -> None:
    text = (
        "import threading\nfrom unsnarl import _native\n"
        "found, together = [], threading.Barrier(8)\n"
        "def ask():\n    together.wait()\n    found.append(_native.Queue)\n"
        "threads = [threading.Thread(target=ask) for _ in range(8)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "print(len(found), len(set(found)))"
    )
    assert said(text) == "8 1\n"


def test_a_module_that_is_imported_again_has_the_same_names() -> None:
    """Programs that isolate what they import remove it from ``sys.modules``, as pytest's ``pytester`` does."""
    text = (
        "import sys\nfrom unsnarl import _native, gil, sync\n"
        "def forget():\n    for name in [*sys.modules]:\n        if name[:7] == 'unsnarl': del sys.modules[name]\n"
        "forget()\nfrom unsnarl import _native as again\n"
        "print(again is _native, again.Event is sync.Event, set(dir(again)) == set(dir(_native)))\n"
        "forget()\nfrom unsnarl import gil as other\nimport unsnarl.sync\n"
        "print(other is gil, other.installed(), unsnarl.sync.Event().wait(0.001))"
    )
    assert said(text) == "False True True\nFalse False False\n"
