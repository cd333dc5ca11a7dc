"""Matrices on slices of a map, and absolute values of some of their outputs."""

from functools import partial

import numpy as np

from unitmargin.checker.arithmetic import OWN, UP, Arithmetic, gamma, own_length
from unitmargin.checker.bounds import absolute_norm, norms, spectral_norm
from unitmargin.checker.reading import Array
from unitmargin.checker.slices import CUTS, Cut, slicing
from unitmargin.checker.step import Error, Kind, Step, lost, product


def mixing(
    cut: Cut, profile: Arithmetic, absolute: int, map_size: list[int], weight: Array, bias: Array,
    **configuration: int,
) -> Step:  # fmt: skip
    """W x + b on every slice, absolute values of its first outputs: (C15)."""
    slices = slicing(cut, weight, map_size, configuration)
    (count, rows, side), entries = weight.shape, slices.entries
    if rows != side or bias.shape != (count, side) or absolute > side:
        raise ValueError(f"weight {weight.shape}, bias {bias.shape} and {absolute} absolute values")
    norm, modulus = spectral_norm(weight), absolute_norm(weight)
    size = float(norms(bias.reshape(1, -1))[0]) * slices.served**0.5 * UP

    def error(roundings: int, arithmetic: Arithmetic) -> Error:
        share = gamma(roundings + 1, arithmetic.unit) * UP
        return Error(share * modulus, share * size + lost((side + 4) * entries, norm, arithmetic))

    def evaluate(x: Array) -> Array:
        mixed = product(slices.cut(x), weight.transpose(0, 2, 1)) + bias[:, None, :]
        mixed[..., :absolute] = np.abs(mixed[..., :absolute])
        return slices.joined(mixed, len(x))

    own, deployed = error(own_length(side), OWN), error(side, profile)
    return Step(evaluate, norm, own, deployed, (modulus, size), size, slices.shapes)


MIXING_KINDS = {
    f"{name}_mixing": Kind(partial(mixing, cut), ("absolute", "map_size", *own), ("weight", "bias"))
    for name, (cut, own) in CUTS.items()
}
"""Layers of matrices on slices."""
