"""Slices of a map less twice the positive parts of some of their coordinates."""

from functools import partial

import numpy as np

from unitmargin.checker.arithmetic import OWN, UP, Arithmetic, gamma, own_length
from unitmargin.checker.bounds import absolute_norm, norms, spectral_norm
from unitmargin.checker.reading import Array
from unitmargin.checker.slices import CUTS, Cut, slicing
from unitmargin.checker.step import Error, Kind, Step, lost, product, rounded


def reflection(
    cut: Cut, profile: Arithmetic, map_size: list[int], weight: Array, bias: Array,
    **configuration: int,
) -> Step:  # fmt: skip
    """x - 2 W^T max(W x + b, 0) on every slice: (C17).

    Whichever coordinates are positive, the Jacobian is I - 2 V^T V with some rows V of W: it is
    symmetric with eigenvalues from 1 - 2 |W|^2 to 1.
    """
    slices = slicing(cut, weight, map_size, configuration)
    (count, rows, side), entries = weight.shape, slices.entries
    if bias.shape != (count, rows) or rows > side:
        raise ValueError(f"weight {weight.shape} and bias {bias.shape} of a reflection")
    inner, modulus = spectral_norm(weight), absolute_norm(weight)
    size = float(norms(bias.reshape(1, -1))[0]) * slices.served**0.5 * UP
    norm = max(1.0, 2.0 * inner**2 * UP - 1.0) * UP
    output = 2.0 * inner * size * UP

    def error(first: int, second: int, kept: float, arithmetic: Arithmetic) -> Error:
        """Of roundings of a coordinate and of what is taken away, its input ``kept`` in the sum."""
        share, both = gamma(first + 1, arithmetic.unit), 2.0 * gamma(second, arithmetic.unit)
        steep = share * modulus
        flat = share * size + lost((side + 4) * entries, inner, arithmetic)
        slope = 2.0 * inner * steep + both * (0.5 * kept + modulus * (inner + steep))
        constant = 2.0 * inner * flat + both * modulus * (size + flat)
        return Error(slope * UP, constant * UP + lost(2 * (rows + 4) * entries, inner, arithmetic))

    def evaluate(x: Array) -> Array:
        mine = slices.cut(x)
        positive = np.maximum(product(mine, weight.transpose(0, 2, 1)) + bias[:, None, :], 0.0)
        return slices.joined(mine - 2.0 * product(positive, weight), len(x))

    own = error(own_length(side), own_length(rows), 0.0, OWN)
    deployed = error(side, rows + 1, 1.0, profile)
    double = 2.0 * max(modulus, 1.0)
    growth = (1.0 + modulus + double * (inner + modulus), size + 2.0 * double * size)
    own = rounded(own, norm, output)
    return Step(evaluate, norm, own, deployed, growth, output, slices.shapes)


REFLECTION_KINDS = {
    f"{name}_reflection": Kind(partial(reflection, cut), ("map_size", *own), ("weight", "bias"))
    for name, (cut, own) in CUTS.items()
}
"""Residuals on slices."""
