"""Precision of training steps: the data path may be shorter, weights never are."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import nn

from unitmargin.foundation.choice import require_choice
from unitmargin.foundation.full_precision import float32_products
from unitmargin.layers.contract import TrainableLayer
from unitmargin.training.processes import Processes

PRECISIONS = ("float32", "tf32", "bfloat16")


@contextmanager
def training_precision(name: str, device: torch.device) -> Iterator[None]:
    """The context of forward and backward passes in training.

    ``float32`` changes nothing; a global setting that shortens products of matrices ends where a
    training begins (:func:`in_full_precision`). ``tf32`` lets CUDA round the factors of such
    products to 10 bits of mantissa. ``bfloat16`` runs the products of activations with weights in
    bfloat16; weights are computed, kept and moved in float32, and logits and losses are float32.

    Guarantee: the orthogonality error is that of float32 training. Evaluation, freezing and
    certificates happen outside of it. On leaving, the global setting is what it was.

    Example:
        >>> with training_precision("bfloat16", torch.device("cpu")):
        ...     (torch.eye(2) @ torch.eye(2)).dtype
        torch.bfloat16
    """
    products = float32_products("high") if name == "tf32" else nullcontext()
    with products, torch.autocast(device.type, torch.bfloat16, enabled=name == "bfloat16"):
        yield


def usable_precision(name: str, processes: Processes, device: torch.device) -> str:
    """The precision of a training that may have ``name``, one for all of its processes: float32
    for bfloat16 where one of them trains on a processor that does not multiply it, and so takes
    thirty times as long in it."""
    if name != "bfloat16" or all(processes.gather([multiplies_bfloat16(device)])):
        return name
    return "float32"


def require_precision(name: str, model: nn.Module) -> None:
    """Raise unless the model can be trained in this precision with float32 orthogonality.

    Raises:
        ValueError: an unknown name; or tf32 with weights that are computed from products in the
            forward pass, which would be rounded too.
    """
    require_choice("precision", name, PRECISIONS)
    layers = [layer for layer in model.modules() if isinstance(layer, TrainableLayer)]
    rounded = [layer for layer in layers if not layer.exact_in_tf32]
    inner = {part for layer in rounded for part in layer.modules() if part is not layer}
    outer = [layer for layer in rounded if layer not in inner]
    if name == "tf32" and outer:
        choices = dict.fromkeys(layer.tf32_choice for layer in outer)
        kinds = dict.fromkeys(type(layer).__name__ for layer in outer)
        raise ValueError(
            f"precision tf32 needs {', '.join(choices)}, got {', '.join(kinds)}, whose weights are "
            "computed from matrix products in every forward pass; choose so, or bfloat16"
        )


def product_type(device: torch.device, dtype: torch.dtype) -> torch.dtype:
    """The type for products that may be short: bfloat16 where the device multiplies it and the
    numbers are float32, else their own type."""
    return torch.bfloat16 if dtype == torch.float32 and multiplies_bfloat16(device) else dtype


def multiplies_bfloat16(device: torch.device) -> bool:
    """Whether a device multiplies it: of processors those of x86 with instructions for it, and all
    other devices, which were not asked."""
    return device.type != "cpu" or torch.cpu._is_avx512_bf16_supported()
