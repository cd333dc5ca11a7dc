"""The deployed network: a plain network, its names and facts, and the proof of its certificates."""

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.foundation.choice import choose, require_choice, require_kind
from unitmargin.foundation.numbers import (
    require_interval,
    require_shape,
    shown,
)
from unitmargin.frozen.dense import Dense
from unitmargin.frozen.network import FixedNetwork
from unitmargin.frozen.profiles import PROFILES, Profile, find_profile
from unitmargin.frozen.proof import Proof, Proofs, Stored
from unitmargin.layers.contract import FixedLayer, Layer
from unitmargin.layers.faithful import require_faithful
from unitmargin.layers.network import Network
from unitmargin.layers.promises import HEAD_PROMISES, UPD, Promise


class FrozenNetwork(Network):
    """A classifier without parametrisation: what is certified, attacked, saved and deployed.

    It owns the stored weights and what is proved of them. The last of ``layers`` is the head, a
    :class:`Dense` layer with one row a class. ``in_shape`` is the shape of one input, in the units
    in which every radius is stated. ``facts`` are what was measured at freezing; ``facts["head"]``
    names the promise of the head, UPD if left out. ``domain`` is the interval of the entries of
    inputs that the network was made for, None for any.

    Calling it evaluates under its ``profile``, as :func:`unitmargin.certify` does: ``frozen(x)``
    gives the logits that are certified. ``frozen.network(x)`` is the plain network in the type of
    its weights, which is faster and of which nothing is certified.

    Raises:
        TypeError: a shape, class names or a domain of another kind.
        ValueError: no :class:`Dense` head, a promise of the head or a profile that is not known,
            another number of class names than classes, a domain that is no finite interval; when
            it is called, inputs that the profile cannot hold.
        ProfileError: when it is called, an environment that breaks the profile's arithmetic.
    """

    def __init__(
        self,
        layers: Sequence[FixedLayer],
        in_shape: Sequence[int],
        classes: Sequence[str] = (),
        facts: Mapping[str, Any] | None = None,
        domain: Sequence[float | int] | None = None,
        profile: str = "float64",
    ) -> None:
        super().__init__()
        require_choice("profile", profile, PROFILES)
        self.profile = profile
        self.facts = dict(facts or {})
        name = self.facts.get("head", UPD.name)
        promise = choose("promise of the head", name, HEAD_PROMISES)
        self.network = FixedNetwork(layers, require_shape("in_shape", in_shape), promise)
        self.in_shape = self.network.in_shape
        self.n_classes = self.network.head.size[0]
        self.domain = None if domain is None else _require_domain(domain)
        _require_names(classes)
        self.classes = tuple(classes) or tuple(str(index) for index in range(self.n_classes))
        if len(self.classes) != self.n_classes:
            raise ValueError(
                f"classes must be {self.n_classes} names, one a row of the head, got "
                f"{len(self.classes)}; name all of them, or none"
            )
        self._proofs: Proofs | None = None

    def __getstate__(self) -> dict[str, Any]:
        """All but the proof: whoever unpickles or copies the network proves its own weights."""
        return self.__dict__ | {"_proofs": None}

    @property
    def layers(self) -> torch.nn.ModuleList:
        return self.network.layers

    @property
    def head(self) -> Dense:
        return self.network.head

    @property
    def dtype(self) -> torch.dtype:
        return self.network.dtype

    @property
    def input_scale(self) -> float:
        """Lipschitz constant of the input normalisation, 1 without one."""
        return self.network.input_scale

    def features(self) -> list[FixedLayer]:
        """All layers but the head."""
        return self.network.features()

    def named_layers(self) -> list[tuple[str, Layer]]:
        return self.network.named_layers()

    @property
    def head_promise(self) -> Promise:
        return self.network.head_promise

    def head_weight(self) -> Float[Tensor, "classes features"]:
        return self.network.head_weight()

    def normalised(self, x: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        return self._evaluating().normalised(PROFILES[self.profile].hold(x))

    def logits(self, normalised: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch classes"]:
        return self._evaluating().logits(PROFILES[self.profile].hold(normalised))

    def forward(
        self, x: Float[Tensor, "batch *shape"], profile: Profile | str | None = None
    ) -> Float[Tensor, "batch classes"]:
        """The logits that are certified, in the type of the profile; default: the network's own."""
        if torch.compiler.is_exporting():
            raise ValueError(
                "a frozen network must be exported as what it deploys, got the network that keeps "
                "proofs of it; export frozen.deployed()"
            )
        self.require_input(x)
        chosen = find_profile(self.profile if profile is None else profile)
        output: Tensor = self._evaluating(chosen)(chosen.hold(x))
        return output

    def require_domain(self, x: Tensor, first: int = 0) -> None:
        """Raise unless all finite entries of ``x`` lie in the domain; ``first`` is the number of
        its first sample in the message."""
        if self.domain is None:
            return
        # Compared in the type of x: whoever rounds inputs of the domain to it stays inside.
        low, high = torch.tensor(self.domain, dtype=torch.float64).to(x.device, x.dtype)
        outside = (((x < low) | (x > high)) & x.isfinite()).flatten(1).any(1)
        if bool(outside.any()):
            worst = int(outside.nonzero()[0])
            entries = x[x.isfinite()]
            raise ValueError(
                f"x must lie in {list(self.domain)}, the domain of the network, got entries from "
                f"{float(entries.min())} to {float(entries.max())}, the first outside in sample "
                f"{first + worst}; scale the inputs as those the network was trained on, or pass "
                "domain='any'"
            )

    def pair_constants(self) -> Float[Tensor, "classes classes"]:
        r"""Lipschitz bounds :math:`L_{lk} \ge \|w_l - w_k\| \prod_i \|W_i\|` of all logit pairs.

        Proved from the stored weights in float64 (docs/soundness.md); the diagonal is zero. A copy.
        Cost: that of :meth:`proof`.
        """
        with torch.inference_mode(False):
            return self.kept_proof(PROFILES["float64"]).bounds.lipschitz.clone()

    def proof(self, profile: Profile) -> Proof:
        """The network's evaluation under the profile, and the proved bounds of it.

        The bounds are a copy of those of :meth:`kept_proof`.
        """
        found = self.kept_proof(profile)
        with torch.inference_mode(False):
            return found._replace(bounds=found.bounds.copied())

    def kept_proof(self, profile: Profile) -> Proof:
        """The proof itself, whose bounds are read and never written.

        Kept until a layer or weight is replaced or changed, by whatever means, and then proved
        again. Cost: seconds for the widest layers the first time, one comparison of all weights
        after.

        Raises:
            ProfileError: the environment breaks an assumption of the profile.
            ValueError: a weight that the profile cannot hold, or a layer of unknown rounding.
        """
        with torch.inference_mode(False):  # what is kept has to serve gradients too
            return self._up_to_date().proof(profile)

    def stored(self, profile: Profile) -> list[Stored]:
        """What is stored and what the profile evaluates, to be compared with later."""
        with torch.inference_mode(False):
            proofs = self._up_to_date()
            proofs.proof(profile)
            return [Stored(network) for network in (self.network, *proofs.networks.values())]

    def deployed(self, profile: Profile | str | None = None) -> FixedNetwork:
        """A plain network that computes what the profile does; default: the network's own.

        For whoever evaluates without this package's care (compilers, exports, attacks): a copy,
        which follows no later change. It takes inputs of the profile's type.
        """
        chosen = find_profile(self.profile if profile is None else profile)
        with torch.inference_mode(False):  # what is copied has to serve gradients too
            return copy.deepcopy(self._evaluating(chosen))

    def in_float64(self) -> FixedNetwork:
        """The same stored weights, evaluated in float64; a copy."""
        return self.deployed("float64")

    def _evaluating(self, profile: Profile | None = None) -> FixedNetwork:
        with torch.inference_mode(False):
            return self._up_to_date().evaluating(profile or PROFILES[self.profile])

    def _up_to_date(self) -> Proofs:
        require_faithful(self)
        if self._proofs is None or not self._proofs.up_to_date(self.network):
            self._proofs = Proofs(self.network)
        return self._proofs


def require_frozen(network: object) -> None:
    """Raise a TypeError unless it is a frozen network: of no other is anything proved."""
    require_kind(
        "frozen", network, FrozenNetwork, "call unitmargin.freeze(model), or unitmargin.load(path)"
    )


def _require_domain(value: object) -> tuple[float, float]:
    step = "leave it out to take inputs of any size"
    low, high = require_interval("domain", value, step)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"domain must be two finite numbers, got ({low}, {high}); {step}")
    return low, high


def _require_names(classes: object) -> None:
    """Raise a TypeError unless they are several words: of one word every letter would be a name."""
    words = isinstance(classes, Sequence) and not isinstance(classes, str | bytes)
    if not words or not all(isinstance(name, str) for name in classes):  # type: ignore[attr-defined]
        raise TypeError(
            f"classes must be a list of names, got {shown(classes)}; pass one str a class"
        )
