"""Certify: frozen network and test data to certificates.csv, one row a sample."""

from pathlib import Path

import torch

from unitmargin.certificates.accuracy import HEADLINE_EPSILON
from unitmargin.certificates.certify import certify
from unitmargin.data import Samples
from unitmargin.frozen import FrozenNetwork
from unitmargin.runs.certificates import Certificates, write_certificates
from unitmargin.runs.folder import RunFolder

CERTIFY_BATCH = 512
"""Samples a forward pass: large enough for full speed, small enough for any memory."""


def certify_samples(
    frozen: FrozenNetwork, samples: Samples, profile: str | None = None
) -> Certificates:
    """Certificates of all samples, batch by batch.

    Raises:
        ValueError: samples that do not fit the network, or lie outside of its domain.
    """
    parts = []
    for start in range(0, len(samples), CERTIFY_BATCH):
        inputs, _ = samples.batch(slice(start, start + CERTIFY_BATCH))
        frozen.require_input(inputs)
        frozen.require_domain(inputs, start)
        parts.append(certify(frozen, inputs, profile, domain="any"))
    predicted, runner_up, margin, radius = (
        torch.cat([getattr(part, name) for part in parts])
        for name in ("label", "runner_up", "margin", "radius")
    )
    stated = frozen.profile if profile is None else profile
    return Certificates(samples.labels, predicted, runner_up, margin, radius, stated)


def certify_run(folder: RunFolder, inputs: bool = False, data: Path | None = None) -> str:
    """Certify the test samples of a run folder.

    Args:
        folder: a frozen run.
        inputs: keep them for ``unitmargin check``.
        data: where the data set is, if it has moved since the training.

    Raises:
        RunError: no model, or one of other weights.
        ValueError: other data than the run was trained on, or other class names than its model's.
    """
    frozen = folder.frozen()
    samples = folder.test_samples(frozen, data)
    certificates = certify_samples(frozen, samples)
    certified = samples.batch(slice(0, len(samples)))[0] if inputs else None
    files = folder.certificates_file, certificates, folder.model_file, folder.inputs_file
    with folder.hold():
        write_certificates(*files, certified=certified)
    return (
        f"certify: {len(samples)} samples, clean {certificates.certified_accuracy(0.0):.4f}, "
        f"certified@36/255 {certificates.certified_accuracy(HEADLINE_EPSILON):.4f} "
        f"-> {folder.certificates_file}"
    )
