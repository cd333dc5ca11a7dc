"""The proof of a network: what is derived from its stored weights, for as long as they stay."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.frozen.canary import require_arithmetic
from unitmargin.frozen.network import FixedNetwork
from unitmargin.frozen.profiles import PROFILES, Profile, require_environment
from unitmargin.frozen.rounding import RoundingBounds, rounding_bounds
from unitmargin.frozen.zero import norms_at_zero
from unitmargin.layers.arithmetic import UP, gamma, norm_bounds, sum_up
from unitmargin.layers.bounds import ENTRIES, LayerConstants
from unitmargin.layers.contract import FixedLayer

CPU = torch.device("cpu")


class Proof(NamedTuple):
    """A network's evaluation under a profile, and its proved bounds."""

    evaluate: Callable[[Tensor], Tensor]
    normalise: Callable[[Tensor], Tensor] | None
    bounds: RoundingBounds

    def input_norms(self, x: Float[Tensor, "batch *shape"]) -> Float[Tensor, " batch"]:
        """Upper bounds of the norms of the exact normalised inputs, in float64; infinite where an
        input is not finite."""
        return input_norms(x, self.normalise, self.bounds.input_scale)


def input_norms(
    x: Float[Tensor, "batch *shape"],
    normalise: Callable[[Tensor], Tensor] | None,
    input_scale: float,
) -> Float[Tensor, " batch"]:
    """Upper bounds of the norms of the exact normalised inputs; see :meth:`Proof.input_norms`.

    Args:
        x: inputs, of any floating type.
        normalise: the input normalisation in float64; None without one.
        input_scale: a bound of its Lipschitz constant.
    """
    wide = x.detach().double()
    if normalise is None:
        return norm_bounds(wide.flatten(1))
    factor, lost = normalising_error(input_scale)
    return (norm_bounds(normalise(wide).flatten(1)) * factor + lost) * UP


def largest_input_norm(norm: float, entries: int, input_scale: float) -> float:
    """What :func:`input_norms` answers at most for inputs of that many entries whose exact
    normalised norm is at most ``norm``."""
    factor, lost = normalising_error(input_scale)
    computed = sum_up(norm * factor, lost)
    bounded = computed * (1.0 + gamma(entries + 8)) ** 2  # once wrong by it, once raised by it
    return sum_up(bounded * factor, lost) * UP**2


def normalising_error(input_scale: float) -> tuple[float, float]:
    """What the norm of a computed normalised input is multiplied by, and what is added to it, to
    bound that of the exact one: equation (7) in float64."""
    lost = PROFILES["float64"].underflow(1, ENTRIES).constant * (1.0 + input_scale)
    return 1.0 + gamma(2), lost


class Known(NamedTuple):
    """What all profiles share: bounds of all layers, and of the activations at zero."""

    constants: list[LayerConstants]
    at_zero: list[float]


class Stored:
    """The layers and numbers that a network has when this is made, to be compared with later ones.

    Compared by content: ``tensor.data``, NumPy views and other processes change a weight without
    a trace in its version counter, and a stale constant is a false certificate.
    """

    def __init__(self, network: FixedNetwork) -> None:
        self.network = network
        self.kinds = kinds(network)
        self.tensors = [tensor.detach().clone() for tensor in tensors(network)]

    def unchanged(self) -> bool:
        """Whether the network still has these layers and numbers, on the same device."""
        found = tensors(self.network)
        return (
            kinds(self.network) == self.kinds
            and len(found) == len(self.tensors)
            and all(
                mine.dtype == other.dtype
                and mine.device == other.device
                and torch.equal(mine, other)
                for mine, other in zip(self.tensors, found, strict=True)
            )
        )


class Proofs:
    """What was derived from a network, with the layers and weights it was derived from."""

    def __init__(self, network: FixedNetwork) -> None:
        self.source = network
        self.stored = Stored(network)
        self.networks: dict[str, FixedNetwork] = {}
        self.proofs: dict[str, Proof] = {}
        self.known: Known | None = None

    def up_to_date(self, network: FixedNetwork) -> bool:
        """Whether it is this network, still with these layers and weights, on the same device."""
        return network is self.source and self.stored.unchanged()

    def evaluating(self, profile: Profile) -> FixedNetwork:
        """The same stored weights as the profile evaluates them, in an environment that lets it.

        Whoever changed it would be certified by the bounds of another one: it stays here.
        """
        require_environment(profile, self.source.device)
        if profile.name not in self.networks:
            self.networks[profile.name] = profile.deploy(self.source)
        return self.networks[profile.name]

    def proof(self, profile: Profile) -> Proof:
        """The bounds of that evaluation, proved once; see :meth:`FrozenNetwork.proof`."""
        network = self.evaluating(profile)
        if profile.name not in self.proofs:
            self._require_arithmetic(profile)
            wide = self.evaluating(PROFILES["float64"])
            known = self.known or _known(wide)
            self.known = known  # whole: another thread may read it
            bounds = rounding_bounds(network, known.constants, profile, known.at_zero)
            normalise = None if wide.normalisation is None else lambda x: wide.normalised(x)
            self.proofs[profile.name] = Proof(lambda x: network(profile.hold(x)), normalise, bounds)
        return self.proofs[profile.name]

    def _require_arithmetic(self, profile: Profile) -> None:
        """Raise unless products are what the bounds assume: those of the profile, and the float64
        ones on the device and in the processor that norms are bounded by."""
        wide, device = PROFILES["float64"], self.source.device
        for asked, place in dict.fromkeys(((profile, device), (wide, device), (wide, CPU))):
            require_arithmetic(asked, place)


def _known(wide: FixedNetwork) -> Known:
    """Bounds of what is evaluated, whose numbers float64 holds as they are stored."""
    constants = [layer.constants() for layer in (*wide.features(), wide.head)]
    return Known(constants, norms_at_zero(wide, constants, PROFILES["float64"]))


def kinds(network: FixedNetwork) -> list[tuple[str, type[FixedLayer], dict[str, Any]]]:
    """Place, type and configuration of all layers, those of branches included; one that stands in
    two places is two."""
    return [
        (name, type(layer), layer.configuration())
        for name, layer in network.named_modules(remove_duplicate=False)
        if isinstance(layer, FixedLayer)
    ]


def tensors(network: FixedNetwork) -> list[Tensor]:
    """All stored numbers, layer by layer; also those that somebody made parameters."""
    return [
        tensor
        for _, layer in network.named_modules(remove_duplicate=False)
        for tensor in (*layer.parameters(recurse=False), *layer.buffers(recurse=False))
    ]
