"""Every verb and every wrong thing: status 2, one line that says what, and nothing written."""

import io
import os
import shutil
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from wrong_inputs import (
    GARBAGE,
    ONE_PIXEL,
    RECIPE,
    Spoil,
    arrays,
    cell,
    cut,
    edit,
    flat,
    folder,
    gone,
    link,
    move,
    new,
    option,
    parquet,
    photos,
    pictures,
    recipe,
    saved,
    table,
    tabular,
    unsplit,
    whole,
    write,
    zipped,
)  # fmt: skip

from unitmargin import cli

RUN = "runs/tiny"
OTHER = "runs/other"
WALK = ("freeze", "certify", "verify", "check", "report")


class Row(NamedTuple):
    """A command, what the files were made to be, and what its line says."""

    command: str
    expected: str
    spoils: tuple[Spoil, ...] = ()


class Ended(NamedTuple):
    """How a command ended."""

    status: object
    out: str
    err: str


def call(*arguments: str) -> Ended:
    """Run the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as exited:
        cli.main([*arguments])
    return Ended(exited.value.code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two whole runs of different recipes."""
    base = tmp_path_factory.mktemp("walked")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(base)
        Path("tiny.toml").write_text(RECIPE)
        for run, changes in ((RUN, []), (OTHER, ["--seed", "3", "--limit", "50"])):
            assert call("train", "tiny.toml", "--out", run, *changes).status == 0
            for verb in WALK:
                inputs = ["--inputs"] if verb == "certify" else []
                assert call(verb, run, *inputs).status == 0
    return base


def contents() -> dict[Path, bytes | None]:
    """Every file below the working directory, but for decoded images that are kept."""
    found = (path for path in Path().rglob("*") if path.parts[0] != "cache")
    return {path: path.read_bytes() if path.is_file() else None for path in found}


def of(file: str) -> str:
    return f"{RUN}/{file}"


def another(file: str) -> Spoil:
    """The file of another run."""
    return lambda: shutil.copy(f"{OTHER}/{file}", of(file))


def renamed() -> None:
    """The archive of arrays under the name of a single one."""
    os.rename("data", "data.npy")


def row(command: str, expected: str, *spoils: Spoil | list[Spoil]) -> Row:
    flat = [one for spoil in spoils for one in (spoil if isinstance(spoil, list) else [spoil])]
    return Row(command, expected, tuple(flat))


TRAIN = "train new.toml"
CERTIFICATES, FACTS, CHECKS = of("certificates.csv"), of("certificates.json"), of("checks.json")

FOLDERS = [
    row(f"{verb} {place}", f"{place} is no run folder; check the path, or begin with `unitmargin r",
        write("file", "x"))
    for place in ("none", "file")
    for verb in ("freeze", "certify", "verify", "report", "explore", "compare")
] + [
    row(f"{verb} empty", expected, lambda: os.mkdir("empty"))
    for verb, expected in (
        ("freeze", "empty/recipe.toml does not exist; run `unitmargin train RECIPE` first"),
        ("certify", "empty/model.safetensors does not exist; run `unitmargin freeze empty`"),
        ("verify", "empty/recipe.toml does not exist; run `unitmargin train RECIPE` first"),
        ("report", "empty/recipe.toml does not exist; run `unitmargin train RECIPE` first"),
        ("explore", "empty/model.safetensors does not exist; run `unitmargin freeze empty`"),
        ("compare", "empty/recipe.toml does not exist; run `unitmargin train RECIPE` first"),
    )
] + [
    row(f"reproduce accuracy --runs {place}", f"{place} is no run folder; run `unitmargin run REC",
        write("file", "x"), lambda: os.mkdir("empty"))
    for place in ("none", "file", "empty")
] + [
    row("train digits --out photos", "photos must be absent, empty or a run folder, got one with c",
        lambda: os.mkdir("photos"), write("photos/cat.png", "x")),
    row(f"certify {RUN} --data new.npz --out photos", "got photos with cat.png; name another one",
        new(), lambda: os.mkdir("photos"), write("photos/cat.png", "x")),
    row(f"compare {RUN} --out precious.csv", "out must end in .html, got precious.csv; name a pa",
        write("precious.csv", "x")),
    row("train digits --minutes 1 --epochs 3", "minutes must be left out where epochs are given"),
    row(f"{TRAIN} --set training.crop=8", "crop must be below the sides of images, 8 x 8, got 8",
        recipe()),
    row("train moons --set training.crop=2", "crop and flip must be left out for inputs that are"),
    row("train moons --set training.flip=true", "got flip = true for inputs of shape (2,); leave"),
    row("explore empty/x", "empty/x is no run folder"),
    row("check none", "none/certificates.csv does not exist; run `unitmargin certify none` first"),
    row("check a.csv", "a.csv does not exist; run `unitmargin certify MODEL --data DATA --out"),
    row(f"explore {RUN} --samples 0", "samples must be >= 1, got 0; leave it out"),
    row(f"check {RUN} --model none", "none does not exist; check the path behind --model"),
    row(f"check {RUN} --inputs none", "none does not exist; check the path behind --inputs"),
    row("compare", "folders must be one run folder or more, got none; name two to compare"),
    row(f"compare {RUN} ./{RUN}", "folders must differ, got"),
    row(f"compare {RUN} --out runs", "out must be a file, got the folder runs; add the file's na"),
]  # fmt: skip

