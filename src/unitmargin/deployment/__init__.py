"""The shipped network: what leaves this package, and computes the certificates that it issues."""

from unitmargin.deployment.certifying import certifying_network
from unitmargin.deployment.export import DisagreementError, export_onnx

__all__ = ["DisagreementError", "certifying_network", "export", "export_onnx", "program"]
