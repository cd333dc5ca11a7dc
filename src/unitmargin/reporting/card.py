"""The model card: what is known of a frozen network, for a model hub and its readers."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from unitmargin.certificates.epsilons import Epsilons, choose_epsilons, epsilon_name
from unitmargin.certificates.exhibits import is_image
from unitmargin.frozen import FrozenNetwork
from unitmargin.reporting import coverage, wording
from unitmargin.reporting.front_matter import front_matter
from unitmargin.reporting.markdown import units_text
from unitmargin.reporting.pages import render
from unitmargin.runs.certificates import Certificates
from unitmargin.runs.certifier import holds_pixels, table_units
from unitmargin.runs.findings import Findings
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.recipe import Recipe
from unitmargin.training.identity import DataIdentity

TAGS = ["certified-robustness", "adversarial-robustness", "lipschitz"]

SHOWN_CLASSES = 30
"""Names of classes that a card lists; the model file has all."""

SEAL = "<!-- unitmargin export, SHA-256 of all above: {} -->\n"
"""The last line of a card, by which it is known as one that nobody edited."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A frozen network and what the files of its run say of it, None where there is no such file.

    Attributes:
        frozen: the network.
        recipe: how it was trained.
        data: on what it was trained, by content.
        certificates: of its test samples.
        findings: what verify found.
    """

    frozen: FrozenNetwork
    recipe: Recipe | None = None
    data: DataIdentity | None = None
    certificates: Certificates | None = None
    findings: Findings | None = None

    @property
    def epsilons(self) -> Epsilons:
        """The radii at which the network is told."""
        found = self.certificates
        radius = torch.zeros(0, dtype=torch.float64) if found is None else found.radius
        return choose_epsilons(radius, holds_pixels(self.frozen))


def read_subject(folder: RunFolder) -> Subject:
    """What a run folder holds of its network.

    Raises:
        RunError: no model, or a file that is damaged or of another model.
    """
    certified = folder.certificates_file.exists() or folder.certificate_facts_file.exists()
    return Subject(
        folder.frozen(),
        folder.recipe() if folder.recipe_file.exists() else None,
        folder.origin().identity.data if folder.weights_file.exists() else None,
        folder.certificates() if certified else None,
        folder.findings() if folder.checks_file.exists() else None,
    )


def write_card(
    subject: Subject, name: str, slack: float | None, files: Mapping[str, str], version: str
) -> str:
    """The card as Markdown with front matter, sealed by its hash.

    It states what the files say, and of all else that it was not measured.

    Args:
        subject: the network.
        name: of the model.
        slack: bound of the slack of all certificates, None where there is none.
        files: SHA-256 of each file beside the card, by name.
        version: of the package.
    """
    frozen, certificates = subject.frozen, subject.certificates
    content = {
        "front_matter": front_matter(_metadata(subject, name)),
        "name": name,
        "image": is_image(frozen.in_shape),
        "frozen": frozen,
        "units": units_text(frozen),
        "table": table_units(frozen) is not None,
        "classes": frozen.classes[:SHOWN_CLASSES],
        "recipe": subject.recipe,
        "data": subject.data,
        "certificates": certificates,
        "epsilons": subject.epsilons.positive,
        "coverage": (
            [] if certificates is None else coverage.coverage_rows(certificates, subject.epsilons)
        ),
        "findings": subject.findings,
        "dtype": str(frozen.dtype).removeprefix("torch."),
        "slack": None if slack is None else wording.bound(slack),
        "reject_below": epsilon_name(subject.epsilons.headline).replace("/", " / "),
        "files": files,
        "facts": {key: str(frozen.facts.get(key, "")) for key in ("torch", "hardware", "commit")},
        "version": version,
    }
    text = render("card.md.jinja", content)
    return text + SEAL.format(_sha256(text))


def is_sealed(card: str) -> bool:
    """Whether a text is a card as :func:`write_card` gave it."""
    start = SEAL.partition("{")[0]
    text = card[: card.rfind(start)]
    return start in card and card == text + SEAL.format(_sha256(text))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _task(frozen: FrozenNetwork) -> str:
    return "image-classification" if is_image(frozen.in_shape) else "tabular-classification"


def _metadata(subject: Subject, name: str) -> dict[str, Any]:
    """What hubs read: no licence, which is for those to choose whose model it is."""
    task = _task(subject.frozen)
    table: dict[str, Any] = {
        "library_name": "unitmargin",
        "pipeline_tag": task,
        "tags": TAGS,
    }
    if subject.certificates is None:
        return table
    table["metrics"] = ["accuracy"]
    if subject.recipe is not None:
        data = subject.recipe.data.name
        result = {
            "task": {"type": task},
            "dataset": {"type": data, "name": data, "split": "test"},
            "metrics": _metrics(subject.certificates, subject.epsilons),
        }
        table["model-index"] = [{"name": name, "results": [result]}]
    return table


def _metrics(certificates: Certificates, epsilons: Epsilons) -> list[dict[str, Any]]:
    clean = certificates.clean_accuracy
    return [{"type": "accuracy", "value": clean, "name": "Accuracy"}] + [
        {
            "type": "certified-accuracy",
            "value": certificates.certified_accuracy(epsilon),
            "name": f"Certified accuracy at l2 radius {epsilon_name(epsilon)}",
            "args": {"epsilon": epsilon},
        }
        for epsilon in epsilons.positive
    ]
