"""STUB, to be dropped: stands for the exporter until that is there."""

from pathlib import Path

from unitmargin.frozen import FrozenNetwork


def export_onnx(frozen: FrozenNetwork, path: str | Path) -> None:
    """Nothing yet."""
    raise ImportError("STUB: export_onnx is not there yet")
