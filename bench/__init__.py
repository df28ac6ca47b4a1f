"""Measurements of the scheduler, one program each, run in alternation by ``python -m bench``.

Every program measures one thing once, in its own process, and prints one JSON
object on one line. A program never compares: comparing is the runner's work
(``__main__``), judging the renderer's (``render``).
"""
