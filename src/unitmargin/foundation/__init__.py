"""What every other room stands on: choosing by name, judged options, files that appear whole, and
what is said of a failure."""

__all__ = ["choice", "failures", "files", "options", "statuses", "tables", "tensors"]
