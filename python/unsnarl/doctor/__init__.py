"""``unsnarl doctor``: run a command stock and with each remedy in turn, and report what would help.

``trial`` runs the command once in one way, ``traced`` under trace; ``comparison`` summarises the runs of each way;
``importtime`` parses CPython's own import timer; ``packing`` and ``warmth`` prepare a pack and a
server; ``forecast`` estimates what a pack would save; ``diagnosis`` combines these with the findings
of traced runs; ``view`` formats the result.
"""
