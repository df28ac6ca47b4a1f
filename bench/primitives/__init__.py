"""Cost of the primitives, compared with the standard library and peers in one run.

    python -m bench.primitives --out bench/results/primitives.json
    python -m bench.primitives.page bench/results/primitives.json --out FILE.md

The pages ``docs/results/primitives-*.md`` are made this way.
"""
