"""What every other room stands on: choosing by name, judged options and numbers, cells of tables,
whole files, what is said of a failure, and types that autocast leaves alone."""

__all__ = [
    "autocast", "cells", "choice", "failures", "files", "numbers", "options", "statuses", "tables",
    "tensors",
]  # fmt: skip
