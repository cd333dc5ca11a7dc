"""Certify: a network and test samples, or new inputs, to certificates.csv, one row a sample."""

import hashlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from unitmargin.certificates.epsilons import choose_epsilons, epsilon_name
from unitmargin.data import (
    MADE,
    InputBatch,
    Samples,
    holds_images,
    holds_splits,
)
from unitmargin.foundation.files import read_json
from unitmargin.foundation.numbers import require_whole
from unitmargin.foundation.tensors import SpooledRows, spool_rows
from unitmargin.guard import Model
from unitmargin.runs.certificates import TENSORS, Certificates, hash_inputs, write_certificates
from unitmargin.runs.certifier import (
    CERTIFY_BATCH,
    FrozenCertifier,
    holds_pixels,
    input_batches,
    is_run,
    judged_batches,
    open_certifier,
    table_units,
)
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.lock import PATIENCE, given_names
from unitmargin.runs.opening import open_dataset
from unitmargin.runs.recipe import TABLE
from unitmargin.training.processes import joined_processes


def certify_run(
    folder: RunFolder,
    inputs: bool = False,
    data: Path | None = None,
    out: Path | None = None,
    profile: str | None = None,
    device: str = "cpu",
    batch_size: int = CERTIFY_BATCH,
) -> str:
    """Certify the test samples of a run folder, or new inputs.

    Of several processes each certifies some of the batches, and the first writes.

    Args:
        folder: a frozen run.
        inputs: keep them for ``unitmargin check``.
        data: where the data set is, if it has moved since the training; or new inputs, which are
            not laid out as a data set (:func:`read_inputs`).
        out: where the certificates are written; default: the run folder, of new inputs a folder
            in it that is named after them. What an exported folder holds is never replaced.
        profile, device: of the evaluation; default: the model's own profile.
        batch_size: inputs a forward pass.

    Raises:
        RunError: no model, or one of other weights.
        ValueError: other data than the run was trained on, other class names than its model's, new
            inputs that do not fit the network, or options that do not fit each other.
    """
    frozen, sha256 = folder.hashed_frozen()
    certifier = FrozenCertifier(frozen, profile, device, sha256)
    if data is not None and not _own(folder, data):
        return certify_new(certifier, data, out or _beside(folder.path, data), inputs, batch_size)
    if out is None and certifier.profile != frozen.profile:
        raise ValueError(
            f"profile must be {frozen.profile}, the run's own, where verify and report read the "
            f"certificates, got {certifier.profile}; name another folder by --out"
        )
    place = _require_own(folder) if out is None else _require_out(out)
    RunFolder(place).require_free()
    samples = folder.test_samples(frozen, data)
    with _spool(inputs, place) as kept:
        certificates = certify_inputs(certifier, samples, batch_size, kept)
        replaced = _write(certifier, certificates, kept, place)
    words = f"{_shares(certifier, certificates)}{_in_units(certifier)}{replaced}"
    return f"certify: {len(samples)} samples, {words} -> {_table(place)}"


def certify_model(
    place: Path,
    data: Path | None = None,
    inputs: bool = False,
    out: Path | None = None,
    profile: str | None = None,
    device: str = "cpu",
    batch_size: int = CERTIFY_BATCH,
) -> str:
    """Certify with a run folder, a model file or an exported file; see :func:`certify_run`.

    Raises:
        ValueError: a file without data, and what :func:`certify_run` refuses.
    """
    if is_run(place):
        return certify_run(RunFolder(place), inputs, data, out, profile, device, batch_size)
    certifier = open_certifier(place, profile, device)
    if data is None:
        raise ValueError(
            f"data must be given for {place}, which is no run folder, got None; pass --data with "
            "a folder or archive of images, or a .npz, .npy, .csv or .parquet file"
        )
    return certify_new(certifier, data, out or _beside(place.parent, data), inputs, batch_size)


def certify_new(
    certifier: Model,
    data: Path,
    out: Path,
    inputs: bool = False,
    batch_size: int = CERTIFY_BATCH,
) -> str:
    """Certify new inputs into a folder of their own.

    Raises:
        ValueError: inputs that do not fit the network, or the folder of a run.
        LockedError: another process writes into the folder.

    Cost: memory of one batch and of the certificates; with ``inputs`` twice their size on the disk
    for a moment.
    """
    _require_out(out)
    RunFolder(out).require_free()
    with _spool(inputs, out) as kept:
        certificates = certify_inputs(certifier, data, batch_size, kept)
        replaced = _write(certifier, certificates, kept, out)
    labelled = int(certificates.labelled.sum())
    with_radius = int((certificates.radius > 0).sum())
    words = f"{with_radius} with a radius, {labelled} labelled"
    if labelled:
        known = certificates.at(certificates.labelled.nonzero().flatten())
        words += f", {_shares(certifier, known)}"
    words += f"{_in_units(certifier)}{replaced}"
    return f"certify: {len(certificates)} new inputs, {words} -> {_table(out)}"


