"""The deployed network: fixed layers in a row, and the constants its certificates need."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.frozen.canary import check_arithmetic
from unitmargin.frozen.dense import Dense
from unitmargin.frozen.profiles import PROFILES, Profile, check_environment
from unitmargin.frozen.rounding import RoundingBounds, rounding_bounds
from unitmargin.frozen.spectral import LayerConstants, layer_constants
from unitmargin.layers.arithmetic import UP, gamma
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.normalize import Normalize


class FrozenNetwork(nn.Module):
    """A classifier without parametrisation: what is certified, attacked, saved and deployed.

    ``layers`` ends with the head, a :class:`Dense` layer with one row a class. ``in_shape`` is the
    shape of one input, in the units in which every radius is stated.
    """

    def __init__(
        self,
        layers: Sequence[FixedLayer],
        in_shape: tuple[int, ...],
        classes: Sequence[str] = (),
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        head = layers[-1] if layers else None
        if not isinstance(head, Dense):
            raise ValueError(
                f"the last layer must be a Dense head, got {type(head).__name__}; append the "
                "classifier's output layer"
            )
        self.layers = nn.ModuleList(layers)
        self.in_shape = tuple(in_shape)
        self.n_classes = head.weight.shape[0]
        self.classes = tuple(classes) or tuple(str(index) for index in range(self.n_classes))
        self.facts = dict(facts or {})
        self.requires_grad_(False)
        self._derived: _Derived | None = None

    @property
    def head(self) -> Dense:
        head = self.layers[-1]
        assert isinstance(head, Dense)  # checked at construction
        return head

    @property
    def dtype(self) -> torch.dtype:
        return self.head.weight.dtype

    def forward(self, x: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch classes"]:
        for layer in self.layers:
            x = layer(x)
        return x

    def check_input(self, x: Tensor) -> None:
        """Raise unless ``x`` is a batch of floating-point inputs of the network's shape."""
        if not x.is_floating_point():
            raise ValueError(
                f"x must be floating point, got {x.dtype}; convert it and scale it to the units "
                "the network was trained in"
            )
        if tuple(x.shape[1:]) != self.in_shape:
            raise ValueError(
                f"x must have shape (batch, {', '.join(map(str, self.in_shape))}), got "
                f"{tuple(x.shape)}; add the batch axis or resize the inputs"
            )

    def features(self) -> list[FixedLayer]:
        """All layers but the head."""
        return [layer for layer in self.layers[:-1] if isinstance(layer, FixedLayer)]

    @property
    def input_scale(self) -> float:
        """Lipschitz constant of the input normalisation, 1 without one."""
        first = self.layers[0]
        return first.norm() if isinstance(first, Normalize) else 1.0

    def pair_constants(self) -> Float[Tensor, "classes classes"]:
        r"""Lipschitz bounds :math:`L_{lk} \ge \|w_l - w_k\| \prod_i \|W_i\|` of all logit pairs.

        Proved from the stored weights in float64 (docs/soundness.md), once; proved again if a layer
        or a weight was replaced or changed, by whatever means. The diagonal is zero.
        Cost: seconds for the widest layers the first time, one comparison of all weights after.
        """
        return self.rounding(PROFILES["float64"]).lipschitz

    def rounding(self, profile: Profile) -> RoundingBounds:
        """Proved constants of the network under a profile, kept until a layer or weight changes.

        Raises:
            ProfileError: the environment breaks an assumption of the profile.
            ValueError: a weight that the profile cannot hold, or a layer of unknown rounding.
        """
        device = self.head.weight.device
        check_environment(profile, device)
        derived = self._up_to_date()
        if profile.name not in derived.bounds:
            check_arithmetic(profile, device)
            if not derived.constants:
                derived.constants = [layer_constants(layer) for layer in self._fixed()]
                derived.at_zero = self._norms_at_zero(derived.constants)
            derived.bounds[profile.name] = rounding_bounds(
                self.deployed(profile)._fixed(), derived.constants, profile, derived.at_zero
            )
        return derived.bounds[profile.name]

    def _norms_at_zero(self, constants: Sequence[LayerConstants]) -> list[float]:
        """Upper bounds of the norms of the exact activations at a normalised input of zero: of
        those computed in float64, plus their own rounding errors."""
        wide = self.deployed(PROFILES["float64"])._fixed()
        rows = rounding_bounds(wide, constants, PROFILES["float64"]).layers
        device = self.head.weight.device
        z = torch.zeros(1, *self.in_shape, dtype=torch.float64, device=device)
        norms = []
        for layer, row in zip(wide[:-1], rows, strict=False):
            z = z if isinstance(layer, Normalize) else layer(z)
            norms.append((float(z.norm()) * (1.0 + gamma(z.numel() + 2)) + row.total.at(0.0)) * UP)
        return norms

    def deployed(self, profile: Profile) -> "FrozenNetwork":
        """The same stored weights as the profile evaluates them: a copy that follows changes."""
        networks = self._up_to_date().networks
        if profile.name not in networks:
            layers = profile.deploy(self._fixed())
            networks[profile.name] = FrozenNetwork(layers, self.in_shape, self.classes, self.facts)
        return networks[profile.name]

    def in_float64(self) -> "FrozenNetwork":
        """The same stored weights, evaluated in float64."""
        return self if self.dtype == torch.float64 else self.deployed(PROFILES["float64"])

    def input_norms(self, x: Float[Tensor, "batch *shape"]) -> Float[Tensor, " batch"]:
        """Upper bounds of the norms of the normalised inputs, in float64."""
        wide = x.detach().double()
        first = self.layers[0]
        if isinstance(first, Normalize):
            wide = copy.deepcopy(first).double()(wide)
        flat = wide.flatten(1)
        norms: Tensor = flat.norm(dim=1) * (1.0 + gamma(flat.shape[1] + 8)) * UP
        return norms

    def _fixed(self) -> list[FixedLayer]:
        return [*self.features(), self.head]

    def _up_to_date(self) -> "_Derived":
        """What is derived from the layers, made anew if any of them was replaced or changed."""
        if self._derived is None or not self._derived.belongs_to(self):
            self._derived = _Derived(
                _kinds(self),
                [tensor.detach().clone() for tensor in self.buffers()],
            )
        return self._derived


@dataclass
class _Derived:
    """What was derived from a network, with the layers it was derived from.

    Compared by content: ``tensor.data``, NumPy views and other processes change a weight without
    a trace in its version counter, and a stale constant is a false certificate.
    """

    kinds: list[tuple[type[FixedLayer], dict[str, Any]]]
    tensors: list[Tensor]
    constants: list[LayerConstants] = field(default_factory=list)
    at_zero: list[float] = field(default_factory=list)
    networks: dict[str, FrozenNetwork] = field(default_factory=dict)
    bounds: dict[str, RoundingBounds] = field(default_factory=dict)

    def belongs_to(self, network: FrozenNetwork) -> bool:
        """Whether the network has these layers with these weights, on the same device."""
        tensors = list(network.buffers())
        return (
            _kinds(network) == self.kinds
            and len(tensors) == len(self.tensors)
            and all(
                mine.dtype == other.dtype
                and mine.device == other.device
                and torch.equal(mine, other)
                for mine, other in zip(self.tensors, tensors, strict=True)
            )
        )


def _kinds(network: FrozenNetwork) -> list[tuple[type[FixedLayer], dict[str, Any]]]:
    """Type and configuration of all layers, those of branches included."""
    layers = (layer for layer in network.modules() if isinstance(layer, FixedLayer))
    return [(type(layer), layer.configuration()) for layer in layers]
