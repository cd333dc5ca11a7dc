"""A canary: does this machine multiply and transform as exactly as the bounds assume?"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from unitmargin.frozen.profiles import Profile, ProfileError
from unitmargin.frozen.transforms import fft_error
from unitmargin.layers.arithmetic import gamma
from unitmargin.layers.fourier import CircularTransform
from unitmargin.layers.half_plane import Size

LENGTH = 1024
"""Terms of the probe's dot products: long enough for a reduced precision to show."""

ROWS = 8
"""Rows and columns of the probe: a matrix product, as the layers call it, not a single sum."""

SPIKE = 1e5
"""One large entry: fast algorithms spread its rounding errors over all outputs."""

MAPS = ((16, 16), (9, 11))
"""Maps of the transform's probes, of even and odd radix, above ``fourier.MATRIX_LIMIT``: by FFT."""

Product = Callable[[Tensor, Tensor], Tensor]


def require_arithmetic(profile: Profile, device: torch.device) -> None:
    """Compare a matrix product, a stack of products and a Fourier transform with exact sums.

    Like the layers it computes outside of autocast, whatever the default device.

    Raises:
        ProfileError: an error above the bound that the certificates rest on.
    """
    with torch.device("cpu"), torch.autocast(device.type, enabled=False):
        products = {name: _product_ratio(one, profile, device) for name, one in PRODUCTS.items()}
        transform = max(_transform_ratio(profile, device, size) for size in MAPS)
    for name, product in products.items():
        if not product <= 1.0:
            raise ProfileError(
                f"profile {profile.name} needs standard dot products, but a {name} on {device} was "
                f"wrong by {product:.3g} times its bound; look for reduced precision or fast "
                "matrix products in the linear algebra library's settings"
            )
    if not transform <= 1.0:
        raise ProfileError(
            f"profile {profile.name} needs a standard FFT, but a transform on {device} was wrong "
            f"by {transform:.3g} times its bound; use another build of torch"
        )


def _probe(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Reproducible numbers without structure, one of them large."""
    values = torch.arange(1, math.prod(shape) + 1, dtype=torch.float64)
    values = torch.sin(values * values)
    values[len(values) // 3] = SPIKE
    return values.reshape(shape).to(dtype)


def _stacked(left: Tensor, right: Tensor) -> Tensor:
    """The second of two products with a bias of zero, as convolutions call them."""
    bias = left.new_zeros(2, 1, len(right))
    stack = torch.stack((right, right)).mT
    return torch.baddbmm(bias, torch.stack((left, left)), stack)[1]


PRODUCTS: dict[str, Product] = {
    "matrix product": torch.nn.functional.linear,
    "stack of products": _stacked,
}
"""Ways in which layers multiply: ``left @ right.mT``."""


def _product_ratio(multiply: Product, profile: Profile, device: torch.device) -> float:
    """Largest error of an entry over its bound; sums are compared with ``math.fsum``."""
    left = _probe((ROWS, LENGTH), profile.dtype)
    right = _probe((ROWS + 1, LENGTH), profile.dtype)[1:]
    computed = multiply(left.to(device), right.to(device)).cpu()
    worst = 0.0
    for i, row in enumerate(left.double()):
        for j, column in enumerate(right.double()):
            terms = (row * column).tolist()
            size = math.fsum(map(abs, terms))
            bound = (gamma(LENGTH + 1, profile.unit) + gamma(1)) * size
            worst = max(worst, abs(math.fsum([*terms, -float(computed[i, j])])) / bound)
    return worst


def _transform_ratio(profile: Profile, device: torch.device, size: Size) -> float:
    """Norm of the error of one transform over its bound; the truth is a matrix product."""
    transform = CircularTransform(size)
    fast = transform.to(device, profile.dtype)
    x = _probe((1, 1, *size), profile.dtype)
    real, pairs = fast.analyse(x.to(device))
    computed = torch.cat((real.flatten(), pairs.flatten())).cpu().double()
    exact = transform.matrix() @ x.double().flatten()
    bound = fft_error(size, profile.unit) + gamma(x.numel()) * x.numel() ** 0.5
    return float((computed - exact).norm() / (bound * x.double().norm()))
