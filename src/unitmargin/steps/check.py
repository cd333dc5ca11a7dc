"""Check: certificates derived again by an independent program; checked.csv and an exit status."""

from pathlib import Path

from unitmargin.checker import check, write

EXPORTED = "model.onnx"
"""A folder with it was made by `unitmargin export`."""

TRAINED = "weights.safetensors"
"""A folder with it is a run, which may hold an exported file besides."""

SHOWN = 10
"""Rows that are named; checked.csv has all of them."""


def check_files(
    certificates: Path, model: Path | None = None, inputs: Path | None = None
) -> tuple[str, bool]:
    """Check a run folder or its certificates.csv; the message, and whether all were confirmed.

    ``model`` and ``inputs`` are looked for next to the certificates, the model in the folder around
    them, too, where certificates of new inputs lie. It imports no torch.

    Raises:
        FileNotFoundError: one of the files is missing.
        ValueError: a file that is no table.
    """
    named = certificates.suffix.lower() == ".csv" and not certificates.is_dir()
    if certificates.is_file() and not named:
        raise ValueError(
            f"certificates must be a folder or a .csv file, got {certificates}; pass the folder of "
            "certificates.csv"
        )
    table = certificates if named else certificates / "certificates.csv"
    verdicts, profile = check(*_files(table, model, inputs))
    written = table.with_name("checked.csv")
    place = f"-> {written}"
    try:
        write(verdicts, written)
    except OSError as error:  # the verdict is for whoever can read, too
        place = f"({written} could not be written: {error.strerror})"
    failed = [verdict for verdict in verdicts if verdict.reason]
    silent = sum(verdict.certificate.radius == 0.0 and not verdict.reason for verdict in verdicts)
    lines = [
        f"check: NOT CONFIRMED row {verdict.certificate.row}: {verdict.reason}"
        for verdict in failed[:SHOWN]
    ]
    lines.append(
        f"check: {len(verdicts) - len(failed) - silent} certificates confirmed, {len(failed)} not, "
        f"{silent} claim nothing, profile {profile} {place}"
    )
    return "\n".join(lines), not failed


def _files(table: Path, model: Path | None, inputs: Path | None) -> list[Path]:
    """The table, its facts, the model and the inputs; raises unless all are there."""
    folder = table.parent
    new = "MODEL --data DATA --out "
    certify = f"certify {'' if _is_run(folder) else new}{folder}"
    kept = f"run `unitmargin {certify} --inputs` first"
    if (folder / EXPORTED).is_file() and not (folder / TRAINED).is_file():
        kept = "an exported folder holds no inputs: pass --inputs with those of the run"
    files = (
        (table, f"run `unitmargin {certify}` first"),
        (table.with_suffix(".json"), f"run `unitmargin {certify}` first"),
        (model or _model(folder), _model_step(folder)),
        (inputs or folder / "inputs.safetensors", kept),
    )
    given = {model: "--model", inputs: "--inputs"}
    for file, step in files:
        if not file.is_file():
            step = f"check the path behind {given[file]}" if file in given else step
            state = "is a folder" if file.is_dir() else "does not exist"
            raise FileNotFoundError(f"{file} {state}; {step}")
    return [file for file, _ in files]


def _is_run(folder: Path) -> bool:
    """Whether a run's own certificates stand there; those of new inputs have their own folder."""
    return not folder.is_dir() or (folder / "model.safetensors").is_file()


def _model_step(folder: Path) -> str:
    """Where the model comes from that is not there: only a run can make it."""
    if (folder / TRAINED).is_file():
        return f"run `unitmargin freeze {folder}` first"
    return "pass --model with the model file whose SHA-256 certificates.json names (model_sha256)"


def _model(folder: Path) -> Path:
    beside, around = (place / "model.safetensors" for place in (folder, folder / ".."))
    return around if around.is_file() and not beside.is_file() else beside
