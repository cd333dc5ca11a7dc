"""Certificates of a model file, written as certify writes them."""

from pathlib import Path

from torch import Tensor

from unitmargin.foundation.files import file_sha256
from unitmargin.frozen import class_names
from unitmargin.runs.certificates import Certificates, write_certificates


def write_of_model(
    table: Path,
    certificates: Certificates,
    model: Path,
    inputs: Path,
    certified: Tensor | None = None,
) -> None:
    """With the class names and the hash of the model file."""
    stated = class_names(model), file_sha256(model)
    write_certificates(table, certificates, *stated, inputs, certified)
