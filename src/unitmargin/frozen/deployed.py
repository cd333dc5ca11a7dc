"""The deployed network: a plain network, its names and facts, and the proof of its certificates."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.frozen.network import FixedNetwork
from unitmargin.frozen.profiles import PROFILES, Profile
from unitmargin.frozen.proof import Proof, Proofs
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.promises import UPD, head_promise


class FrozenNetwork(FixedNetwork):
    """A classifier without parametrisation: what is certified, attacked, saved and deployed.

    A plain network that owns what is proved of it. The last of ``layers`` is the head, a
    :class:`Dense` layer with one row a class. ``in_shape`` is the shape of one input, in the units
    in which every radius is stated. ``facts`` are what was measured at freezing; ``facts["head"]``
    names the promise of the head, UPD if left out.

    Raises:
        ValueError: no :class:`Dense` head, or a promise of the head that is not known.
    """

    def __init__(
        self,
        layers: Sequence[FixedLayer],
        in_shape: Sequence[int],
        classes: Sequence[str] = (),
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        recorded = dict(facts or {})
        super().__init__(layers, in_shape, head_promise(recorded.get("head", UPD.name)))
        self.facts = recorded
        self.n_classes = self.head.size[0]
        self.classes = tuple(classes) or tuple(str(index) for index in range(self.n_classes))
        self._proofs: Proofs | None = None

    def require_input(self, x: Tensor) -> None:
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

    def pair_constants(self) -> Float[Tensor, "classes classes"]:
        r"""Lipschitz bounds :math:`L_{lk} \ge \|w_l - w_k\| \prod_i \|W_i\|` of all logit pairs.

        Proved from the stored weights in float64 (docs/soundness.md); the diagonal is zero.
        Cost: that of :meth:`proof`.
        """
        return self.proof(PROFILES["float64"]).bounds.lipschitz

    def proof(self, profile: Profile) -> Proof:
        """The network as the profile evaluates it, with proved bounds of that evaluation.

        Kept until a layer or weight is replaced or changed, by whatever means, and then proved
        again. Cost: seconds for the widest layers the first time, one comparison of all weights
        after.

        Raises:
            ProfileError: the environment breaks an assumption of the profile.
            ValueError: a weight that the profile cannot hold, or a layer of unknown rounding.
        """
        return self._up_to_date().proof(profile)

    def deployed(self, profile: Profile) -> FixedNetwork:
        """The same stored weights as the profile evaluates them: a copy that follows changes."""
        return self._up_to_date().deployed(profile)

    def in_float64(self) -> FixedNetwork:
        """The same stored weights, evaluated in float64."""
        return self if self.dtype == torch.float64 else self.deployed(PROFILES["float64"])

    def _up_to_date(self) -> Proofs:
        if self._proofs is None or not self._proofs.up_to_date():
            self._proofs = Proofs(self)
        return self._proofs