DAMAGE = [
    row(f"{verb} {RUN}", expected, spoil(of(file)))
    for file, verbs, expected in (
        ("recipe.toml", ("freeze", "verify", "report", "compare", "explore"), "recipe.toml"),
        ("weights.safetensors", ("freeze",), "weights.safetensors"),
        (
            "model.safetensors",
            ("certify", "verify", "check", "report", "compare", "explore"),
            "model.safetensors",
        ),
        ("certificates.csv", ("verify", "check", "report", "compare"), "certificates.csv"),
        ("certificates.json", ("verify", "check", "report", "compare"), "certificates."),
        ("inputs.safetensors", ("check",), "inputs.safetensors"),
        ("checks.json", ("report",), "checks.json"),
        ("solvers.csv", ("report", "compare"), "solvers.csv"),
        ("measurements.safetensors", ("report",), "measurements.safetensors"),
        ("history.csv", ("report",), "history.csv"),
    )
    for verb in verbs
    for spoil in (
        lambda file: write(file, ""),
        lambda file: write(file, GARBAGE),
        cut,
        folder,
        gone,
    )
] + [
    row(f"{verb} {RUN}", expected, another(file))
    for verb, file, expected in (
        ("verify", "model.safetensors", "is not of the weights in"),
        ("check", "model.safetensors", "is not the model that"),
        ("report", "certificates.json", "model_sha256 must be"),
        ("verify", "certificates.csv", "rows must be numbered from 0 to 59"),
        ("check", "inputs.safetensors", "is not the file of inputs that"),
        ("report", "checks.json", "model_sha256 must be"),
        ("report", "solvers.csv", "it must hold labels and radii of certificates.csv"),
        ("report", "measurements.safetensors", "model_sha256 must be"),
        ("train tiny.toml --out", "recipe.toml", "holds a run of another recipe: "),
    )
]  # fmt: skip

EXPORT = [
    row(f"export {place} out", expected, write("file", "x"), lambda: os.mkdir("empty"))
    for place, expected in (
        ("none", "none is no run folder; check the path, or begin with"),
        ("empty", "empty/model.safetensors does not exist; run `unitmargin freeze empty` first"),
        ("file", "file is damaged or truncated"),
    )
] + [
    row(f"export {RUN} {out}", file.removesuffix("json"), spoil(of(file)))
    for out, files in (
        (
            "out",
            (
                "recipe.toml", "weights.safetensors", "model.safetensors", "certificates.csv",
                "certificates.json", "checks.json", "report.json",
            ),
        ),
        ("out.onnx", ("weights.safetensors", "model.safetensors")),
    )
    for file in files
    for spoil in (lambda file: write(file, ""), lambda file: write(file, GARBAGE), cut, folder)
    if (file, spoil) != ("weights.safetensors", folder)
] + [
    row(f"export {RUN} out", file, gone(of(file)))
    for file in ("certificates.csv", "certificates.json", "report.html", "report.json")
] + [
    row(f"export {RUN} out", expected, another(file))
    for file, expected in (
        ("model.safetensors", "is not of the weights in"),
        ("certificates.csv", "rows must be numbered from 0 to 59"),
        ("certificates.json", "certificates.csv: model_sha256 must be"),
        ("checks.json", "checks.json: model_sha256 must be"),
        ("report.json", "report.json: model_sha256 must be"),
    )
] + [
    row(f"export {RUN} {out}", expected, write("file", "x"), *spoils)
    for out, expected, *spoils in (
        ("file", "out must end in .onnx or be a folder, got the file file; name another"),
        ("file/below", "file: File exists; name a folder, or move the file away"),
        ("file/x.onnx", "file: File exists; name a folder, or move the file away"),
        (RUN, f"out must be absent, empty or a folder as export wrote it, got {RUN} with"),
        (".", "out must not be the folder one works in, got .; name a folder in it"),
        ("x.onnx", "out must be a file, got the folder x.onnx", lambda: os.mkdir("x.onnx")),
        ("other", "other with no README.md; name another", write("other/model.onnx", "x")),
        ("other", "a README.md that is edited", write("other/README.md", "x")),
        ("n" * 300, "File name too long; choose a shorter name"),
        ("loop/x", "loop: File exists; name a folder", link("loop", "loop")),
    )
]  # fmt: skip

TABLES = [
    row(f"{verb} {RUN}", expected, spoil)
    for spoil, expected, verbs in (
        (whole(CERTIFICATES, lambda text: text.replace(",", ";")), "columns must be", WALK[2:]),
        (whole(CERTIFICATES, lambda text: f"\ufeff{text}"), "columns must be", WALK[2:]),
        (
            whole(CERTIFICATES, lambda text: text.replace(",radius", "")),
            "columns must be",
            WALK[2:],
        ),
        (whole(CERTIFICATES, lambda text: f"{text}{text.splitlines()[-1]}\n"), "rows", WALK[2:]),
        (whole(CERTIFICATES, lambda text: text + '"' + "x" * 200_000), "field larger", WALK[2:]),
        (cell(CERTIFICATES, "radius", ""), "certificates.csv", WALK[2:]),
        (cell(CERTIFICATES, "radius", "0x10"), "certificates.csv", WALK[2:]),
        (cell(CERTIFICATES, "radius", "nan"), "radius in line 2 must be", ("verify", "report")),
        (cell(CERTIFICATES, "radius", "-1.0"), "radius in line 2 must be", ("verify", "report")),
        (cell(CERTIFICATES, "radius", "1e400"), "radius in line 2 must be", ("verify", "report")),
        (cell(CERTIFICATES, "label", "9" * 5000), "label in line 2 must", ("verify", "report")),
        (cell(CERTIFICATES, "runner_up", "9" * 20), "must fit into 64 bits", ("verify", "report")),
        (cell(CERTIFICATES, "predicted", "-5"), "predicted in line 2 must", ("verify", "report")),
        (cell(CERTIFICATES, "label", "7"), "label_name in line 2 must be '7'", ("verify",)),
        (cell(CERTIFICATES, "index", "7"), "rows must be numbered from 0", WALK[2:]),
    )
    for verb in verbs
]

