"""The report's parts: what a run folder holds, numbers, words, figures and pages."""

__all__ = [
    "coverage", "distances", "drawing", "figures", "gallery", "plane",
    "summary", "wording",
]  # fmt: skip