def _own(folder: RunFolder, data: Path) -> bool:
    """Whether data are laid out as the data set of a run; if they are it, their content says.

    Of a table the content alone tells: what is wrong with one that has the training rows of the run
    is an error. An exported folder, without weights, states no content, and has no data of its own.
    """
    if not (folder.recipe_file.is_file() and folder.weights_file.is_file()):
        return False
    split = folder.split()
    if split is not None:
        return holds_images(data, split, folder.recipe().data.label)
    if folder.recipe().data.name == TABLE:
        try:
            folder.dataset(data)
        except ValueError:
            if _is_training_table(folder, data):
                raise
            return False
        return True
    return folder.recipe().data.name not in MADE and holds_splits(data)


def _is_training_table(folder: RunFolder, data: Path) -> bool:
    """Whether a table holds the training rows of a run, whatever is wrong with its test rows."""
    alone = folder.recipe().changed(data={"path": str(data), "test": str(data)})
    try:
        found = open_dataset(alone).train.sha256
    except ValueError:
        return False
    return found == folder.origin().identity.data.train_sha256


def _beside(folder: Path, data: Path) -> Path:
    return folder / f"certified-{data.resolve().name}"


def _require_own(folder: RunFolder) -> Path:
    """The place of a run's own certificates, which an exported folder has as they were shipped."""
    if folder.exported:
        raise ValueError(
            f"out must be given for {folder.path}, an exported folder, whose certificates would be "
            "lost, got None; name another folder by --out"
        )
    return folder.path


def _require_out(out: Path) -> Path:
    """Raise for a run's folder, whose own certificates verify and report read, for an exported one,
    and for one that holds something else than certificates."""
    if RunFolder(out).recipe_file.exists() or RunFolder(out).exported:
        raise ValueError(
            f"out must be a folder of its own, got the run folder or exported folder {out}, whose "
            "certificates would be lost; name another one"
        )
    names = given_names(out)
    if names and RunFolder(out).certificates_file.name not in names:
        raise ValueError(
            f"out must be absent, empty or a folder of certificates, got {out} with {min(names)}; "
            "name another one"
        )
    return out


def _spool(inputs: bool, place: Path) -> AbstractContextManager[SpooledRows | None]:
    """Where inputs wait that are kept, in the first process."""
    return spool_rows(place) if inputs and joined_processes().first else nullcontext()


def certify_inputs(
    certifier: Model,
    given: Samples | Path,
    batch_size: int = CERTIFY_BATCH,
    kept: SpooledRows | None = None,
) -> Certificates:
    """Certificates of samples or files; ``kept`` takes in the inputs as they were certified.

    Raises:
        ValueError: inputs that do not fit the network, or lie outside of its domain.
    """
    require_whole("batch_size", batch_size, 1, "leave it out")
    batches = (
        _batches(given, batch_size)
        if isinstance(given, Samples)
        else input_batches(certifier, given, batch_size)
    )
    processes, digest = joined_processes(), hashlib.sha256()
    parts: list[tuple[NDArray[Any], ...]] = []
    sources: list[str] = []
    for number, batch in enumerate(judged_batches(certifier, batches)):
        sources += batch.sources
        if processes.first:
            hash_inputs(digest, batch.inputs)
            if kept is not None:
                kept.add(batch.inputs)
        if processes.does(number):
            parts.append((batch.labels, *certifier.certify(batch.inputs)))
    columns = zip(*processes.gather(parts), strict=True)
    joined = (torch.from_numpy(np.concatenate(column)) for column in columns)
    return Certificates(
        **dict(zip(TENSORS, joined, strict=True)),
        profile=certifier.profile,
        source=tuple(sources),
        numbers_sha256=digest.hexdigest(),
    )


def _batches(samples: Samples, batch_size: int) -> Iterator[InputBatch]:
    for start in range(0, len(samples), batch_size):
        inputs, labels = samples.batch(slice(start, start + batch_size))
        yield InputBatch(inputs.numpy(), labels.numpy(), ())


def _write(
    certifier: Model, certificates: Certificates, kept: SpooledRows | None, place: Path
) -> str:
    """Write them in the first process; words on what was there, if it was of other inputs."""
    folder, processes, replaced = RunFolder(place), joined_processes(), ""
    model = certifier.classes, certifier.model_sha256
    files = folder.certificates_file, certificates, *model, folder.inputs_file
    if processes.first:
        with folder.hold(PATIENCE):
            replaced = _replaced(folder.certificate_facts_file, certificates)
            write_certificates(*files, certified=kept, units=table_units(certifier))
    processes.wait()
    return replaced


def _replaced(facts: Path, certificates: Certificates) -> str:
    try:
        stated = read_json(facts)
    except (OSError, ValueError):  # none, or damaged ones
        return ""
    had = stated.get("numbers_sha256") if isinstance(stated, dict) else None
    known = None, certificates.numbers_sha256
    return "" if had in known else ", in place of certificates of other inputs"


def _shares(certifier: Model, certificates: Certificates) -> str:
    epsilon = choose_epsilons(certificates.radius, holds_pixels(certifier)).headline
    return (
        f"clean {certificates.clean_accuracy:.4f}, "
        f"certified@{epsilon_name(epsilon)} {certificates.certified_accuracy(epsilon):.4f}"
    )


def _in_units(certifier: Model) -> str:
    units = table_units(certifier)
    return "" if units is None else f", radii in {units}"


def _table(place: Path) -> Path:
    return RunFolder(place).certificates_file
