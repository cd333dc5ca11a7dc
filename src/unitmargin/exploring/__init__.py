"""A page on which people play with a deployed network: it runs there, in JavaScript."""

__all__ = ["page", "program", "scripts", "subject"]
