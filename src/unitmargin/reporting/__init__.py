"""The report's parts: evidence read from a run folder, numbers, words, figures and pages."""
