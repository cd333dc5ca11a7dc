"""What every other room stands on: choosing by name, judged options and numbers, cells of tables,
whole files, and what is said of a failure."""

__all__ = [
    "cells", "choice", "failures", "files", "numbers", "options", "statuses", "tables", "tensors",
]  # fmt: skip
