"""Certificates: label and radius, the closest adversarial point, tightness, attacks."""
