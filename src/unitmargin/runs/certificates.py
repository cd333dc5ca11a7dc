"""The files of certify."""

RADIUS_AGREEMENT = 1e-10
"""Radii written earlier may have been computed with another batch size or thread count, which
moves float64 logits by a few ulp; a larger difference means another model or other data."""
