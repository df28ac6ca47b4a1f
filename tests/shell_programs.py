"""Stands in for programs that a tested script calls: shell scripts, which do what the test says and nothing else."""

from pathlib import Path


def add_program(path: Path, body: str) -> None:
    """Write a program, and the directories that it lies in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
