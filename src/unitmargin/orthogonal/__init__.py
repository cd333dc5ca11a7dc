"""Family: semi-orthogonal dense layers and convolutions, which know how to freeze themselves.

A new method is one file with a subclass of ``OrthogonalLinear`` or ``OrthogonalConv2d`` and one
line here.
"""

from collections.abc import Callable

from unitmargin.orthogonal.bcop import BCOPConv2d
from unitmargin.orthogonal.bjorck import BjorckLinear
from unitmargin.orthogonal.cayley import CayleyConv2d, CayleyLinear, ScaledCayleyConv2d
from unitmargin.orthogonal.cholesky import CholeskyLinear
from unitmargin.orthogonal.layer import OrthogonalConv2d, OrthogonalLinear
from unitmargin.orthogonal.manifold import ManifoldLinear, manifold_conv
from unitmargin.orthogonal.skew import SkewConv2d, SkewLinear

__all__ = [
    "ORTHOGONAL_CONVS", "ORTHOGONAL_LINEARS", "OrthogonalConv2d", "OrthogonalLinear", "bjorck",
    "cayley", "cholesky", "magnitude", "mixing", "polar", "reflection", "skew",
]  # fmt: skip

ORTHOGONAL_LINEARS: dict[str, Callable[..., OrthogonalLinear]] = {
    "bjorck": BjorckLinear,
    "cayley": CayleyLinear,
    "cholesky": CholeskyLinear,
    "manifold": ManifoldLinear,
    "skew": SkewLinear,
}

ORTHOGONAL_CONVS: dict[str, Callable[..., OrthogonalConv2d]] = {
    "bcop": BCOPConv2d,
    "cayley": CayleyConv2d,
    "cayley_scaled": ScaledCayleyConv2d,
    "manifold": manifold_conv,
    "skew": SkewConv2d,
}
