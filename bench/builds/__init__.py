"""Compares two builds of unsnarl on the hot paths, in one alternating run.

    python -m bench.builds --before PYTHON --after PYTHON --out FILE.json
    python -m bench.builds.page FILE.json --out FILE.md

Each build is installed in a virtual environment of its own and given by its interpreter. ``measured`` runs in
them; everything else runs in the interpreter that compares.
"""
