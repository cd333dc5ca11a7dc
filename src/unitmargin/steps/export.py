"""Export: a frozen network as one ONNX file, or as a folder ready to upload."""

import shutil
from pathlib import Path

from unitmargin import __version__
from unitmargin.certificates.slack import largest_slack
from unitmargin.foundation.files import (
    file_sha256,
    require_path,
    write_folder_aside,
    write_text,
)
from unitmargin.frozen import FrozenNetwork, load
from unitmargin.reporting.card import Subject, is_sealed, read_subject, write_card
from unitmargin.runs.certifier import EXPORTED, is_run
from unitmargin.runs.folder import GRAPH, RunFolder
from unitmargin.runs.lock import given_names
from unitmargin.runs.recipe import write_recipe

MODEL, CARD, RECIPE = "model.safetensors", "README.md", "recipe.toml"

OF_A_RUN = ("certificates.csv", "certificates.json", "report.html", "report.json")
"""What is copied of a run, where it is there."""

WRITTEN = {GRAPH, MODEL, CARD, RECIPE, *OF_A_RUN}

CHECKED = "checked.csv"
"""What `unitmargin check` adds to a folder; a new export does without it."""


def export(source: Path, out: Path) -> str:
    """Write a frozen network for deployment; the message says what, where and its hash.

    Args:
        source: a frozen run folder, or a model file.
        out: a file that ends in .onnx; any other name is a folder, which appears whole or not at
            all: the model in both formats, a model card, and of a run certificates and report.

    Raises:
        ImportError: the extra ``deploy`` is not installed.
        ValueError: an ``out`` that holds what export did not write, or a file that changed while it
            was read.
        RunError: a run that is not frozen, or files of it that are damaged or of another model.
    """
    if out.suffix.lower() == EXPORTED:
        return _export_file(source, require_path("out", out))
    _require_place(out)
    return _export_folder(source, out)


def _export_file(source: Path, out: Path) -> str:
    if _is_model(source):
        model, frozen = source, load(source)
    else:
        model, frozen = RunFolder(source).model_file, RunFolder(source).frozen()
    _write_onnx(frozen, out, model)
    return f"export: {out.name}, SHA-256 {file_sha256(out)} -> {out}"


def _export_folder(source: Path, out: Path) -> str:
    files = _files(source)
    before = {name: file_sha256(file) for name, file in files.items()}
    subject = _read(source)
    recipe = subject.recipe
    name = out.resolve().name if recipe is None else recipe.name
    with write_folder_aside(out) as aside:
        for file, origin in files.items():
            _copy(origin, aside / file, before[file])
        _write_onnx(subject.frozen, aside / GRAPH, aside / MODEL)
        if recipe is not None:
            write_text(aside / RECIPE, write_recipe(recipe.placeless()))
        hashes = {file.name: file_sha256(file) for file in sorted(aside.iterdir())}
        card = write_card(subject, name, largest_slack(subject.frozen), hashes, __version__)
        write_text(aside / CARD, card)
        written = ", ".join(sorted(file.name for file in aside.iterdir()))
    broken = subject.findings is not None and not subject.findings.passed
    warning = "; the card says which promises verify found BROKEN" if broken else ""
    return f"export: {written} of the model with SHA-256 {before[MODEL]} -> {out}{warning}"


def _is_model(source: Path) -> bool:
    return source.is_file() or not is_run(source)


def _read(source: Path) -> Subject:
    """What is known of the network, if all files of the run are of it."""
    if _is_model(source):
        return Subject(load(source))
    folder = RunFolder(source)
    subject = read_subject(folder)
    if folder.report_html.exists() or folder.report_json.exists():
        folder.require_report()
    return subject


def _files(source: Path) -> dict[str, Path]:
    """The files that are copied as they are, by their names in the folder."""
    if _is_model(source):
        return {MODEL: source}
    folder = RunFolder(source)
    model = folder.require(folder.model_file, f"freeze {source}")
    there = {name: folder.path / name for name in OF_A_RUN}
    return {MODEL: model} | {name: file for name, file in there.items() if file.exists()}


def _copy(origin: Path, target: Path, sha256: str) -> None:
    """Copy what was read: whoever writes into the run meanwhile would make the card untrue."""
    shutil.copyfile(origin, target)
    if file_sha256(target) != sha256:
        raise ValueError(
            f"{origin} must stay as it is while it is exported, got another content; export again "
            "when nobody writes into it"
        )


def _write_onnx(frozen: FrozenNetwork, path: Path, model: Path) -> None:
    from unitmargin.deployment.export import export_onnx

    export_onnx(frozen, path, model_file=model)


def _require_place(out: Path) -> None:
    """Raise unless a folder may be put there without loss of anything but a former export."""
    if not out.exists():
        return
    if not out.is_dir():
        raise ValueError(f"out must end in .onnx or be a folder, got the file {out}; name another")
    if Path.cwd().is_relative_to(out.resolve()):
        raise ValueError(f"out must not be the folder one works in, got {out}; name a folder in it")
    names = given_names(out)
    foreign = sorted(names - WRITTEN - {CHECKED})
    if not foreign and names:
        card = out / CARD
        text = card.read_bytes().decode(errors="replace") if card.is_file() else ""
        foreign = [] if is_sealed(text) else [f"a {CARD} that is edited" if text else f"no {CARD}"]
    if foreign:
        raise ValueError(
            f"out must be absent, empty or a folder as export wrote it, got {out} with "
            f"{foreign[0]}; name another folder, or move that one away"
        )
