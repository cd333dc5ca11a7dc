"""Where distances are measured: between inputs, or behind the input normalisation."""

import copy
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor

from unitmargin.certificates.certify import certify
from unitmargin.frozen import FrozenNetwork
from unitmargin.layers.arithmetic import UP
from unitmargin.layers.contract import FixedLayer, require_fixed

INPUT, NORMALISED = "input", "normalised"
"""Names of the spaces: input units, and the space in which the paper measures its norm rows."""

Box = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Space:
    """A space of points, and the network that classifies them.

    Attributes:
        name: one of those above.
        frozen: takes points of the space.
        certified: takes inputs, and certifies them.
        normalisation: takes inputs to points, in float64; None where inputs are the points.
    """

    name: str
    frozen: FrozenNetwork
    certified: FrozenNetwork
    normalisation: FixedLayer | None = None

    def points(self, inputs: Tensor) -> Tensor:
        """The points of inputs."""
        if self.normalisation is None:
            return inputs
        points: Tensor = self.normalisation(inputs.double())
        return points

    def bounds(self, box: Box | None) -> tuple[Tensor, Tensor] | None:
        """Lowest and highest value of each entry of a point whose input lies in the box."""
        if box is None:
            return None
        low, high = (torch.full((1, *self.frozen.in_shape), end).double() for end in box)
        return self.points(low)[0], self.points(high)[0]

    def radii(
        self, inputs: Tensor, radius: Float64[Tensor, " batch"] | None = None
    ) -> Float64[Tensor, " batch"]:
        """Certified radii of inputs, by default computed here, in lengths of the space.

        A radius r of an input is proved for all points within S r behind the normalisation, S its
        Lipschitz constant: of an input nothing but that distance enters (docs/soundness.md).
        """
        if radius is None:
            radius = certify(self.certified, inputs, domain="any").radius
        return radius if self.normalisation is None else radius * (self.normalisation.norm() / UP)


def input_space(frozen: FrozenNetwork) -> Space:
    """The space of the inputs, in whose units every radius is stated."""
    return Space(INPUT, frozen, frozen)


def normalised_space(frozen: FrozenNetwork) -> Space | None:
    r"""The space behind an input normalisation that stretches channels unequally, else None.

    For inputs :math:`x, p` with :math:`\sigma` the standard deviations,

    .. math:: \min_i \sigma_i \, \|x' - p'\| \le \|x - p\| \le \max_i \sigma_i \, \|x' - p'\|,

    so LB/MAP differs between the two spaces. Behind the normalisation the network is what it was
    designed as, which is why the paper's norm rows are measured there. Where all channels are
    stretched alike the ratio is the same in both.
    """
    first = frozen.network.normalisation
    if first is None or len(set(first.gains())) == 1:
        return None
    others = list(frozen.network.layers)[1:]
    layers = [require_fixed(layer) for layer in others]
    behind = FrozenNetwork(layers, frozen.in_shape, frozen.classes, frozen.facts)
    return Space(NORMALISED, behind, frozen, copy.deepcopy(first).double())
