"""Family: output layers. A new one is a subclass of ``Head`` and one line here.

Unitary-pair-difference heads make a UGNN; the others are those of 1-Lipschitz networks.
"""

from collections.abc import Callable
from functools import partial

from unitmargin.heads.head import Head, OrthonormalHead, RowNormalizedHead
from unitmargin.heads.upd import BoundedUPD, LbfgsUPD, ManifoldUPD, SimplexUPD, UPDHead
from unitmargin.orthogonal.bjorck import BjorckLinear
from unitmargin.orthogonal.cayley import CayleyLinear
from unitmargin.orthogonal.skew import SkewLinear

__all__ = [
    "HEADS",
    "UPD_HEADS",
    "BoundedUPD",
    "Head",
    "LbfgsUPD",
    "ManifoldUPD",
    "SimplexUPD",
    "UPDHead",
    "upd",
]

UPD_HEADS: dict[str, type[UPDHead]] = {
    "bounded": BoundedUPD,
    "manifold": ManifoldUPD,
    "simplex": SimplexUPD,
    "lbfgs": LbfgsUPD,
}

HEADS: dict[str, Callable[[int, int], Head]] = {
    **UPD_HEADS,
    "bjorck": partial(OrthonormalHead, linear=BjorckLinear),
    "cayley": partial(OrthonormalHead, linear=CayleyLinear),
    "skew": partial(OrthonormalHead, linear=SkewLinear),
    "lln": RowNormalizedHead,
}
