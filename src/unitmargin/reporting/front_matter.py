"""Front matter: the YAML block between two lines of ``---`` that model hubs read of a card."""

import json
from collections.abc import Mapping, Sequence
from typing import Any


def front_matter(table: Mapping[str, Any]) -> str:
    """A table of numbers, texts, lists and tables as the YAML block at the head of a Markdown file.

    Texts are quoted and escaped, so that every reader of YAML 1.1 or 1.2 takes them for the same
    text; keys are this package's own, plain words.

    Example:
        >>> print(front_matter({"tags": ["a: b"], "model-index": [{"name": "x", "results": []}]}))
        ---
        tags:
        - "a: b"
        model-index:
        - name: "x"
          results: []
        ---
    """
    return "\n".join(["---", *_table_lines(table), "---"])


def _lines(value: Any) -> list[str]:
    if isinstance(value, Mapping) and value:
        return _table_lines(value)
    if isinstance(value, list) and value:
        return _list_lines(value)
    return [_scalar(value)]


def _table_lines(table: Mapping[str, Any]) -> list[str]:
    lines = []
    for key, value in table.items():
        inner = _lines(value)
        if not (isinstance(value, Mapping | list) and value):
            lines.append(f"{key}: {inner[0]}")
        elif isinstance(value, list):
            lines += [f"{key}:", *inner]
        else:
            lines += [f"{key}:", *(f"  {line}" for line in inner)]
    return lines


def _list_lines(entries: Sequence[Any]) -> list[str]:
    lines = []
    for entry in entries:
        first, *rest = _lines(entry)
        lines += [f"- {first}", *(f"  {line}" for line in rest)]
    return lines


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value)
    text = json.dumps(value, allow_nan=False)
    # YAML 1.1 takes 5e-05 for a text: its floats have a point.
    return text.replace("e", ".0e") if isinstance(value, float) and "." not in text else text


def quoted(text: str) -> str:
    r"""A text in double quotes, as YAML reads it; what cannot be printed is escaped.

    Example:
        >>> print(quoted('a "name"\u2028---'))
        "a \"name\"\u2028---"
    """
    return "".join(_printable(sign) for sign in json.dumps(text, ensure_ascii=False))


def _printable(sign: str) -> str:
    # JSON leaves line ends of Unicode as they are, which YAML folds.
    if sign.isprintable():
        return sign
    return f"\\u{ord(sign):04x}" if ord(sign) < 0x10000 else f"\\U{ord(sign):08x}"
