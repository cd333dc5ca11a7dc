"""``python -m unitmargin``: the command line."""

from unitmargin.cli import main

main()
