"""What every other room stands on: choosing by name, judged options and numbers, whole files, and
what is said of a failure."""

__all__ = [
    "choice", "failures", "files", "numbers", "options", "statuses", "tables", "tensors",
]  # fmt: skip
