"""Start a script with a pack: what a generated launcher calls.

Invariant: whatever is wrong with the pack, the script runs, with one line of
warning. ``__main__`` is the script, ``sys.argv`` and ``sys.path`` are as in a
plain run.
"""

import sys

from . import container, finder


def install(path: str) -> bool:
    """Put the pack first on ``sys.meta_path``; False, with a warning, if it cannot be used."""
    try:
        import mmap

        with open(path, "rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
        entries, area = container.read(data)
    except (OSError, ValueError, EOFError, TypeError) as problem:
        finder.warn(f"{path}: {problem}")
        return False
    sys.meta_path.insert(0, finder.PackFinder(entries, area))
    return True


def run(path: str, script: str, main: dict[str, object]) -> object:
    """Prepare ``__main__`` for the script and return its code object."""
    sys.argv[0] = script
    if not sys.flags.safe_path:
        sys.path[0] = script.rpartition("/")[0]
    install(path)
    main["__file__"] = script
    for name in ("sys", "pack"):
        main.pop(name, None)
    with open(script, "rb") as file:
        return compile(file.read(), script, "exec", dont_inherit=True)
