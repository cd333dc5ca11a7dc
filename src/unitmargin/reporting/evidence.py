"""What the steps before the report left in a run folder."""

from dataclasses import dataclass

from unitmargin.certificates.tightness import Search
from unitmargin.frozen import FrozenNetwork
from unitmargin.runs.certificates import Certificates
from unitmargin.runs.findings import Findings
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.measurements import Measurements
from unitmargin.runs.recipe import Recipe
from unitmargin.training.train import EpochRecord


@dataclass(frozen=True, eq=False)
class Evidence:
    """A finished run: what every file of its folder holds."""

    recipe: Recipe
    history: tuple[EpochRecord, ...]
    frozen: FrozenNetwork
    certificates: Certificates
    findings: Findings
    searches: list[Search]
    measurements: Measurements

    @property
    def signed_distance(self) -> bool:
        """Whether unit gradients were promised, and so measured."""
        return not any(row.name == "unit_gradient" and row.skipped for row in self.findings.checks)


def read_evidence(folder: RunFolder) -> Evidence:
    """Read a run folder after ``verify``.

    Raises:
        RunError: a file is missing, damaged or does not fit the others; the message names the
            command.
    """
    return Evidence(
        recipe=folder.recipe(),
        history=folder.history(),
        frozen=folder.frozen(),
        certificates=folder.certificates(),
        findings=folder.findings(),
        searches=folder.searches(),
        measurements=folder.measurements(),
    )
