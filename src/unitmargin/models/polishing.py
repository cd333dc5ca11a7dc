"""One layer as it is deployed, and how far that is from the layer as it was trained."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor

from unitmargin.layers.contract import FixedLayer, Layer, TrainableLayer


def fixed(name: str, layer: Layer) -> FixedLayer:
    """The layer as it is evaluated.

    Raises:
        ValueError: a weight that cannot be made, by the name of the layer.
    """
    return _made(name, layer.fix)


def polished(
    name: str, layer: Layer, dtype: torch.dtype, head: bool = False
) -> tuple[FixedLayer, float]:
    """The layer as it is deployed, and its :func:`distance` from the layer as it is evaluated.

    Args:
        name: in the network; every message starts with it.
        head: whether the layer is the head, of which only differences of rows are evaluated.

    Raises:
        ValueError: a number that is not finite, a weight that is too far from what it promises to
            be polished, or a layer that polishing moves by more than its ``polishing_tolerance``,
            or the largest one of the layers inside it.
    """
    require_finite(name, layer.state_dict())
    trained = fixed(name, layer)
    require_finite(name, trained.state_dict())
    exact = _made(name, layer.freeze)
    moved = 0.0 if exact is trained else distance(name, trained, exact, head)
    parts = [part for part in layer.modules() if isinstance(part, TrainableLayer)]
    allowed = max((part.polishing_tolerance for part in parts), default=0.0)
    if not moved <= allowed:
        raise ValueError(
            f"{name} must be frozen as it was trained: polishing may move a weight by at most "
            f"{allowed:.0e}, got {moved:.1e}; train weights that are on the manifold "
            "with unitmargin.build_optimizers, others with a lower learning rate"
        )
    deployed = copy.deepcopy(exact).to(dtype)  # layers hand out their own parameters
    require_finite(name, deployed.state_dict())
    return deployed, moved


def distance(name: str, trained: FixedLayer, exact: FixedLayer, head: bool = False) -> float:
    """Largest Frobenius norm of the change of a matrix, or of a vector of biases, in float64.

    Of tensors with more than two axes each entry of the first is a matrix, as in the blocks of a
    convolution. The norm bounds how far an output moves for an input of norm 1. From the rows of a
    head their common shift is taken: it changes no difference of logits.
    """
    mine, other = trained.state_dict(), exact.state_dict()
    shapes = [{key: tensor.shape for key, tensor in state.items()} for state in (mine, other)]
    if type(trained) is not type(exact) or shapes[0] != shapes[1]:
        raise ValueError(
            f"{name} must be fixed and frozen to the same kind of layer, of the same shapes, got "
            f"{type(trained).__name__} and {type(exact).__name__}; make fix() and freeze() agree"
        )
    keys = [key for key in mine if mine[key].numel()]
    changes = [_centred(mine[key], head) - _centred(other[key], head) for key in keys]
    sizes = [float(change.norm()) if change.ndim < 3 else _largest(change) for change in changes]
    # Not max(), which may lose a NaN.
    return float(torch.tensor([0.0, *sizes], dtype=torch.float64).max())


def _centred(tensor: Tensor, head: bool) -> Tensor:
    wide = tensor.double()
    return wide - wide.mean(0, keepdim=True) if head else wide


def _largest(stack: Tensor) -> float:
    return float(stack.flatten(1).norm(dim=1).max())


def require_finite(name: str, state: dict[str, Tensor]) -> None:
    """Raise unless all numbers of a layer are finite."""
    for key, tensor in state.items():
        if not bool(torch.isfinite(tensor).all()):
            found = float(tensor[~torch.isfinite(tensor)][0])
            raise ValueError(
                f"{name}.{key} must be finite, got {found}; lower the learning rate, or go back to "
                "an earlier checkpoint"
            )


def _made(name: str, make: Callable[[], FixedLayer]) -> FixedLayer:
    """What ``fix`` or ``freeze`` of a layer gives, or their error with the name of the layer."""
    try:
        with torch.no_grad():
            return make()
    except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"{name} must have weights of full rank, got one that cannot be made orthogonal "
            f"({reason}); lower the learning rate, or go back to an earlier checkpoint"
        ) from None
    except ValueError as error:
        raise ValueError(f"{name} cannot be deployed: {error}") from None
