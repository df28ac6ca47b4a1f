"""Cost of the primitives, compared with the standard library and peers in one run.

    python -m bench.primitives --out FILE.json
    python -m bench.primitives.page FILE.json --out FILE.md

The pages ``docs/results/primitives-*.md`` are made this way.
"""
