"""Certificates of a model file, written as certify writes them."""

from pathlib import Path

from torch import Tensor

from unitmargin.foundation.files import file_sha256
from unitmargin.foundation.tensors import spool_rows
from unitmargin.frozen import class_names
from unitmargin.runs.certificates import Certificates, write_certificates


def write_of_model(
    table: Path,
    certificates: Certificates,
    model: Path,
    inputs: Path,
    certified: Tensor | None = None,
    units: str | None = None,
) -> None:
    """With the class names and the hash of the model file."""
    stated = class_names(model), file_sha256(model)
    if certified is None:
        write_certificates(table, certificates, *stated, inputs, units=units)
        return
    with spool_rows(inputs.parent) as rows:
        rows.add(certified.numpy())
        write_certificates(table, certificates, *stated, inputs, rows, units)
