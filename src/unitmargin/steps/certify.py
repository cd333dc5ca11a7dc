"""Certify: frozen network and test data to certificates.csv, one row a sample."""

import os

import torch
from safetensors.torch import save_file

from unitmargin.certificates.accuracy import EPSILONS, HEADLINE_EPSILON
from unitmargin.certificates.certify import Certificate, certify
from unitmargin.data import Samples
from unitmargin.foundation.files import file_sha256, write_json
from unitmargin.foundation.tables import write_csv
from unitmargin.frozen import FrozenNetwork
from unitmargin.runs.folder import RunFolder

CERTIFY_BATCH = 512
"""Samples a forward pass: large enough for full speed, small enough for any memory."""

HEADER = ("index", "label", "predicted", "runner_up", "margin", "radius")

FORMAT = "unitmargin-certificates-1"


def certify_samples(
    frozen: FrozenNetwork, samples: Samples, profile: str = "float64"
) -> Certificate:
    """Certificates of all samples, batch by batch."""
    parts = [
        certify(frozen, samples.batch(slice(start, start + CERTIFY_BATCH))[0], profile)
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


def write_certificates(
    folder: RunFolder, certificate: Certificate, samples: Samples, profile: str, inputs: bool
) -> None:
    """certificates.csv, and certificates.json, which says of what they are certificates.

    With ``inputs`` also inputs.safetensors, the certified tensors exactly as they entered the
    network: all that ``unitmargin check`` needs beside the model file.
    """
    columns = (
        samples.labels.tolist(),
        certificate.label.tolist(),
        certificate.runner_up.tolist(),
        certificate.margin.tolist(),
        certificate.radius.tolist(),
    )
    rows = [(index, *values) for index, values in enumerate(zip(*columns, strict=True))]
    write_csv(folder.certificates_file, HEADER, rows)
    folder.inputs_file.unlink(missing_ok=True)  # it may belong to other certificates
    if inputs:
        aside = folder.inputs_file.with_name(folder.inputs_file.name + ".partial")
        save_file({"inputs": samples.batch(slice(0, len(samples)))[0].contiguous()}, str(aside))
        os.replace(aside, folder.inputs_file)
    facts = {
        "format": FORMAT,
        "profile": profile,
        "samples": len(samples),
        "units": "l2 distance in the units of the inputs",
        "model_sha256": file_sha256(folder.model_file),
        "inputs_sha256": file_sha256(folder.inputs_file) if inputs else None,
    }
    write_json(folder.certificate_facts_file, facts)


def certify_run(folder: RunFolder, inputs: bool = False) -> str:
    """Certify the test samples of a run folder; ``inputs`` keeps them for ``unitmargin check``."""
    frozen, samples = folder.frozen(), folder.dataset().test
    certificate = certify_samples(frozen, samples)
    write_certificates(folder, certificate, samples, "float64", inputs)
    accuracy = certified_accuracy(certificate, samples.labels)
    return (
        f"certify: {len(samples)} samples, clean {accuracy[0.0]:.4f}, certified@36/255 "
        f"{accuracy[HEADLINE_EPSILON]:.4f} -> {folder.certificates_file}"
    )
