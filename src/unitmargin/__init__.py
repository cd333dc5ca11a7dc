"""Classifiers whose logit margin is the distance to the decision boundary.

Train, freeze, certify every prediction with one forward pass, attack the certificates, deploy.
The source is the paper "Robust-by-Design Classification via Unitary-Gradient Neural Networks"
(Brau, Rossolini, Biondi, Buttazzo, AAAI 2023, arXiv 2209.04293).

Public names stand in ``__init__.pyi``, and are imported on first use: ``unitmargin --help`` does
not wait for torch, and a guard needs NumPy and onnxruntime alone.
"""

import ast
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"


@lru_cache
def _rooms() -> dict[str, str]:
    """The room of each public name, as the stub beside this file states it."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text())
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: f"{__name__}.{node.module}" for node in imports for alias in node.names}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_rooms())
    if name not in _rooms():
        raise AttributeError(f"No {__name__} attribute {name}")
    value = getattr(import_module(_rooms()[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_rooms())
