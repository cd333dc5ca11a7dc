"""The verbs: one function each, no logic; what they need is imported when they are called."""

from pathlib import Path
from typing import Literal

import tyro

from unitmargin.arguments import EVALUATION, Chosen, EvaluationOptions, FolderPath, RecipeOptions


def train(options: RecipeOptions) -> int:
    """Train a recipe into its run folder; goes on where an interrupted run stopped."""
    from unitmargin.steps.train import train_run
    from unitmargin.training.processes import print_last

    print_last(train_run(*options.open(), options.device, options.minutes, options.log))
    return 0


def freeze(folder: FolderPath, data: Path | None = None) -> int:
    """Freeze a trained run folder: plain weights, deviations measured after rounding.

    Args:
        folder: run folder.
        data: file or folder of the data set, to be compared with what the weights were trained on;
            without it no data are read.
    """
    from unitmargin.runs.folder import RunFolder
    from unitmargin.steps.freeze import freeze_run

    print(freeze_run(RunFolder(folder), data))
    return 0


def certify(
    model: FolderPath,
    inputs: bool = False,
    data: Path | None = None,
    out: Path | None = None,
    evaluation: EvaluationOptions = EVALUATION,
) -> int:
    """Certify every test sample of a run folder, or new inputs, with one forward pass.

    Args:
        model: run folder, model file (.safetensors) or exported file (.onnx).
        inputs: also keep the certified inputs, for `unitmargin check`.
        data: new inputs: a folder or archive of images (IMAGE or CLASS/IMAGE), .npz, .npy, .csv or
            .parquet (of images, or of a table); or the data set of the run, if it has moved since
            the training.
        out: folder of the certificates; default: the run folder, of new inputs certified-DATA in
            it or next to the file.
    """
    from unitmargin.steps.certify import certify_model
    from unitmargin.training.processes import join_processes, print_last

    _, device = join_processes(evaluation.device)
    chosen = vars(evaluation) | {"device": str(device)}
    print_last(certify_model(model, data, inputs, out, **chosen))
    return 0


def predict(
    model: FolderPath,
    data: Path,
    json: bool = False,
    evaluation: EvaluationOptions = EVALUATION,
) -> int:
    """Print what a network says of new inputs, and the radius within which it holds.

    Args:
        model: run folder, model file (.safetensors) or exported file (.onnx).
        data: a folder or archive of images (IMAGE or CLASS/IMAGE), .npz, .npy, .csv or .parquet
            (of images, or of a table).
        json: one JSON object a line, for programs. Nothing is printed before the last input was
            judged.
    """
    from unitmargin.runs.certifier import open_certifier
    from unitmargin.steps.predict import predict

    certifier = open_certifier(model, evaluation.profile, evaluation.device)
    for line in predict(certifier, data, json, evaluation.batch_size):
        print(line)
    return 0


def verify(
    folder: FolderPath,
    solvers: tuple[str, ...] = ("sphere_tracing",),
    samples: int | None = None,
    box: Literal["auto", "off", "only"] = "auto",
    rounding_attack: bool = False,
    data: Path | None = None,
    normalised: bool = False,
) -> int:
    """Try to break the promises of a run folder; exit status 1 if one is broken.

    Args:
        folder: a certified run folder.
        solvers: solvers of the minimal adversarial perturbation, by name, with options after a
            colon: sphere_tracing:steps=300,n_candidates=9 ddn:loss=margin.
        samples: how many test samples are attacked; default: the recipe's verify_samples.
        box: auto searches without a box and, for data in [0, 1], within it too; "off" without a
            box alone, "only" within it alone.
        rounding_attack: also search the edge of each certified ball by units in the last place.
        data: file or folder of the data set, if it has moved since the training.
        normalised: also search behind an input normalisation that stretches channels unequally,
            where the paper measures.
    """
    from unitmargin.runs.folder import RunFolder
    from unitmargin.steps.verify import verify_run
    from unitmargin.training.processes import join_processes, print_last

    join_processes("cpu")
    chosen = solvers, samples, box, rounding_attack, data, normalised
    message, passed = verify_run(RunFolder(folder), *chosen)
    print_last(message)
    return 0 if passed else 1


def check(certificates: FolderPath, model: Path | None = None, inputs: Path | None = None) -> int:
    """Derive certificates again with an independent program; exit status 1 if one is not confirmed.

    Args:
        certificates: run folder, folder of certificates, or a certificates.csv.
        model: model file; default next to the certificates, or in the folder around them.
        inputs: certified inputs, .safetensors or .npy; default next to the certificates.
    """
    from unitmargin.steps.check import check_files

    message, confirmed = check_files(certificates, model, inputs)
    print(message)
    return 0 if confirmed else 1