JSON = [
    row(f"{verb} {RUN}", expected, spoil(file))
    for file, verbs, name in (
        (FACTS, ("verify", "check", "report"), "certificates."),
        (CHECKS, ("report",), "checks.json"),
    )
    for verb in verbs
    for spoil, expected in (
        (lambda file: write(file, "[]"), name),
        (lambda file: write(file, "3"), name),
        (lambda file: write(file, "[" * 100_000), name),
        (lambda file: write(file, '{"a": NaN}'), name),
        (lambda file: write(file, f'{{"a": {"9" * 5000}}}'), name),
        (lambda file: write(file, "\ufeff{}"), name),
        (lambda file: edit(file, '"model_sha256": "', '"model_sha256": "0'), name),
        (lambda file: edit(file, '"samples": ', '"samples": -'), name),
    )
] + [
    row(f"verify {RUN}", "a key occurs twice", edit(FACTS, '"format"', '"units": "x", "format"')),
    row(f"check {RUN}", "unknown profile 'float16'", edit(FACTS, '"float64"', '"float16"')),
    row(f"verify {RUN}", "profile must be one of", edit(FACTS, '"float64"', '"float16"')),
    row(f"check {RUN}", "its profile must be a name", edit(FACTS, '"float64"', "{}")),
    row(f"check {RUN}", "its format must be", edit(FACTS, "certificates-2", "certificates-0")),
]  # fmt: skip

