"""``unsnarl doctor``: run a command stock and remedied in turn, and say what would help.

``trial`` runs it once, one way; ``comparison`` sums the runs of each way up;
``importtime`` reads CPython's own import timer; ``diagnosis`` puts these together with the
findings of traced runs; ``view`` shows the result.
"""
