"""Family: output layers. A new one is a subclass of ``Head`` and one line here.

Unitary-pair-difference heads make a UGNN; the others are those of 1-Lipschitz networks.
"""

from collections.abc import Callable

from unitmargin.heads.head import Head as Head
from unitmargin.heads.plain import BjorckHead, CayleyHead, RowNormalizedHead, SkewHead
from unitmargin.heads.upd import BoundedUPD as BoundedUPD
from unitmargin.heads.upd import LbfgsUPD as LbfgsUPD
from unitmargin.heads.upd import SimplexUPD as SimplexUPD
from unitmargin.heads.upd import UPDHead as UPDHead

UPD_HEADS: dict[str, Callable[[int, int], Head]] = {
    "bounded": BoundedUPD,
    "simplex": SimplexUPD,
    "lbfgs": LbfgsUPD,
}

HEADS: dict[str, Callable[[int, int], Head]] = {
    **UPD_HEADS,
    "bjorck": BjorckHead,
    "cayley": CayleyHead,
    "skew": SkewHead,
    "lln": RowNormalizedHead,
}
