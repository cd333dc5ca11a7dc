"""Certified accuracy, and the radii at which it is told."""

EPSILONS = (0.0, 36 / 255, 0.25, 72 / 255, 108 / 255, 0.5, 1.0)
"""Radii of the certified-accuracy tables: the field's k/255 and round numbers."""


HEADLINE_EPSILON = 36 / 255
"""The radius that the field quotes first."""
