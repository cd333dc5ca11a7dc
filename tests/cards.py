"""Reading the front matter of a model card: the part of YAML that is written, and no more."""

import json
import re
from typing import Any


def read_card(card: str) -> tuple[dict[str, Any], str]:
    """The table of the front matter, and the text below it."""
    first, *lines = card.split("\n")
    assert first == "---"
    end = lines.index("---")
    table: dict[str, Any] = block(lines[:end])
    return table, "\n".join(lines[end + 1 :])


def block(lines: list[str]) -> Any:
    """The value of lines of one depth."""
    if lines[0].startswith("- "):
        return [block(entry) for entry in parted(lines, "- ", 2)]
    if not re.match(r"[\w-]+:( |$)", lines[0]):
        assert len(lines) == 1, lines
        return json.loads(lines[0])
    table = {}
    for line, *inner in parted(lines, "", 0):
        key, _, value = line.partition(":")
        assert key not in table
        assert bool(value) != bool(inner)
        deeper = inner if inner[:1] and inner[0][0] == "-" else [one[2:] for one in inner]
        table[key] = json.loads(value) if value else block(deeper)
    return table


def parted(lines: list[str], mark: str, depth: int) -> list[list[str]]:
    """Lines in groups that begin with the mark, or with a key where there is none."""
    groups: list[list[str]] = []
    for line in lines:
        begins = line.startswith(mark) if mark else not line.startswith((" ", "- "))
        if begins:
            groups.append([])
        groups[-1].append(line[depth:])
    return groups
