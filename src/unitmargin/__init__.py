"""Classifiers whose logit margin is the distance to the decision boundary.

Train, freeze, certify every prediction with one forward pass, attack the certificates, deploy.
The source is the paper "Robust-by-Design Classification via Unitary-Gradient Neural Networks"
(Brau, Rossolini, Biondi, Buttazzo, AAAI 2023, arXiv 2209.04293).

Public names stand in ``__init__.pyi``, and are imported on first use: ``unitmargin --help`` does
not wait for torch, and ``import unitmargin.guard`` needs NumPy alone.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """A public name, by lazy-loader, which takes over all three on first use."""
    try:
        import lazy_loader
    except ImportError:
        raise AttributeError(
            f"unitmargin.{name} needs the package lazy-loader; run `pip install unitmargin`, or "
            "import it from its room, as in unitmargin.guard"
        ) from None
    names = ("__getattr__", "__dir__", "__all__")
    public = dict(zip(names, lazy_loader.attach_stub(__name__, __file__), strict=True))
    globals().update(public)
    return public[name] if name in public else public["__getattr__"](name)


def __dir__() -> list[str]:
    return list(__getattr__("__all__"))
