"""What is read of a network is what it evaluates: whatever changes one alone is refused by name.

A network is measured, certified and deployed by what its layers say of themselves, and evaluated
by its ``forward``. Both have to come from the same class.
"""

from collections.abc import Iterator

from torch import nn
from torch.nn.modules import module as torch_module
from torch.nn.utils import parametrize

from unitmargin.layers.contract import FixedLayer, Layer, walk
from unitmargin.layers.network import Network

OF_EVERY_MODULE = frozenset(vars(nn.Module()))
"""Attributes that torch gives every module, none of which is a method."""


def require_faithful(network: Network) -> None:
    """Raise unless what is read of a network is what it evaluates.

    What is read of a trainable layer comes from the class that defines its ``freeze``, of a fixed
    layer from that of its ``kind``, of a network from that of ``named_layers``. A method of the
    evaluation that an heir of that class or a single object overrides is evaluated and not
    deployed; so is what hooks of a forward pass and parametrisations compute. A layer that defines
    ``forward`` and ``freeze`` together answers the contract.

    Raises:
        TypeError: one of these, or a module that is no layer, by its name in the network; a hook of
            the forward pass of all modules.
    """
    require_no_global_hooks()
    for path, module in network.named_modules():
        name = path or type(network).__name__
        for method, rule in _overridden(module):
            raise TypeError(
                f"{name}.{method} must {rule}, got one of {_owner(module, method)}: what is "
                "evaluated would not be what is deployed; write a unitmargin.layers.contract.Layer"
            )
        hooks = len(module._forward_hooks) + len(module._forward_pre_hooks)
        if hooks:
            raise TypeError(
                f"{name} must be read without hooks of its forward pass, got {hooks}, which are "
                "evaluated and not deployed; remove them with handle.remove()"
            )
        if parametrize.is_parametrized(module):
            names = ", ".join(module.get_submodule("parametrizations")._modules)
            raise TypeError(
                f"{name} must have plain parameters, got a parametrisation of {names}; call "
                "torch.nn.utils.parametrize.remove_parametrizations on it"
            )
        if isinstance(module, Layer) and isinstance(module._modules.get("branch"), nn.Module):
            walk(f"{name}.branch", module.get_submodule("branch"))
    network.named_layers()


def require_no_global_hooks() -> None:
    """Raise a TypeError for a hook of the forward pass of all modules."""
    hooks = len(torch_module._global_forward_hooks) + len(torch_module._global_forward_pre_hooks)
    if hooks:
        raise TypeError(
            "a network must be read without hooks of the forward pass of all modules, got "
            f"{hooks}, which are evaluated and not deployed; remove them with handle.remove()"
        )


def _overridden(module: nn.Module) -> Iterator[tuple[str, str]]:
    """The methods by which a module evaluates something else than what is read of it, each with the
    rule that it breaks."""
    kind = type(module)
    for method in vars(module):
        if method not in OF_EVERY_MODULE and callable(getattr(kind, method, None)):
            yield method, "be the method of its class"
    for method, statement in _statements(module):
        if _depth(kind, method) < _depth(kind, statement):
            yield method, f"not be overridden without {statement}"
    if isinstance(module, nn.Sequential) and kind.forward is not nn.Sequential.forward:
        yield "forward", "be that of torch.nn.Sequential"
    if kind.__call__ is not nn.Module.__call__:
        yield "__call__", "be that of torch.nn.Module"


def _statements(module: nn.Module) -> Iterator[tuple[str, str]]:
    """The methods that evaluate a module, each with what is read in their stead."""
    if isinstance(module, Network):
        yield from ((method, "named_layers") for method in ("forward", "logits", "normalised"))
    elif isinstance(module, FixedLayer):
        yield from ((method, "kind") for method in _heirs_methods(type(module)))
    elif isinstance(module, Layer):
        yield "forward", "freeze"


def _heirs_methods(kind: type[FixedLayer]) -> list[str]:
    """Methods that heirs of the class which names the kind define anew: another layer of its name.

    Construction and the printed form are not evaluated.
    """
    depth = _depth(kind, "kind")
    heirs, named = kind.__mro__[:depth], kind.__mro__[depth:]
    return [
        name
        for heir in heirs
        for name, value in vars(heir).items()
        if callable(value)
        and not name.startswith("__")
        and name != "extra_repr"
        and any(name in vars(ancestor) for ancestor in named)
    ]


def _depth(kind: type, name: str) -> int:
    """How far up its ancestors a class finds an attribute; 0 for its own."""
    owners = (depth for depth, one in enumerate(kind.__mro__) if name in vars(one))
    return next(owners, len(kind.__mro__))


def _owner(module: nn.Module, method: str) -> str:
    """Who defines a method of the module."""
    if method in vars(module):
        return "this object alone"
    return type(module).__mro__[_depth(type(module), method)].__name__
