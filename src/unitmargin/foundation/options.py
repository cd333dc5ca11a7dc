"""Options that are judged when they are made, with one message for every mistake."""

from collections.abc import Collection, Mapping
from typing import Any, Never, TypeVar

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from unitmargin.foundation.choice import advice, require_choice
from unitmargin.foundation.numbers import shown

LONGEST = 200
"""Characters of a value in a message: tensors have more."""

Own = TypeVar("Own", bound="Options")

RULES = {
    "an instance of Sequence": "a list",
    "'str' instances are not allowed as a Sequence value": "a list",
    "a valid dictionary": "a table",
}
"""Rules that pydantic words in terms of Python."""


class Options(BaseModel):
    """Frozen options: of the annotated types, in range, finite, and none unknown.

    Whole numbers are taken where a number is asked for, and numbers of NumPy as those of Python, in
    lists and tables too; nothing else is converted.

    Raises:
        ValueError: one line that names the option, its rule, the value and the next step.
        AttributeError: an option is assigned.

    Example:
        >>> class Walk(Options):
        ...     steps: int = 3
        >>> Walk().changed(steps=4)
        Walk(steps=4)
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def __init__(self, /, **values: Any) -> None:
        given = {name: _own_number(value) for name, value in values.items()}
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise ValueError(_first_mistake(type(self), error)) from None

    def __setattr__(self, name: str, value: object) -> Never:
        raise _fixed(name, f"{shown(value)} assigned")

    def __delattr__(self, name: str) -> Never:
        raise _fixed(name, "it deleted")

    def changed(self: Own, /, **changes: Any) -> Own:
        """A judged copy with other values; a mapping changes single options of a section."""
        values = dict(self)
        for name, change in changes.items():
            section: Any = values.get(name)
            nested = isinstance(section, Options) and isinstance(change, Mapping)
            values[name] = section.changed(**change) if nested else change
        return type(self)(**values)


def among(what: str, names: Collection[str]) -> AfterValidator:
    """The rule that an option is one of some names; see :func:`require_choice`."""

    def judge(name: str) -> str:
        require_choice(what, name, names)
        return name

    return AfterValidator(judge)


def _fixed(name: str, got: str) -> AttributeError:
    step = f"take what .changed({name}=...) returns"
    return AttributeError(f"{name} must stay as it was given, got {got}; {step}")


def _own_number(value: Any) -> Any:
    """A whole number of NumPy as one of Python, in lists and tables too."""
    if type(value) in (list, tuple):
        return type(value)(map(_own_number, value))
    if type(value) is dict:
        return {key: _own_number(inner) for key, inner in value.items()}
    return int(value) if isinstance(value, np.integer) else value


def broken_rule(error: Mapping[str, Any]) -> str:
    """What one of pydantic's errors says of a value: its rule, the value and the next step."""
    if error["type"] == "missing":
        return "must be given, got nothing; add it"
    rule = error["msg"].removeprefix("Input should be ").split(" or instance of ")[0]
    return (
        f"must be {RULES.get(rule, rule)}, got {shown(error['input'], LONGEST)}; correct the value"
    )


def _first_mistake(kind: type[Options], error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "value_error":  # our own message, from a section without the section's name
        section = getattr(kind.model_fields.get(key), "annotation", None)
        inner = isinstance(section, type) and issubclass(section, Options)
        return f"{key}.{first['ctx']['error']}" if inner else str(first["ctx"]["error"])
    if first["type"] == "extra_forbidden":
        known = ", ".join(kind.model_fields)
        return f"{key} is no option, known: {known}; {advice(key, kind.model_fields)}"
    return f"{key} {broken_rule(first)}"
