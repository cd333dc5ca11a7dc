"""What every other room stands on: choosing by name, judged options and numbers, cells of tables,
whole files, what is said of a failure, and precision that no setting takes away."""

__all__ = [
    "cells", "choice", "failures", "files", "full_precision", "numbers", "options", "statuses",
    "tables", "tensors",
]  # fmt: skip
