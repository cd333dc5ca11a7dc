"""Certify: frozen network and test data to certificates.csv, one row a sample."""

import torch

from unitmargin.certificates import Certificate, certify
from unitmargin.data import Samples
from unitmargin.frozen import FrozenNetwork
from unitmargin.runs import EPSILONS, HEADLINE_EPSILON, RunFolder, write_csv

CERTIFY_BATCH = 512
"""Samples a forward pass: large enough for full speed, small enough for any memory."""

HEADER = ("index", "label", "predicted", "runner_up", "margin", "radius")


def certify_samples(frozen: FrozenNetwork, samples: Samples) -> Certificate:
    """Certificates of all samples, batch by batch."""
    parts = [
        certify(frozen, samples.batch(slice(start, start + CERTIFY_BATCH))[0])
        for start in range(0, len(samples), CERTIFY_BATCH)
    ]
    names = ("label", "runner_up", "margin", "radius", "slack")
    return Certificate(
        **{name: torch.cat([getattr(part, name) for part in parts]) for name in names}
    )


def certified_accuracy(
    certificate: Certificate, labels: torch.Tensor, epsilons: tuple[float, ...] = EPSILONS
) -> dict[float, float]:
    """Share of samples predicted right with a radius above each epsilon.

    At 0 it is the share with a positive radius: clean accuracy without ties. The paper's text
    says "lower than epsilon"; a prediction is robust at epsilon if its radius is at least that.
    """
    right = certificate.label == labels
    return {
        epsilon: float((right & (certificate.radius > epsilon)).double().mean())
        for epsilon in epsilons
    }


def certify_run(folder: RunFolder) -> str:
    """Certify the test samples of a run folder."""
    frozen, samples = folder.frozen(), folder.dataset().test
    certificate = certify_samples(frozen, samples)
    columns = (
        samples.labels.tolist(),
        certificate.label.tolist(),
        certificate.runner_up.tolist(),
        certificate.margin.tolist(),
        certificate.radius.tolist(),
    )
    rows = [(index, *values) for index, values in enumerate(zip(*columns, strict=True))]
    write_csv(folder.certificates_file, HEADER, rows)
    accuracy = certified_accuracy(certificate, samples.labels)
    return (
        f"certify: {len(samples)} samples, clean {accuracy[0.0]:.4f}, certified@36/255 "
        f"{accuracy[HEADLINE_EPSILON]:.4f} -> {folder.certificates_file}"
    )
