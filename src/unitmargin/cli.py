"""The command line: verbs by name, exit status. ``--help`` does not import torch."""

import os
import sys
from functools import partial

import tyro

from unitmargin import __version__
from unitmargin.foundation.statuses import exit_status
from unitmargin.verbs import VERBS

DESCRIPTION = """Classifiers whose margin is the distance to the decision boundary.

--version prints the version and nothing else.

Exit status: 0 success, 1 a promise broken or not confirmed, 2 a wrong input
or environment, 70 a mistake of unitmargin, 130 interrupted, 141 nobody reads the output."""

HUGE_PAGES = "THP_MEM_ALLOC_ENABLE"
"""Asks torch for large tensors in pages of 2 MB (Linux). An operation that writes to fresh memory,
as most do on large images, is then several times as fast. Torch reads it at its first tensor."""

COMMANDS = {function.__name__: function for function in VERBS}


def _print_version() -> int:
    print(f"unitmargin {__version__}")
    return 0


def main(arguments: list[str] | None = None) -> None:
    """Entry point: exit status 0 for success, 1 for a broken promise, others for all else."""
    os.environ.setdefault(HUGE_PAGES, "1")
    if (sys.argv[1:] if arguments is None else arguments) == ["--version"]:
        sys.exit(exit_status(_print_version))
    chosen = partial(
        tyro.extras.subcommand_cli_from_dict,
        COMMANDS,
        args=arguments,
        prog="unitmargin",
        description=DESCRIPTION,
    )
    sys.exit(exit_status(chosen))


if __name__ == "__main__":
    main()
