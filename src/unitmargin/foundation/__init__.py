"""What every other room stands on: choosing by name, judged options and numbers, whole files."""

__all__ = ["choice", "files", "numbers", "options", "tables", "tensors"]
