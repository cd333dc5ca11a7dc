"""The file checks.json: what verify found of each promise, and how tight the certificates are."""

from pathlib import Path
from typing import Any

from pydantic import PositiveInt

from unitmargin.auditing.finding import Finding
from unitmargin.foundation.files import read_json, require_hash, write_json
from unitmargin.foundation.options import Options

REQUIRED = ("orthogonality", "upd", "unit_gradient")
"""Findings without which nothing was verified; each is there, if only to say why it was not run."""


class Findings(Options):
    """What verify found.

    Attributes:
        passed: whether every promise held that was measured.
        samples: how many test samples were attacked.
        hardware, torch, commit: where and with what.
        model_sha256: of the file of the network.
        checks: one finding a promise.
        solvers: what each solver searched, and the statistics of its answers.
    """

    passed: bool
    samples: PositiveInt
    hardware: str
    torch: str
    commit: str
    model_sha256: str
    checks: list[Finding]
    solvers: list[dict[str, Any]]

    def value(self, name: str) -> float | None:
        """What was measured under this name; None if nothing was, or nothing finite."""
        return next(row.value for row in self.checks if row.name == name)

    def write(self, file: Path) -> None:
        """Write checks.json."""
        write_json(file, self.model_dump())


def read_findings(file: Path, model: Path) -> Findings:
    """Read checks.json.

    Raises:
        ValueError: a damaged file, a missing finding, or findings of another model.
    """
    content = read_json(file)
    findings = Findings(**content if isinstance(content, dict) else {})
    require_hash("model_sha256", findings.model_sha256, model)
    missing = set(REQUIRED) - {row.name for row in findings.checks}
    if missing or findings.passed == any(row.failed for row in findings.checks):
        raise ValueError(
            f"checks must hold {', '.join(REQUIRED)}, and have passed as the file says, got "
            f"passed = {findings.passed} and none named {', '.join(sorted(missing)) or 'otherwise'}"
        )
    return findings
