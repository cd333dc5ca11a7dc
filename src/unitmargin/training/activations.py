"""Activations that a backward pass needs: kept, or computed again."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import cast

from torch import nn
from torch.utils.checkpoint import checkpoint_sequential


@contextmanager
def recomputed_activations(model: nn.Module, wanted: bool = True) -> Iterator[None]:
    r"""Within it, a forward pass keeps the inputs of runs of layers alone, and the backward pass
    computes what is inside of a run again.

    Of n hidden layers about :math:`\sqrt n` run together. Gradients are equal to the last bit.
    Outside of it, and without ``wanted``, nothing is another than it was.

    Cost: the forward pass of all runs but the last, once more.
    Source: Chen, Xu, Zhang, Guestrin, arXiv 1604.06174; ``torch.utils.checkpoint``.

    Example:
        >>> import torch
        >>> from unitmargin.models import DenseUGNN
        >>> model = DenseUGNN((2,), 2)
        >>> with recomputed_activations(model):
        ...     model(torch.rand(5, 2)).sum().backward()
    """
    if not wanted:
        yield
        return
    features = cast(nn.Sequential, model.get_submodule("features"))
    # Not the Sequential itself, whose children are each layer once, also one that stands twice.
    layers = list(features)
    runs = max(1, round(math.sqrt(len(layers))))
    # Layers draw nothing, so the state of generators need not be kept.
    settings = {"use_reentrant": False, "preserve_rng_state": False}
    vars(features)["forward"] = partial(checkpoint_sequential, layers, runs, **settings)
    try:
        yield
    finally:
        del vars(features)["forward"]
