"""The report's parts: what a run folder holds, numbers, words, figures and pages."""

__all__ = [
    "card", "classes", "comparison", "coverage", "coverage_figure", "curves", "distances",
    "drawing", "figures", "front_matter", "gallery", "markdown", "origin", "pages", "places",
    "plane", "runs_table", "statistics", "summary", "titles", "wording",
]  # fmt: skip
