"""The samples that the certificates of a run are of."""

from pathlib import Path

import torch

from unitmargin.data import Samples
from unitmargin.frozen import FrozenNetwork
from unitmargin.runs.certificates import Certificates, numbers_sha256
from unitmargin.runs.folder import RunError, RunFolder


def certified_samples(
    folder: RunFolder,
    frozen: FrozenNetwork,
    certificates: Certificates,
    data: Path | None = None,
) -> Samples:
    """The test samples of a run, if its certificates are theirs.

    Raises:
        RunError: another number of samples, other labels, or other inputs where the certificates
            say of which they are.
    """
    test = folder.test_samples(frozen, data)
    step = f"run `unitmargin certify {folder.path}` again"
    if folder.exported:  # its certificates stay
        step = "pass --data with the data that were certified"
    if not torch.equal(certificates.label, test.labels):
        raise RunError(
            f"{folder.certificates_file} must have a row for each of the {len(test)} test samples, "
            f"got {len(certificates)} rows or other labels; {step}"
        )
    # The test samples of a run with weights are those that these were trained beside.
    known = None if folder.weights_file.is_file() else certificates.numbers_sha256
    if known is not None and known != numbers_sha256(test):
        raise RunError(
            f"{folder.certificates_file} must be of the test samples, got certificates of other "
            f"inputs with the same labels; {step}"
        )
    return test
