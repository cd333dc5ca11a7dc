"""Choosing by name, being of a kind, and excluding another: one message for all."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

Entry = TypeVar("Entry")

HOLDERS = ("model", "module", "_orig_mod")
"""Where results of training, parallel and averaged models, and compiled ones hold the model."""


def choose(what: str, name: str, registry: Mapping[str, Entry]) -> Entry:
    """The registry's entry of that name.

    Raises:
        ValueError: no such name; the message lists all of them, and the closest one.

    Example:
        >>> choose("optimizer", "sgd", {"adam": 1, "sgd": 2})
        2
    """
    require_choice(what, name, registry)
    return registry[name]


def require_choice(what: str, name: object, names: Collection[str]) -> None:
    """Raise unless the name is one of ``names``; see :func:`choose`."""
    if not isinstance(name, str) or name not in names:
        raise ValueError(
            f"{what} must be one of {', '.join(names)}, got {name!r}; {advice(name, names)}"
        )


def require_kind(what: str, value: object, kind: type[Any], step: str) -> None:
    """Raise unless the value is of that kind; ``step`` says what to do instead, where the value
    holds none of that kind itself.

    Raises:
        TypeError: another kind.

    Example:
        >>> require_kind("steps", "3", int, "leave out the quotes")
        Traceback (most recent call last):
        TypeError: steps must be of type int, got str; leave out the quotes
    """
    if not isinstance(value, kind):
        holders = (name for name in HOLDERS if isinstance(getattr(value, name, None), kind))
        step = next((f"pass what it holds, its .{name}" for name in holders), step)
        raise TypeError(
            f"{what} must be of type {kind.__name__}, got {type(value).__name__}; {step}"
        )


def require_either(**options: object) -> None:
    """Raise where both of two options are given.

    Raises:
        ValueError: neither is None.

    Example:
        >>> require_either(minutes=3.0, epochs=None)
        >>> require_either(minutes=3.0, epochs=2)
        Traceback (most recent call last):
        ValueError: minutes must be left out where epochs are given, got 3.0 and 2; pass one of them
    """
    (name, value), (other, rival) = options.items()
    if value is not None and rival is not None:
        raise ValueError(
            f"{name} must be left out where {other} are given, got {value} and {rival}; pass one "
            "of them"
        )


def advice(name: object, names: Collection[str]) -> str:
    """The next step for an unknown name: the closest known one, if any is close.

    Example:
        >>> advice("adm", ("adam", "sgd")), advice("lion", ("adam", "sgd"))
        ("did you mean 'adam'?", 'choose one')
    """
    close = get_close_matches(name, names, n=1) if isinstance(name, str) else []
    return f"did you mean {close[0]!r}?" if close else "choose one"
