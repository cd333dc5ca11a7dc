"""What every classifier owes: to be read layer by layer."""

from abc import ABC, abstractmethod
from itertools import chain

from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.foundation.numbers import require_floating
from unitmargin.layers.contract import Layer
from unitmargin.layers.promises import GNP, SCALING, UPD, Promise


class Network(nn.Module, ABC):
    """A classifier read layer by layer: input normalisation, hidden layers, head."""

    in_shape: tuple[int, ...]

    @abstractmethod
    def named_layers(self) -> list[tuple[str, Layer]]:
        """All layers from the input to the features, each with its name in the state dictionary."""

    @property
    @abstractmethod
    def head_promise(self) -> Promise:
        """What the head promises of its rows."""

    @abstractmethod
    def head_weight(self) -> Float[Tensor, "classes features"]:
        """The output layer's weight as it is evaluated."""

    @abstractmethod
    def normalised(self, x: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        """The input behind its normalisation."""

    @abstractmethod
    def logits(self, normalised: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch classes"]:
        """The logits of a normalised input."""

    def forward(self, x: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch classes"]:
        self.require_shape(x)
        return self.logits(self.normalised(x))

    def require_shape(self, x: Tensor) -> None:
        """Raise unless ``x`` is a batch of inputs of the network's shape."""
        if tuple(x.shape[1:]) != self.in_shape:
            single = tuple(x.shape) == self.in_shape
            raise ValueError(
                f"x must have shape (batch, {', '.join(map(str, self.in_shape))}), got "
                f"{tuple(x.shape)}; {'add the batch axis: x[None]' if single else 'resize it'}"
            )

    def require_input(self, x: Tensor) -> None:
        """Raise unless ``x`` is a batch of floating-point inputs of the network's shape, where the
        network is."""
        require_floating("x", x, "convert it and scale it to the units the network was trained in")
        self.require_shape(x)
        device = next(chain(self.parameters(), self.buffers())).device
        if x.device != device:
            raise ValueError(
                f"x must be on {device}, where the network is, got {x.device}; move one of them"
            )

    @property
    def signed_distance(self) -> bool:
        """Whether the network promises to be a signed distance classifier behind its normalisation:
        every layer GNP and a UPD head. With any other layer, certificates are lower bounds."""
        promises = [layer.promise for _, layer in self.named_layers()]
        return all(p in (GNP, SCALING) for p in promises) and self.head_promise == UPD
