"""The report's parts: what a run folder holds, numbers, words, figures and pages."""

__all__ = [
    "card", "coverage", "distances", "drawing", "figures", "front_matter", "gallery",
    "markdown", "pages", "plane", "summary", "wording",
]  # fmt: skip
