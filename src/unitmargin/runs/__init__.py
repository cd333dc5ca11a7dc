"""A run: its recipe, its folder, and one file of code for each file in it."""

__all__ = [
    "certificates", "findings", "folder", "history", "measurements", "opening", "provenance",
    "recipe", "searches",
]  # fmt: skip
