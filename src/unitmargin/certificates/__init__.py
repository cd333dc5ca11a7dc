"""Certificates: label and radius, the closest adversarial point, tightness, attacks."""

__all__ = [
    "accuracy", "agreement", "certify", "closest", "epsilons", "exhibits", "findings", "joined",
    "plane", "rows", "slack", "spaces", "stored", "tightness",
]  # fmt: skip