RECIPES = [
    row("train none.toml", "no recipe none.toml; pass a file, or one of cifar10-best"),
    row("train .", "no recipe .; pass a file, or one of"),
    row("run none", "no recipe none; pass a file, or one of"),
    row(TRAIN, "name must be given, got nothing; add it", write("new.toml", "")),
    row(TRAIN, "is not valid TOML: Invalid value (at line 1", write("new.toml", "a = = b")),
    row(TRAIN, "is not in UTF-8: 'utf-8' codec can't", write("new.toml", GARBAGE)),
    row(TRAIN, "is not in UTF-8: 'utf-8' codec can't", write("new.toml", RECIPE, "utf-16")),
    row(TRAIN, "new.toml is not valid TOML: Exceeds", write("new.toml", f"a = {'9' * 5000}")),
    row(TRAIN, "new.toml is not valid TOML: maximum", write("new.toml", f"a = {'[' * 50_000}")),
    row(TRAIN, "is not valid TOML: Cannot overwrite", write("new.toml", "a = 1\na = 2")),
    row(TRAIN, "data must be a table", recipe("[data]", "[[data]]")),
    row(TRAIN, "trainings is no option", recipe("[training]", "[trainings]")),
    row(TRAIN, "name must name a folder", write("new.toml", 'name = "../esc"')),
    row(TRAIN, "name must name a folder", write("new.toml", 'name = ""')),
    row(TRAIN, "name must be a valid string, got 3", write("new.toml", "name = 3")),
] + [
    row(TRAIN, expected, recipe(old, new))
    for old, new, expected in (
        ("epochs = 1", "epoch = 1", "training.epoch is no option"),
        ("epochs = 1", 'epochs = "1"', "training.epochs must be a valid integer, got '1'"),
        ("epochs = 1", "epochs = 1.5", "training.epochs must be a valid integer, got 1.5"),
        ("epochs = 1", "epochs = true", "training.epochs must be a valid integer, got True"),
        ("epochs = 1", "epochs = 0", "training.epochs must be greater than 0, got 0"),
        ("epochs", f"seed = {2**64}\nepochs", "training.seed must be less than 4294967296"),
        ("epochs", "seed = -1\nepochs", "training.seed must be greater than or equal to 0"),
        ("epochs", "interval = 0\nepochs", "training.interval must be greater than 0, got 0"),
        ("epochs", "pieces = 0\nepochs", "training.pieces must be greater than 0, got 0"),
        ("epochs", "pieces = 2.5\nepochs", "training.pieces must be a valid integer, got 2.5"),
        (
            "epochs",
            "recompute_activations = 2\nepochs",
            "recompute_activations must be a valid boolean, got 2",
        ),
        ("epochs", "evaluate_every = 0\nepochs", "evaluate_every must be greater than 0, got 0"),
        ("epochs", "loss = 'l'\nepochs", "training.loss must be one of multi_margin"),
        ("epochs", "schedule = 's'\nepochs", "training.schedule must be one of halving"),
        ("epochs", "optimizer = 'o'\nepochs", "training.optimizer must be one of adam, sgd"),
        ("epochs", "precision = 'p'\nepochs", "training.precision must be one of float32"),
        ("epochs", "precision = 'tf32'\nepochs", 'precision tf32 needs linear = "manifold"'),
        ("epochs", "padding = 'p'\nepochs", "training.padding must be one of zeros"),
        ("epochs", "learning_rate = inf\nepochs", "learning_rate must be a finite number, got"),
        ("epochs", "learning_rate = nan\nepochs", "learning_rate must be a finite number, got"),
        ("epochs", "learning_rate = 1e400\nepochs", "learning_rate must be a finite number"),
        ("epochs", "learning_rate = 0.0\nepochs", "learning_rate must be greater than 0"),
        ("epochs", "momentum = 1.0\nepochs", "training.momentum must be less than 1"),
        ("epochs", "flip = 3\nepochs", "training.flip must be a valid boolean, got 3"),
        ("epochs", "teacher_epochs = -1\nepochs", "teacher_epochs must be greater than or"),
        ("epochs", "teacher_share = 1.5\nepochs", "teacher_share must be less than or equal to 1"),
        ("epochs", "teacher_temperature = 0.0\nepochs", "temperature must be greater than 0"),
        (
            "epochs",
            "teacher_epochs = 1\nloss = 'multi_margin'\nepochs",
            "loss must take soft labels where a teacher makes them, got 'multi_margin'",
        ),
        ("epochs", "crop = -1\nepochs", "training.crop must be greater than or equal to 0"),
        ("batch_size = 32", "batch_size = 0", "training.batch_size must be greater than 0"),
        ("limit = 60", "limit = 0", "data.limit must be greater than 0, got 0"),
        ("limit = 60", "upsample = 0", "data.upsample must be greater than 0, got 0"),
        ("limit = 60", "path = 'none'", "path must be left out for data set 'digits'"),
        ('"digits"', '"digitz"', "data.name must be one of digits"),
        ('"digits"', '"npz"', "path must be given for data set 'npz'"),
        ('"digits"', '"images"', "path must be given for data set 'images'"),
        ('"digits"', '"moons"', "out_features must be at most in_features"),
        ('"dense_ugnn"', '"dense"', "model.name must be one of ugnn, dense_ugnn"),
        ("[16]", "[0]", "a width of hidden must be >= 1, got 0"),
        ("[16]", "[99999999]", "out_features must be at most in_features"),
        ("[16]", '"16"', "model.hidden must be a list, got '16'"),
        ("hidden", "linear = 'l'\nhidden", "model.linear must be one of bjorck"),
        ("hidden", "head = 'h'\nhidden", "model.head must be one of bounded"),
        ("hidden", "activation = 'a'\nhidden", "model.activation must be one of abs"),
        ("hidden", "conv = 'cayley'\nhidden", "model.conv is no option"),
        ("hidden", "in_shape = [3]\nhidden", "model.in_shape is no option"),
        ("hidden", "normalization = 'n'\nhidden", "model.normalization must be one of none"),
        ('"dense_ugnn"\nhidden = [16]', '"ugnn"\nconv = "c"', "model.conv must be one of"),
        ('"dense_ugnn"\nhidden = [16]', '"ugnn"\ndepth = 9', "divisible by 2**depth"),
        ('"dense_ugnn"\nhidden = [16]', '"mixing_ugnn"\nplan = ["x"]', "layer of a plan must be"),
        ('"dense_ugnn"\nhidden = [16]', '"mixing_ugnn"\nplan = ["fold 3"]', "a multiple of 3 on"),
        ('"dense_ugnn"\nhidden = [16]', '"mixing_ugnn"\nplan = "fold"', "model.plan must be"),
        ('"dense_ugnn"\nhidden = [16]', '"mixing_ugnn"\nabsolute = 2', "absolute must be at most"),
        ('"dense_ugnn"\nhidden = [16]', '"resnet9"', "must be divisible by 16, got 8 x 8"),
        ("verify_samples = 20", "verify_samples = 0", "verify_samples must be greater than 0"),
        ("verify_samples = 20", "dtype = 'float16'", "dtype must be one of float32, float64"),
        ("verify_samples = 20", "extra = 1", "extra is no option, known: name, data"),
    )
]  # fmt: skip

