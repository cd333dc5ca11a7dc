"""Norms of windows: scaled by powers of two, which rounds nothing."""

import numpy as np

from unitmargin.checker.arithmetic import OWN, UP, Arithmetic, gamma
from unitmargin.checker.reading import Array
from unitmargin.checker.step import Error, Step, divided, lost


def l2_pool(profile: Arithmetic, size: int) -> Step:
    """Roots of sums of n squares (C16): each is 1-Lipschitz, and no two windows overlap.

    Deployed, of entries over the largest one: n + 2 roundings of a term, halved by the root, four
    more, and what underflows. Here of entries between 1/2 and 1 and smaller ones: n roundings,
    halved, that of the root, and what underflows.
    """
    entries = size**2
    half = (entries + 1) // 2
    own = Error(gamma(half + 2) * UP, lost(2**28, 1.0, OWN))
    deployed = Error(gamma(half + 5, profile.unit) * UP, lost(2**28, 1.0, profile))

    def evaluate(x: Array) -> Array:
        batch, channels, height, width = x.shape
        windows = x.reshape(batch, channels, height // size, size, width // size, size)
        _, exponents = np.frexp(np.abs(windows).max((3, 5), keepdims=True))
        roots = np.sqrt(np.square(np.ldexp(windows, -exponents)).sum((3, 5)))
        norms: Array = np.ldexp(roots, exponents[:, :, :, 0, :, 0])
        return norms

    growth = (1.0, float(entries))
    return Step(evaluate, 1.0, own, deployed, growth, shapes=lambda shape: [divided(shape, size)])
