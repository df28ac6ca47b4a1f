"""What the primitives cost, beside the standard library's and the peers', in one run.

    python -m bench.primitives --out bench/results/primitives.json
    python -m bench.primitives.page bench/results/primitives.json --out FILE.md

The pages under ``docs/results`` that are called ``primitives-…`` are made this way.
"""
