"""A solver and its options as one word: ``sphere_tracing:steps=300,n_candidates=9``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import Parameter
from typing import Any, Literal, get_origin

from unitmargin.foundation.choice import choose
from unitmargin.solvers import SOLVERS
from unitmargin.solvers.driver import own_options, require_options, settled
from unitmargin.solvers.geometry import Positive, Share

KINDS: dict[Any, tuple[str, Callable[[str], Any]]] = {
    int: ("a whole number", int),
    float: ("a number", float),
    Share: ("a number below 1", float),
    Positive: ("a number above 0", float),
    float | None: ("a number", float),
}
"""What an option's type asks for, and how it is read."""

WORD = ("a word", str)
"""What an option asks for that is one of several names."""


@dataclass(frozen=True)
class Choice:
    """A name of ``SOLVERS`` and the options that are not left at their defaults."""

    name: str
    options: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        """The word that :func:`read_choice` reads."""
        options = ",".join(f"{name}={value}" for name, value in self.options)
        return f"{self.name}:{options}" if options else self.name


def read_choice(word: str) -> Choice:
    """Read ``NAME`` or ``NAME:OPTION=VALUE,OPTION=VALUE``.

    Words that mean the same give equal choices: options come in the solver's own order, those at
    their defaults are left out, and a solver that has settled some of another's is named so.

    Raises:
        ValueError: an unknown solver or option, an option given twice, a value of the wrong kind.

    Example:
        >>> read_choice("ddn:steps=30,loss=margin")
        Choice(name='margin_ddn', options=(('steps', 30),))
    """
    name, _, text = word.partition(":")
    solver = choose("solver", name, SOLVERS)
    own = own_options(solver)
    given: dict[str, Any] = {}
    for part in text.split(",") if ":" in word else ():
        option, _, value = part.partition("=")
        if option not in own or option in given or not value:
            raise ValueError(
                f"options of {name} must be OPTION=VALUE, separated by commas, each once, with "
                f"OPTION among {', '.join(own) or 'none'}, got {part!r}; correct {word!r}"
            )
        annotation = own[option].annotation
        kind, read = WORD if get_origin(annotation) is Literal else KINDS[annotation]
        try:
            given[option] = read(value)
        except ValueError:
            raise ValueError(
                f"{option} of {name} must be {kind}, got {value!r}; its default is "
                f"{own[option].default}"
            ) from None
    require_options(solver, given)
    name, own = _canonical(name, given)
    defaults = {option: parameter.default for option, parameter in own.items()}
    chosen = {option: given.get(option, default) for option, default in defaults.items()}
    kept = [item for item in chosen.items() if item[1] != defaults[item[0]]]
    return Choice(name, tuple(kept))


def _canonical(name: str, given: Mapping[str, Any]) -> tuple[str, Mapping[str, Parameter]]:
    """The name of the solver that has settled what is given to another, and what it leaves open."""
    for other, special in SOLVERS.items():
        same = isinstance(special, partial) and special.func is SOLVERS[name]
        if same and settled(special).items() <= given.items():
            return other, own_options(special)
    return name, own_options(SOLVERS[name])
