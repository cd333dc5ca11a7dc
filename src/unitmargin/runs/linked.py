"""Which file of a run is of which other one, by the hashes that they state."""

from collections.abc import Mapping
from pathlib import Path

from unitmargin.foundation.files import parse_json, read_json, require_hash
from unitmargin.foundation.tensors import read_header

WEIGHTS_FACT = "weights_sha256"
"""The fact that says which weights were frozen."""


def frozen_of(model: Path) -> str | None:
    """The SHA-256 of the weights that a model file says it was frozen of; None of a damaged one."""
    try:
        facts = parse_json(read_header(model).get("facts", "{}"))
    except (ValueError, OSError):
        return None
    return str(facts.get(WEIGHTS_FACT, "")) if isinstance(facts, dict) else None


def require_hashes(report: Path, files: Mapping[str, Path]) -> None:
    """Raise unless report.json, or its provenance, states the hash of each file under its key."""
    content = read_json(report)
    stated = content if isinstance(content, dict) else {}
    provenance = stated.get("provenance")
    stated = (provenance if isinstance(provenance, dict) else {}) | stated
    for key, file in files.items():
        require_hash(key, str(stated.get(key)), file)
