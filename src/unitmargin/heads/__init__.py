"""Family: output layers. A new one is a subclass of ``Head`` and one line here.

Unitary-pair-difference heads make a UGNN; the others are those of 1-Lipschitz networks.
"""

from collections.abc import Callable
from functools import partial

from unitmargin.heads.head import Head as Head
from unitmargin.heads.plain import OrthonormalHead, RowNormalizedHead
from unitmargin.heads.upd import BoundedUPD as BoundedUPD
from unitmargin.heads.upd import LbfgsUPD as LbfgsUPD
from unitmargin.heads.upd import SimplexUPD as SimplexUPD
from unitmargin.heads.upd import UPDHead as UPDHead
from unitmargin.heads.upd import lbfgs_projection as lbfgs_projection
from unitmargin.heads.upd import pair_differences as pair_differences
from unitmargin.heads.upd import psi as psi
from unitmargin.heads.upd import psi_gradient as psi_gradient
from unitmargin.heads.upd import simplex as simplex
from unitmargin.heads.upd import squared_distances as squared_distances
from unitmargin.orthogonal.bjorck import BjorckLinear
from unitmargin.orthogonal.cayley import CayleyLinear
from unitmargin.orthogonal.skew import SkewLinear

UPD_HEADS: dict[str, type[UPDHead]] = {
    "bounded": BoundedUPD,
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
