"""A run: its recipe, its folder, and the files in it."""

__all__ = [
    "certificates", "certified", "certifier", "findings", "folder", "history", "linked", "lock",
    "measurements", "opening", "ownership", "provenance", "reading", "recipe", "searches",
    "searching", "settings", "shipped", "weights",
]  # fmt: skip
