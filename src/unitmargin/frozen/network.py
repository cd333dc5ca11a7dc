"""The plain network: fixed layers in a row, evaluated in the type of their numbers."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.frozen.dense import Dense
from unitmargin.layers.contract import FixedLayer, Layer, require_fixed, require_hidden
from unitmargin.layers.network import Network
from unitmargin.layers.promises import UPD, Promise


class FixedNetwork(Network):
    """A classifier of fixed layers, which ends with the head: a :class:`Dense`, one row a class.

    It evaluates and proves nothing; see :class:`unitmargin.FrozenNetwork` for what is deployed.

    Raises:
        ValueError: the last layer is no :class:`Dense`.
        TypeError: a layer that is no fixed one, of which nothing could be proved.
    """

    def __init__(
        self, layers: Sequence[FixedLayer], in_shape: Sequence[int], head_promise: Promise = UPD
    ) -> None:
        super().__init__()
        head = layers[-1] if layers else None
        if not isinstance(head, Dense):
            raise ValueError(
                f"the last layer must be a Dense head, got {type(head).__name__}; append the "
                "classifier's output layer"
            )
        first, *others = layers
        self.layers = nn.ModuleList([require_fixed(first), *map(require_hidden, others)])
        self.in_shape = tuple(in_shape)
        self.promised = head_promise
        self.requires_grad_(False)

    @property
    def head(self) -> Dense:
        head = self.layers[-1]
        assert isinstance(head, Dense)  # required at construction
        return head

    @property
    def head_promise(self) -> Promise:
        return self.promised

    @property
    def dtype(self) -> torch.dtype:
        return self.head.weight.dtype

    @property
    def device(self) -> torch.device:
        return self.head.weight.device

    def features(self) -> list[FixedLayer]:
        """All layers but the head."""
        return [require_fixed(layer) for layer in list(self.layers)[:-1]]

    def named_layers(self) -> list[tuple[str, Layer]]:
        return [(f"layers.{index}", layer) for index, layer in enumerate(self.features())]

    def head_weight(self) -> Float[Tensor, "classes features"]:
        return self.head.weight

    @property
    def normalisation(self) -> FixedLayer | None:
        """The input normalisation, None without one."""
        first = require_fixed(self.layers[0])
        return first if first.normalises else None

    @property
    def input_scale(self) -> float:
        """Lipschitz constant of the input normalisation, 1 without one."""
        first = self.normalisation
        return 1.0 if first is None else first.norm()

    def normalised(self, x: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        first = self.normalisation
        output: Tensor = x if first is None else first(x)
        return output

    def logits(self, normalised: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch classes"]:
        x = normalised
        for index, layer in enumerate(self.layers):
            if index or self.normalisation is None:
                x = layer(x)
        return x
