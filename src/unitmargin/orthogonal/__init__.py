"""Family: dense layers and convolutions that promise J J^T = I and know how to freeze themselves.

A new method is one file with a subclass of ``OrthogonalLinear`` or ``OrthogonalConv2d`` and one
line here.
"""

from collections.abc import Callable

from unitmargin.orthogonal.bjorck import BjorckLinear
from unitmargin.orthogonal.cayley import CayleyConv2d
from unitmargin.orthogonal.cholesky import CholeskyLinear
from unitmargin.orthogonal.convolution import OrthogonalConv2d as OrthogonalConv2d
from unitmargin.orthogonal.linear import OrthogonalLinear as OrthogonalLinear
from unitmargin.orthogonal.manifold import ManifoldLinear, manifold_conv

ORTHOGONAL_LINEARS: dict[str, Callable[..., OrthogonalLinear]] = {
    "bjorck": BjorckLinear,
    "cholesky": CholeskyLinear,
    "manifold": ManifoldLinear,
}

ORTHOGONAL_CONVS: dict[str, Callable[..., OrthogonalConv2d]] = {
    "cayley": CayleyConv2d,
    "manifold": manifold_conv,
}