OPTIONS = [
    row(f"train new.toml {option}", expected, recipe(), write("file", "x"), link("loop", "loop"))
    for option, expected in (
        ("--limit 0", "limit must be greater than 0, got 0"),
        ("--limit -1", "limit must be greater than 0, got -1"),
        ("--epochs 0", "epochs must be greater than 0, got 0"),
        ("--minutes 0", "minutes must be positive and finite, got 0.0; leave it out for epochs"),
        ("--minutes nan", "minutes must be positive and finite, got nan; leave it out for"),
        ("--seed -1", "seed must be greater than or equal to 0, got -1"),
        ("--device gpu", "device must be one that torch can use here, got 'gpu'; use cpu"),
        ("--device meta", "device must be one that torch can use here, got 'meta'; use cpu"),
        ("--data none", "path must be left out for data set 'digits'"),
        ("--out file", "file: File exists; name a folder, or move the file away"),
        ("--out file/below", "file/below: Not a directory; name a folder"),
        (f"--out {'n' * 300}", "File name too long; choose a shorter name"),
        ("--out loop/x", "loop/x: Too many levels of symbolic links; mend the links"),
        (f"--out {RUN}", f"{RUN} holds a run of another recipe: "),
    )
] + [
    row("run new.toml --limit 0", "limit must be greater than 0", recipe()),
    row("run new.toml --device gpu", "device must be one that torch can use", recipe()),
    row("run new.toml --out file", "file: File exists; name a folder", recipe(), write("file", "")),
    row("demo --out file", "file: File exists; name a folder", write("file", "")),
    row(f"verify {RUN} --solvers foo", "solver must be one of sphere_tracing"),
    row(f"verify {RUN} --solvers", "solvers must be one or more of sphere_tracing"),
    row(f"verify {RUN} --normalised", "normalised must be asked of a network whose input"),
    row(f"verify {RUN} --solvers fmn:steps=nan", "steps of fmn must be a whole number, got 'nan'"),
    row(f"verify {RUN} --solvers fmn:steps=0", "steps must be >= 1, got 0"),
    row(f"verify {RUN} --solvers fmn:steps", "options of fmn must be OPTION=VALUE"),
    row(f"verify {RUN} --samples 0", "samples must be at least 1, got 0"),
    row(f"verify {RUN} --samples -1", "samples must be at least 1, got -1"),
    row(f"check {RUN} --inputs a.npy", "is no .npy file", write("a.npy", "x")),
    row(f"check {RUN} --inputs data.npy", "is no .npy file: it must hold", arrays(), renamed),
    row(f"check {RUN} --inputs a.npy", "inputs must have shape", saved(np.ones(3))),
    row(f"check {RUN} --inputs a.npy", "floating-point numbers", saved(np.ones(3, int))),
    row(f"check {RUN} --model file", "is no sound safetensors file", write("file", "x")),
    row("reproduce accurate", "target must be one of accuracy, input-size"),
    row("reproduce tightness --solvers foo", "solver must be one of sphere_tracing"),
    row("reproduce tightness --samples 0", "samples must be >= 1, got 0; leave it out for all"),
    row("reproduce accuracy --seeds 0", "seeds must be at least 1, got 0; the paper has 4"),
    row("reproduce accuracy --limit 0", "limit must be greater than 0, got 0"),
    row("reproduce accuracy --epochs 0", "epochs must be greater than 0, got 0"),
    row("reproduce accuracy --device gpu", "device must be one that torch can use here"),
    row("reproduce accuracy --data none", "none: must be a folder or a tar or zip archive"),
    row("reproduce accuracy --data empty", "empty: must hold .bin", lambda: os.mkdir("empty")),
    row(f"reproduce accuracy --runs {RUN} --out file", "file: File exists", write("file", "")),
] + [
    row(f"reproduce accuracy --minutes {minutes}", "minutes must be positive and finite, got")
    for minutes in ("0", "nan", "-1", "inf")
]  # fmt: skip