def report(folder: FolderPath) -> int:
    """Write report.html, report.md and report.json of a run folder.

    Args:
        folder: a verified run folder.
    """
    from unitmargin.runs.folder import RunFolder
    from unitmargin.steps.report import report_run

    print(report_run(RunFolder(folder)))
    return 0


def compare(
    folders: tyro.conf.Positional[tuple[Path, ...]], out: Path = Path("runs/compare.html")
) -> int:
    """Write a page of certified runs side by side: curves on one axis, tables, differences.

    Args:
        folders: certified run folders of one kind of data; others are compared with the first.
        out: the page.
    """
    from unitmargin.runs.folder import RunFolder
    from unitmargin.steps.compare import compare_runs

    print(compare_runs([RunFolder(folder) for folder in folders], out))
    return 0


def explore(folder: FolderPath, samples: int = 200, data: Path | None = None) -> int:
    """Write explore.html of a frozen run: a page that runs the network, to be played with.

    Args:
        folder: a frozen run folder.
        samples: how many test samples people may choose from, spread evenly; fewer of long ones.
        data: file or folder of the data set, if it has moved since the training.
    """
    from unitmargin.runs.folder import RunFolder
    from unitmargin.steps.explore import explore_run

    print(explore_run(RunFolder(folder), samples, data))
    return 0


def export(source: FolderPath, out: FolderPath) -> int:
    """Write a frozen network as an ONNX file, or a folder with model card, ready to upload.

    Args:
        source: first: a frozen run folder, or model file.
        out: second: a file that ends in .onnx; any other name is a folder.
    """
    from unitmargin.steps.export import export as write_export

    print(write_export(source, out))
    return 0


def reproduce(
    target: tyro.conf.Positional[str],
    runs: tuple[Path, ...] = (),
    out: Path = Path("runs/paper"),
    data: Path | None = None,
    epochs: int | None = None,
    minutes: float | None = None,
    seeds: int = 1,
    limit: int | None = None,
    samples: int | None = None,
    solvers: tuple[str, ...] = ("sphere_tracing",),
    device: str = "cpu",
) -> int:
    """Write a table or figure of the paper, its numbers beside ours; trains the rows it needs.

    Args:
        target: accuracy, input-size, tightness, robust-accuracy, unitary-gradient, upd,
            toy-example, or all.
        runs: write from these run folders alone, and train nothing; what is trained and not
            certified or attacked yet is.
        out: folder of the trained rows, and of TARGET.md, TARGET.tex and the figures. What is
            there is not trained again; an interrupted training goes on.
        data: file or folder of CIFAR-10.
        epochs: instead of the paper's.
        minutes: instead of epochs: as many steps a row as take about that long.
        seeds: trainings a row (the paper: 4).
        limit: at most this many training and test samples.
        samples: how many test samples each solver searches; default: all by sphere_tracing, 500 by
            others.
        solvers: of the minimal adversarial perturbation.
        device: cpu, cuda, cuda:1, ...
    """
    from unitmargin.steps import reproduce as step

    budget = step.Budget(data, epochs, minutes, limit, seeds, samples, device)
    if runs:
        return 0 if step.take_over(target, runs, budget, out, solvers) else 1
    return 0 if step.reproduce(target, budget, out, solvers) else 1


def run(options: RecipeOptions) -> int:
    """Walk the whole recipe: train, freeze, certify, verify, report."""
    from unitmargin.steps.run import run_recipe

    passed = run_recipe(*options.open(), options.device, options.minutes, options.log)
    return 0 if passed else 1


def demo(out: Path = Path("runs/digits")) -> int:
    """Run the embedded digits recipe from data to report.

    Args:
        out: run folder.
    """
    return run(Chosen(Path("digits"), out))


def init(path: FolderPath, label: str | None = None) -> int:
    """Print a commented recipe that fits the data; `unitmargin run` walks it.

    Args:
        path: a table (.csv, .parquet), arrays (.npz), images in a folder, archive or Parquet files.
        label: column of a table or of Parquet files that holds the classes.
    """
    from unitmargin.steps.init import init_recipe

    print(init_recipe(path, label), end="")
    return 0


def recipes(name: tyro.conf.Positional[str | None] = None) -> int:
    """List the recipes that ship, or print one.

    Args:
        name: of the recipe to print; without it all are listed.
    """
    from unitmargin.runs.shipped import embedded_recipe, list_recipes

    lines = list_recipes() if name is None else [embedded_recipe(name).read_text("utf-8").rstrip()]
    for line in lines:
        print(line)
    return 0


VERBS = (
    init, recipes, train, freeze, certify, predict, verify, check, report, compare, explore, export,
    reproduce, run, demo,
)  # fmt: skip
