"""Keys of a recipe that a command line sets, as ``training.learning_rate=0.01``."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any


def read_settings(settings: Sequence[str], table: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe's table with other values of some keys, the last one of each.

    A setting is ``KEY=VALUE``, key and value as TOML writes them; what is no value of TOML is text,
    since a shell takes quotes away. What a recipe may hold is judged later.

    Raises:
        ValueError: no such pair.

    Example:
        >>> read_settings(["data.limit=5", "data.name=moons"], {"data": {"name": "digits"}})
        {'data': {'name': 'moons', 'limit': 5}}
    """
    changed = dict(table)
    for setting in settings:
        changed = _merged(changed, _read(setting))
    return changed


def _read(setting: str) -> dict[str, Any]:
    key, sign, value = setting.partition("=")
    if sign and "\n" not in setting and not key.strip().startswith("["):
        for text in (setting, f"{key} = {json.dumps(value)}"):
            try:
                return tomllib.loads(text)
            except (tomllib.TOMLDecodeError, RecursionError):
                continue
    raise ValueError(
        f"set must be KEY=VALUE, got {setting!r}; write it as training.learning_rate=0.01"
    )


def _merged(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(table)
    for key, value in changes.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = _merged(old, value)
        else:
            merged[key] = value
    return merged