DATA_TABLES = [
    row(TRAIN, expected, tabular(old, new, options))
    for old, new, options, expected in (
        ("3,23", "3,", "", "a.csv: 'age' in line 5 must have a value, got an empty cell; fill it"),
        ("3,23", "3,NaN", "", "a.csv: 'age' in line 5 must have a value, got 'NaN'; fill it in"),
        ("3,23", "3,inf", "", "a.csv: 'age' in line 5 must be finite, got 'inf'; correct it"),
        ("3,23", "3,old", "", "a.csv: 'age' in line 5 must be a number, got 'old'; correct it"),
        ("3,23,", "3,", "", "a.csv: line 5 must have 4 cells, as the header, got 3; correct it"),
        ("23,b,1", "23,b,1.5", "", "'label' in line 5 must be a whole number or a word"),
        ("23,b,1", "23,b,", "", "a.csv: 'label' in line 5 must have a value, got an empty cell"),
        ("23,b,1", "23,b,2", "", "class '2' must have two different rows at least"),
        ("word", "age", "", "columns must have different names, got 'age' twice; rename one"),
        ("word", "", "", "every column must have a name, got none for column 3; name it"),
        ("label", "kind", "", "label must name the column of the classes, which is not told by"),
        ("", "", 'label = "kind"', "label must be one of one, age, word, label, got 'kind'"),
        ("", "", 'ignore = ["agee"]', "got 'agee'; did you mean 'age'?"),
        ("", "", 'test = "b.csv"', "b.csv: must be a .csv or .parquet file, found none"),
        ("", "", 'test = "b.csv"\ntest_share = 0.1', "test_share must be left out where test"),
        ("", "", "test_share = 1.0", "data.test_share must be less than 1, got 1.0"),
        ("", "", 'scale = "feature"', "data.scale must be one of none, features, units"),
        ("", "", "units = {age = 5.0}", "units must be left out under the scale 'none'"),
        ("", "", 'scale = "units"\nunits = {age = 0.0}', "data.units.age must be greater than 0"),
        ("", "x,label\n", "", "a.csv: must hold one row at least, got none; name another file"),
        ("", " \n", "", "every column must have a name, got none for column 1"),
        ("", "1,2\n3,4\n", "", "its first line must be a header, got numbers alone (1, 2"),
        ("", "x;label\n1;2\n", "", "cells must be separated by commas, got ';'; save it again"),
        ("", "x,label\n1,a\n2,a\n", "", "'label' must hold two classes at least, got 'a' alone"),
        (
            "",
            "x,z,label\n1,0,a\n1,1,a\n1,2,b\n1,3,b\n",
            'scale = "features"',
            "'x' must differ among the training rows to have a standard deviation, got '1'",
        ),
    )
] + [
    row(TRAIN, "a header and rows, got an empty table", tabular(), write("a.csv", "")),
    row(TRAIN, "a.csv: must be a table in UTF-8", tabular(), write("a.csv", GARBAGE)),
    row(TRAIN, "a.csv: must be a .csv or .parquet file, found none", tabular(), folder("a.csv")),
    row(TRAIN, "data.scale must be left out for data set 'digits'",
        recipe("limit", 'scale = "features"\nlimit')),
    row("init none.csv", "none.csv: must be a table (.csv, .parquet), arrays (.npz), a folder or"),
    row("init none", "none: must be a table (.csv, .parquet), arrays (.npz), a folder or archive"),
    row("init data", "data: must be readable, and an archive must", write("data", "x")),
    row("init a.npz --label y", "label must be left out for a.npz, which is no .csv and no",
        write("a.npz", "x")),
    row("init a.csv", "label must name the column of the classes", tabular("label", "kind")),
    row("recipes none", "no recipe none; pass a file, or one of cifar10-best"),
    row(f"predict {RUN} --data a.parquet", "a.parquet: must be a whole Parquet file, got",
        write("a.parquet", "x")),
    row(f"predict {RUN} --data a.parquet", "images for a network that was not trained on a table",
        parquet("a.parquet", x=[1.0])),
    row("init a.parquet", "a.parquet: row 2 must hold the bytes of an image, got none; store them",
        parquet("a.parquet", image=[ONE_PIXEL, None], label=[0, 1])),
    row("init a.parquet", "a.parquet: row 2: must be a whole image",
        parquet("a.parquet", image=[ONE_PIXEL, ONE_PIXEL[:-30]], label=[0, 1])),
    row("init a.parquet", "a.parquet: row 2 must have a label in 'label', got none; fill it in",
        parquet("a.parquet", image=[ONE_PIXEL] * 2, label=["cat", None])),
    row("init a.parquet", "a.parquet: label must name the column of the classes, which is not told",
        parquet("a.parquet", image=[ONE_PIXEL] * 2)),
    row("init a.parquet --label kind", "a.parquet: label must be one of 'image', 'label', got 'kin",
        parquet("a.parquet", image=[ONE_PIXEL] * 2, label=[0, 1])),
    row("init a.parquet", "a.parquet: must hold a row in a.parquet, got none",
        parquet("a.parquet", image=[], label=[])),
    row(TRAIN, "a.parquet: must hold numbers and words, got images in 'image'; write name = \"imag",
        tabular(), edit("new.toml", "a.csv", "a.parquet"),
        parquet("a.parquet", image=[ONE_PIXEL] * 2, label=[0, 1])),
    row(TRAIN, "data.resize must be left out for data set 'table', got 8; it is an option of the",
        tabular(options="resize = 8")),
    row(TRAIN, "data.channels must be left out for data set 'digits', got 1; it is an option of",
        recipe("limit", "channels = 1\nlimit")),
    row(TRAIN, "data.test_share must be left out for data set 'digits', got 0.5; it is an",
        recipe("limit", "test_share = 0.5\nlimit")),
] + [
    row(f"{verb} new.toml --set {setting}", expected, recipe())
    for verb in ("train", "run")
    for setting, expected in (
        ("epochs", "set must be KEY=VALUE, got 'epochs'; write it as training.learning_rate=0.01"),
        ("training.epoch=3", "training.epoch is no option, known: epochs, steps"),
        ("training.epochs=x", "training.epochs must be a valid integer, got 'x'"),
        ("train.epochs=3", "train is no option, known: name, data, model, training"),
    )
]  # fmt: skip

