"""The report's parts: evidence read from a run folder, numbers, words, figures and pages."""

__all__ = [
    "distance_figures", "distances", "drawing", "evidence", "figures", "gallery", "plane",
    "summary", "wording",
]  # fmt: skip
