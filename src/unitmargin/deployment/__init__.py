"""The shipped network: what leaves this package, and computes the certificates that it issues."""

__all__ = ["export"]