DATA = [
    row(TRAIN, expected, arrays(**changes))
    for changes, expected in (
        ({"y_train": None}, "must hold x_train, y_train, x_test and y_test"),
        ({"y_train": np.array([0, 1, 0])}, "labels must be int64 of shape (4,)"),
        ({"y_train": np.array([0.0, 1.0, 0.0, 1.0])}, "y_train must be integers, got float64"),
        ({"y_train": np.array(["a", "b", "a", "b"])}, "y_train must be integers, got <U1"),
        ({"y_train": np.array([0, -1, 0, 1])}, "labels must be >= 0, got -1"),
        ({"y_train": np.array([0, 10**15, 0, 1])}, "must count classes from 0, got 10000"),
        (
            {"y_train": np.array([1, 2, 1, 2]), "y_test": np.array([1, 2])},
            "must count classes from 0, got 1 as the least; subtract it",
        ),
        ({"y_train": np.zeros(4, int), "y_test": np.zeros(2, int)}, "two or more different names"),
        ({"x_train": np.array([{}] * 4)}, "plain arrays, got: Object arrays cannot be loaded"),
        ({"x_train": np.full((4, 2), np.nan)}, "inputs must be finite in float32, got NaN"),
        ({"x_train": np.full((4, 2), 1e300)}, "inputs must be finite in float32, got NaN"),
        ({"x_train": np.zeros((4, 3))}, "must have one shape, got (3,) and (2,)"),
        ({"x_train": np.zeros((4, 2, 2))}, "x_train must have shape (n, channels, height, width)"),
        ({"x_train": np.zeros((4, 2), complex)}, "x_train must be uint8 or floating"),
        ({"x_train": np.zeros((0, 2)), "y_train": np.zeros(0, int)}, "at least one number"),
        ({"classes": np.array(["a", "a"])}, "classes must be two or more different names"),
        ({"classes": np.array(["a"])}, "classes must be two or more different names"),
    )
] + [
    row(TRAIN, expected, arrays(), spoil)
    for spoil, expected in (
        (gone("data"), "must be a .npz file, found none in /"),
        (folder("data"), "must be a .npz file, found none; check the path"),
        (write("data", ""), "must be a .npz file of plain arrays"),
        (write("data", GARBAGE), "must be a .npz file of plain arrays"),
        (cut("data"), "must be a .npz file of plain arrays, got: File is not a zip file"),
    )
] + [
    row(TRAIN, expected, pictures(*spoils))
    for spoils, expected in (
        ([gone("data")], "data: must be a file or folder of data, found none in /"),
        ([gone("data"), lambda: os.mkdir("data")], "must hold images as train/CLASS/IMAGE and"),
        ([gone("data"), write("data", "x")], "an archive must be a whole tar file"),
        ([gone("data/train/b"), gone("data/test/b")], "two or more different names"),
        ([gone("data/train/b")], "got no train/b; add it"),
        ([gone("data/test")], "got no class in test; add the folder"),
        ([lambda: Image.new("L", (5, 4)).save("data/train/a/0.png")], "must have the size of"),
        ([cut("data/train/a/1.png")], "train/a/1.png: must be a whole image"),
        ([write("data/train/a/1.png", "")], "train/a/1.png: must be a whole image"),
        ([write("data/train/a/notes.txt", "x")], "train/a/notes.txt: must be a whole image"),
        ([link("data/train/a/9.png", "0.png")], "got the symbolic link train/a/9.png"),
        ([write("cache", "x")], "cache: must be a folder that can be written to, got cache"),
        ([option("resize = 0")], "data.resize must be greater than 0, got 0"),
        ([option("resize = 'x'")], "data.resize must be a valid integer, got 'x'"),
        ([option("resize = 5000")], "data.resize must be less than or equal to 4096, got 5000"),
        ([option("channels = 2")], "data.channels must be 1 or 3, got 2"),
        ([option("test_share = 1.0")], "data.test_share must be less than 1, got 1.0"),
        ([option("test_share = 0.0")], "data.test_share must be greater than 0, got 0.0"),
        ([option("split_seed = -1")], "data.split_seed must be greater than or equal to 0"),
        ([option("test_share = 0.2")], "test_share must be left out for images that lie in"),
        ([edit("new.toml", '"images"', '"npz"'), option("resize = 4")], "resize must be left out"),
        ([move("data/train/a", "data/a")], "got no train/a; add it"),
        ([move("data/train", "data/old/more/train")], "got no class in train; add the folder"),
        ([flat("data")], "data: must hold images as train/CLASS/IMAGE and"),
        ([flat("data"), write("data/a/1.png", ""), option("resize = 4")], "must lie as train/CLA"),
        ([unsplit("data"), gone("data/b/1.png")], "two different images at least, one to train"),
        ([unsplit("data"), write("data/a/deep/1.png", "")], "got a/deep; move or remove it"),
        ([zipped("data"), cut("data")], "(plain, gzip, bzip2 or xz) or zip file, got: File is not"),
        ([zipped("data", "../x.png")], "names must stay inside the archive, got ../x.png"),
    )
]  # fmt: skip

ARRAYS, PHOTOS, TABLE = (f"{RUN} --data {name}" for name in ("new.npz", "photos", "new.csv"))

NEW = [
    row(f"{verb} {command}", expected, *spoils)
    for verb in ("certify", "predict")
    for command, expected, spoils in (
        (f"{RUN} --data none", "none: must be a folder or archive of images, a .npz", []),
        (f"{RUN} --data file", "an archive must be a whole tar file", [write("file", "x")]),
        (f"{RUN} --data empty", "must hold one input at least, got", [lambda: os.mkdir("empty")]),
        (ARRAYS, "new.npz: must be a whole .npz or .npy file", [write("new.npz", GARBAGE)]),
        (ARRAYS, "new.npz: must be a whole .npz or .npy file", [new(), cut("new.npz")]),
        (ARRAYS, "must hold an array `x` or `inputs`, got ['a']", [new(x=None, a=np.ones(3))]),
        (ARRAYS, "x must be uint8 or floating, got int64", [new(x=np.zeros((3, 1, 8, 8), int))]),
        (ARRAYS, "x must have shape (n, 1, 8, 8), that of", [new(x=np.zeros((3, 1, 8, 9)))]),
        (ARRAYS, "give grey images one channel with x[:, None]", [new(x=np.zeros((3, 8, 8)))]),
        (ARRAYS, "NaN or infinity in x[0];", [new(x=np.full((3, 1, 8, 8), np.nan))]),
        (ARRAYS, "must lie in [0.0, 1.0], the domain of", [new(x=np.full((3, 1, 8, 8), 1.5))]),
        (ARRAYS, "must hold one input at least", [new(x=np.zeros((0, 1, 8, 8)))]),
        (ARRAYS, "labels must be one for each of the 3 inputs, got 2", [new(y=np.zeros(2, int))]),
        (ARRAYS, "y must be from 0 to 9, the classes", [new(y=np.full(3, 10))]),
        (PHOTOS, "photos: 0.png: must be a whole image", [photos(write("photos/0.png", "x"))]),
        (PHOTOS, "the network's inputs, 8 x 8, got 4 x 5", [photos(size=(5, 4))]),
        (PHOTOS, "must be an 8-bit grey image", [photos(mode="P")]),
        (PHOTOS, "must lie as IMAGE or CLASS/IMAGE, got a/b", [photos(write("photos/a/b/c", ""))]),
        (TABLE, "'b' in line 2 must be a number, got 'x'", [table(["b"] * 64, ["x"] * 64)]),
        (TABLE, "must have 64 columns of numbers, the inputs", [table(["0"] * 3)]),
        (TABLE, "NaN or infinity in line 1;", [table(["nan"] * 64)]),
        (TABLE, "first outside in line 1;", [table(["16"] * 64)]),
        (TABLE, "must be a header of words", [table([*map(str, range(64))])]),
        (f"{ARRAYS} --profile float16", "profile must be one of float64, float32", [new()]),
        (f"{ARRAYS} --device gpu", "device must be one that torch can use here, got", [new()]),
        (f"{ARRAYS} --batch-size 0", "batch_size must be >= 1, got 0; leave it out", [new()]),
        ("none.safetensors --data new.npz", "no model file at none.safetensors; run", [new()]),
        ("none.onnx --data new.npz", "none.onnx does not exist; write it with", [new()]),
        ("m.onnx --data new.npz", "m.onnx must be an ONNX file", [new(), write("m.onnx", "x")]),
        ("none --data new.npz", "none is no run folder; check the path", [new()]),
    )
] + [
    row(f"certify {of('model.safetensors')}", "data must be given for runs/tiny/model.safetens"),
    row(f"certify {ARRAYS} --out {RUN}", "out must be a folder of its own, got the run", new()),
    row(f"certify {ARRAYS} --out file", "file: File exists; name a", new(), write("file", "")),
    row(f"certify {RUN} --out {OTHER}", "out must be a folder of its own, got the run folder"),
    row(f"certify {RUN} --profile float32", "profile must be float64, the run's own, where"),
    row(f"certify {RUN} --batch-size -1", "batch_size must be >= 1, got -1; leave it out"),
    row(f"certify {RUN} --device gpu", "device must be one that torch can use here, got 'gpu'"),
]  # fmt: skip

