"""Classifiers whose logit margin is the distance to the decision boundary.

Train, freeze, certify every prediction with one forward pass, attack the certificates, deploy.
The source is the paper "Robust-by-Design Classification via Unitary-Gradient Neural Networks"
(Brau, Rossolini, Biondi, Buttazzo, AAAI 2023, arXiv 2209.04293).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unitmargin.certificates import Certificate as Certificate
    from unitmargin.certificates import ClosestAdversarial as ClosestAdversarial
    from unitmargin.certificates import certify as certify
    from unitmargin.certificates import closest_adversarial as closest_adversarial
    from unitmargin.checks import audit as audit
    from unitmargin.data import load_dataset as load_dataset
    from unitmargin.frozen import FrozenNetwork as FrozenNetwork
    from unitmargin.frozen import load as load
    from unitmargin.frozen import save as save
    from unitmargin.models import UGNN as UGNN
    from unitmargin.models import DenseUGNN as DenseUGNN
    from unitmargin.models import build_model as build_model
    from unitmargin.solvers import MapResult as MapResult
    from unitmargin.solvers import minimal_perturbation as minimal_perturbation
    from unitmargin.steps.freeze import freeze as freeze
    from unitmargin.steps.train import train as train

_HOMES = {
    "Certificate": "unitmargin.certificates",
    "ClosestAdversarial": "unitmargin.certificates",
    "DenseUGNN": "unitmargin.models",
    "FrozenNetwork": "unitmargin.frozen",
    "MapResult": "unitmargin.solvers",
    "UGNN": "unitmargin.models",
    "audit": "unitmargin.checks",
    "build_model": "unitmargin.models",
    "certify": "unitmargin.certificates",
    "closest_adversarial": "unitmargin.certificates",
    "freeze": "unitmargin.steps.freeze",
    "load": "unitmargin.frozen",
    "load_dataset": "unitmargin.data",
    "minimal_perturbation": "unitmargin.solvers",
    "save": "unitmargin.frozen",
    "train": "unitmargin.steps.train",
}

__all__ = [
    "UGNN",
    "Certificate",
    "ClosestAdversarial",
    "DenseUGNN",
    "FrozenNetwork",
    "MapResult",
    "audit",
    "build_model",
    "certify",
    "closest_adversarial",
    "freeze",
    "load",
    "load_dataset",
    "minimal_perturbation",
    "save",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that ``unitmargin --help`` does not wait for torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'unitmargin' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
