"""Runs one of the square programs once, with the primitives of a library: ``square_programs``."""

from __future__ import annotations

import measured
import square_programs


def main() -> None:
    """Run one program once."""
    parser = measured.parser(__doc__)
    parser.add_argument("program", choices=tuple(square_programs.PROGRAMS))
    parser.add_argument("threads", type=int)
    arguments = parser.parse_args()
    library = measured.begin(arguments)
    measured.use_small_stacks()
    measured.print_figures(elapsed_s=square_programs.PROGRAMS[arguments.program](library, arguments.threads))
    measured.leave()


if __name__ == "__main__":
    main()