ROWS = FOLDERS + DAMAGE + EXPORT + TABLES + JSON + RECIPES + OPTIONS + DATA + DATA_TABLES + NEW


@pytest.mark.parametrize("wrong", ROWS, ids=[f"{row.command[:60]}" for row in ROWS])
def test_a_wrong_input_is_status_2_and_one_line_and_nothing_is_written(
    wrong: Row, walked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(walked, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNITMARGIN_CACHE", "cache")
    for spoil in wrong.spoils:
        spoil()
    before = contents()
    status, out, err = call(*wrong.command.split())
    assert (status, out) == (2, ""), err
    assert err.startswith("unitmargin: ")
    assert wrong.expected in err
    assert (err.count("\n"), err[-1]) == (1, "\n")
    assert contents() == before


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("", "demo"), ("fly", "fly"), ("train", "recipe"), ("freeze", "PATH"),
        ("train digits --speed 9", "--speed"), ("train digits --seed", "--seed"),
        ("export run", "PATH"),
        ("train digits --epochs 1e3", "--epochs"), ("train digits --limit 1.5", "--limit"),
        ("verify run --box maybe", "--box"), ("verify run --samples x", "--samples"),
        ("predict run", "--data"), ("certify run --batch-size x", "--batch-size"),
        ("reproduce upd --minutes x", "--minutes"), ("demo x", "x"), ("demo --outt x", "--outt"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_status_2_and_names_the_argument(command: str, named: str) -> None:
    status, out, err = call(*command.split())
    assert (status, out) == (2, "")
    assert named.lower() in err.lower()


READERS = [
    (verb, file)
    for file, verbs in {
        "recipe.toml": ("freeze", "certify", "verify", "report", "compare"),
        "weights.safetensors": ("freeze", "report", "compare"),
        "model.safetensors": ("certify", "verify", "check", "report"),
        "certificates.csv": ("verify", "check", "report"),
        "certificates.json": ("verify", "check", "report"),
        "inputs.safetensors": ("check", "verify"),
        "checks.json": ("report", "compare"), "solvers.csv": ("report",),
        "history.csv": ("report", "compare"),
        "measurements.safetensors": ("report",),
    }.items()
    for verb in verbs
]  # fmt: skip

WORDS = [b"0", b"-1", b"null", b"NaN", b"1e400", b"[", b"{}", b'"', b"\x00", b"\xff", b"9" * 30]


@settings(max_examples=60)
@given(
    reader=st.sampled_from(READERS),
    start=st.floats(0, 1),
    length=st.integers(0, 40),
    new=st.sampled_from(WORDS) | st.binary(max_size=20),
    ending=st.booleans(),
)
def test_a_damaged_file_of_a_run_is_read_or_refused(
    walked: Path, reader: tuple[str, str], start: float, length: int, new: bytes, ending: bool
) -> None:
    """Claims that were changed in certificates.csv are broken promises; no other damage is one."""
    verb, name = reader
    with TemporaryDirectory() as folder:
        run = Path(shutil.copytree(walked / RUN, Path(folder, "run")))
        old = (run / name).read_bytes()
        place = int(start * len(old))
        rest = b"" if ending else old[place + length :]
        (run / name).write_bytes(old[:place] + new + rest)
        page = ["--out", str(run / "page.html")] if verb == "compare" else []
        status, _, err = call(verb, str(run), *page)
    claims = name == "certificates.csv" and verb in ("verify", "check")
    assert status in ((0, 1, 2) if claims else (0, 2)), err
    assert err.count("\n") == (status == 2), err
