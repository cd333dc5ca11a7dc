"""Verifying: promises that hold pass, and each broken one is found and named."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from exact import EXACT, unit_affine
from tables import read_rows, write_rows

from unitmargin.auditing.gradients import UNIT_GRADIENT_TOLERANCE
from unitmargin.certificates import findings
from unitmargin.certificates.findings import (
    closed_form_finding,
    search_finding,
)
from unitmargin.certificates.rounding_attack import RoundingAttack, rounding_attack
from unitmargin.certificates.spaces import input_space
from unitmargin.certificates.stored import RADIUS_AGREEMENT
from unitmargin.certificates.tightness import describe, search_boundary, tightness
from unitmargin.data import Samples
from unitmargin.frozen import Dense, FrozenNetwork, save
from unitmargin.frozen.profiles import Profile
from unitmargin.frozen.proof import Proof
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.promises import GNP, HEAD_PROMISES, ISOMETRY, LIPSCHITZ
from unitmargin.models import build_model
from unitmargin.models.freezing import freeze
from unitmargin.reporting.summary import read_evidence
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.recipe import DataOptions, ModelOptions, Recipe
from unitmargin.runs.searching import DEFAULT_SOLVERS, UNIT_BOX, choose_boxes
from unitmargin.solvers import SOLVERS
from unitmargin.steps.certify import certify_run
from unitmargin.steps.freeze import freeze_run
from unitmargin.steps.train import train_run
from unitmargin.steps.verify import verify, verify_run
from unitmargin.training.options import TrainingOptions

NAMES = ["orthogonality", "upd", "unit_gradient", "closed_form_outside_radius"]


def failed(network: FrozenNetwork, inputs: torch.Tensor) -> list[str]:
    samples = Samples(inputs.float(), torch.zeros(len(inputs), dtype=torch.int64))
    return [check.name for check in verify(network, samples) if not check.passed]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", EXACT)
def test_the_closed_form_never_contradicts_a_true_certificate(
    name: str, dtype: torch.dtype
) -> None:
    truth = EXACT[name](dtype)
    check = closed_form_finding(truth.network, truth.inputs)
    assert check.passed, check.detail
    if truth.tight:  # the attack is as good as the certificate
        assert check.value <= 1 + 1e-9


@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exact_certificates_pass_whatever_the_rounding(dtype: torch.dtype, classes: int) -> None:
    """The attack lands at the radius itself here, for thousands of samples."""
    truth = unit_affine(dtype, classes, in_shape=(12,))
    for scale in (1e-3, 1.0, 100.0):
        inputs = scale * torch.randn(2000, 12, dtype=dtype)
        check = closed_form_finding(truth.network, inputs)
        assert check.passed, check.detail


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_frozen_network_keeps_every_promise(dtype: torch.dtype) -> None:
    for name, shape in (("ugnn", (1, 4, 4)), ("dense_ugnn", (6,))):
        frozen = freeze(build_model(name, shape, 4), dtype)
        assert failed(frozen, torch.randn(64, *shape)) == []


def scale_constants(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    """Make every Lipschitz constant wrong by a factor, wherever it is asked for."""
    original = FrozenNetwork.kept_proof

    def scaled(network: FrozenNetwork, profile: Profile) -> Proof:
        proof = original(network, profile)
        lipschitz = factor * proof.bounds.lipschitz
        return proof._replace(bounds=replace(proof.bounds, lipschitz=lipschitz))

    monkeypatch.setattr(FrozenNetwork, "kept_proof", scaled)


def scale_head(frozen: FrozenNetwork) -> None:
    frozen.head.weight.mul_(1.01)


def scale_layer(frozen: FrozenNetwork) -> None:
    frozen.layers[2].weight.mul_(1.01)


def tilt_one_row(frozen: FrozenNetwork) -> None:
    frozen.head.weight[1] += 0.01 * frozen.head.weight[0]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (scale_head, {"upd", "unit_gradient"}),
        (scale_layer, {"orthogonality", "unit_gradient"}),
        (tilt_one_row, {"upd", "unit_gradient"}),
    ],
)
def test_one_per_cent_is_noticed(
    change: Callable[[FrozenNetwork], None], expected: set[str]
) -> None:
    frozen = freeze(build_model("dense_ugnn", (6,), 4))
    x = torch.randn(32, 6)
    assert failed(frozen, x) == []
    change(frozen)
    assert set(failed(frozen, x)) == expected


def test_a_wrong_constant_is_caught_by_the_attack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates 1 % too large are contradicted by a point, and the sample is named."""
    truth = unit_affine()
    scale_constants(monkeypatch, 0.99)
    check = closed_form_finding(truth.network, truth.inputs)
    assert not check.passed
    assert check.value == pytest.approx(0.99, abs=1e-6)
    assert check.detail.startswith("sample ")
    assert "inside the certified radius" in check.detail


@pytest.mark.parametrize("solver", ["sphere_tracing", "deepfool"])
@pytest.mark.parametrize(("factor", "passed"), [(1.0, True), (0.99, False), (0.5, False)])
def test_solvers_contradict_certificates_that_are_too_large(
    factor: float, passed: bool, solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Radii 1 % beyond the true distance of an affine network are found out, and named."""
    truth = unit_affine()
    scale_constants(monkeypatch, factor)
    labels = truth.network(truth.inputs).argmax(1)
    index = 100 + torch.arange(len(labels))
    search = search_boundary(input_space(truth.network), truth.inputs, labels, index, solver, None)
    check = search_finding([search])
    assert check.passed is passed
    assert check.value == pytest.approx(factor, abs=1e-6)
    if not passed:
        assert f"{solver} without box found another label at distance" in check.detail
        assert int(check.detail.split()[2].rstrip(":")) >= 100


def test_a_search_without_points_proves_nothing_and_is_not_run() -> None:
    network = FrozenNetwork([Dense(torch.zeros(2, 3), torch.tensor([2.0, 0.0]))], (3,))
    labels = torch.zeros(2, dtype=torch.int64)
    search = search_boundary(
        input_space(network), torch.rand(2, 3), labels, torch.arange(2), "sphere_tracing", None
    )
    check = search_finding([search])
    assert (check.passed, check.value) == (None, None)
    assert check.not_run == "no solver found a point for a certified sample that was right"


def test_a_normalisation_is_no_broken_promise() -> None:
    normalize = Normalize(torch.rand(6), torch.linspace(0.1, 2.0, 6))
    frozen = freeze(build_model("dense_ugnn", (6,), 4, normalize=normalize))
    assert failed(frozen, torch.randn(32, 6)) == []


def test_samples_without_a_certificate_are_not_attacked() -> None:
    weight = torch.tensor([[0.5, 0.0], [-0.5, 0.0]], dtype=torch.float64)
    network = FrozenNetwork([Dense(weight, torch.zeros(2).double())], (2,))
    check = closed_form_finding(network, torch.zeros(3, 2, dtype=torch.float64))
    assert (check.passed, check.value) == (None, None)
    assert check.not_run == "no certified sample had a point with another label on its ray"


# --- The run folder ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    recipe = Recipe(
        name="tiny",
        data=DataOptions(name="digits", limit=80),
        model=ModelOptions(name="dense_ugnn", options={"hidden": [16]}),
        training=TrainingOptions(epochs=2, batch_size=16),
        verify_samples=30,
    )
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    train_run(recipe, folder)
    freeze_run(folder)
    certify_run(folder)
    return folder


@pytest.fixture
def folder(finished: RunFolder, tmp_path: Path) -> RunFolder:
    """A copy that a test may break."""
    for name in ("recipe.toml", "model.safetensors", "certificates.csv", "certificates.json"):
        (tmp_path / name).write_bytes((finished.path / name).read_bytes())
    return RunFolder(tmp_path)


def test_a_run_that_keeps_its_promises(folder: RunFolder) -> None:
    message, passed = verify_run(folder)
    content = json.loads(folder.checks_file.read_text())
    assert passed
    assert content["passed"] is True
    assert content["samples"] == 30
    assert [check["name"] for check in content["checks"]] == [
        *NAMES,
        "stored_certificates",
        "solvers_outside_radius",
    ]
    assert all(check["passed"] and check["detail"] == "" for check in content["checks"])
    assert message.splitlines()[-1].startswith("verify: 6 of 6 checks passed on 30 samples")


def test_claims_that_are_too_large_fail_the_run(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Constants of half their size double every radius, in the file and in the solver's bounds."""
    scale_constants(monkeypatch, 0.5)
    certify_run(folder)
    message, passed = verify_run(folder)
    assert not passed
    assert "FAILED solvers_outside_radius: test sample " in message
    assert "FAILED stored_certificates" not in message


def test_solver_rows_say_how_they_were_found(folder: RunFolder) -> None:
    verify_run(folder, ("closed_form", "deepfool", "deepfool"), 12)
    searches = folder.searches()
    assert [(search.solver, search.box) for search in searches] == [
        ("closed_form", None),
        ("deepfool", None),
        ("closed_form", UNIT_BOX),
        ("deepfool", UNIT_BOX),
    ]
    test, stored = folder.dataset().test, read_rows(folder.certificates_file)
    summary = json.loads(folder.checks_file.read_text())
    assert summary["hardware"]
    for search, row in zip(searches, summary["solvers"], strict=True):
        assert torch.equal(search.index, test.spread(12))
        assert torch.equal(search.label, test.labels[search.index])
        assert search.settings.endswith("refinements=20")
        radii = torch.tensor([float(stored[at]["radius"]) for at in search.index.tolist()]).double()
        assert torch.allclose(search.radius, radii, atol=RADIUS_AGREEMENT)
        assert row == describe(search)
        assert row["right"] == sum(
            stored[at]["label"] == stored[at]["predicted"] for at in search.index.tolist()
        )


def test_the_certificates_of_the_file_are_those_that_are_attacked(tmp_path: Path) -> None:
    """Of other batches than those of a search, which in float32 give radii that are 1e-6 apart."""
    run = RunFolder(tmp_path)
    recipe = Recipe(
        name="digits",
        profile="float32",
        data=DataOptions(name="digits", limit=120),
        model=ModelOptions(name="dense_ugnn", options={"hidden": [32, 16]}),
        training=TrainingOptions(epochs=2),
    )
    train_run(recipe, run)
    freeze_run(run)
    certify_run(run, batch_size=7)
    stored = run.certificates()
    assert float(stored.radius.max()) > 0
    message, passed = verify_run(run, ("deepfool:steps=3",), 40)
    assert passed, message
    for search in run.searches():
        assert torch.equal(search.radius, stored.radius[search.index])


def test_both_spaces_are_searched_and_the_report_shows_input_units(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    recipe = Recipe(
        name="moons",
        data=DataOptions(name="moons", limit=60),
        model=ModelOptions(name="dense_ugnn", normalization="channel", options={"hidden": [2, 2]}),
        training=TrainingOptions(epochs=3),
    )
    train_run(recipe, run)
    freeze_run(run)
    certify_run(run)
    words = ("sphere_tracing", "closed_form")
    message, passed = verify_run(run, words, 12, normalised=True, whole=("sphere_tracing",))
    assert passed
    assert "verify: sphere_tracing without box, normalised: certificate" in message
    searches = run.searches()
    assert [(one.solver, one.space, len(one.index)) for one in searches] == [
        ("sphere_tracing", "input", 60),
        ("closed_form", "input", 12),
        ("sphere_tracing", "normalised", 60),
        ("closed_form", "normalised", 12),
    ]
    pixels, behind = (tightness(searches[number]).mean for number in (0, 2))
    assert pixels < behind <= 1.0
    assert [search.space for search in read_evidence(run).searches] == ["input", "input"]


def test_options_tell_two_searches_of_one_solver_apart(folder: RunFolder) -> None:
    words = ("fmn", "fmn:decay=0.05,steps=5", "fmn:steps=100", "fmn:steps=5")
    message, _ = verify_run(folder, words, 40, "off")
    searches = folder.searches()
    assert [search.settings.split()[0] for search in searches] == ["steps=100", "steps=5"]
    assert [len(search.index) for search in searches] == [40, 40]
    assert "verify: fmn without box: certificate" in message
    assert "verify: fmn without box with steps=5: certificate" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((("fmn:stps=5",),), "options of fmn must be"),
        ((("flying",),), "solver must be one of sphere_tracing"),
        (((),), "got none; choose among them"),
        ((("deepfool",), 0), "samples must be at least 1, got 0"),
    ],
)
def test_wrong_choices_are_refused_before_anything_is_written(
    folder: RunFolder, arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        verify_run(folder, *arguments)
    assert not folder.checks_file.exists()
    assert not folder.solvers_file.exists()


def test_boxes_follow_the_data() -> None:
    labels = torch.zeros(2, dtype=torch.int64)
    pixels = Samples(torch.tensor([[0], [255]], dtype=torch.uint8), labels, scale=255.0)
    own = Samples(torch.tensor([[0.0], [1.5]]), labels)
    assert choose_boxes(pixels, "auto") == [None, UNIT_BOX]
    assert choose_boxes(pixels, "off") == [None]
    assert choose_boxes(pixels, "only") == [UNIT_BOX]
    assert choose_boxes(own, "auto") == choose_boxes(own, "off") == [None]
    with pytest.raises(ValueError, match=r"got inputs from 0 to 1.5; use 'off'"):
        choose_boxes(own, "only")


def test_the_default_solver_is_known() -> None:
    assert set(DEFAULT_SOLVERS) <= set(SOLVERS)


def test_the_rounding_attack_is_one_more_check(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "rounding_attack", lambda f, x, p: rounding_attack(f, x, p, 250))
    _, passed = verify_run(folder, rounding=True)
    content = json.loads(folder.checks_file.read_text())
    assert passed
    assert content["checks"][-1]["name"] == "rounding_attack"
    assert content["checks"][-1]["value"] == 0.0


def test_an_attack_that_breaks_nothing_naive_fails_the_check(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {"naive": 30, "margin/L": 30, "sound": 30}
    tame = RoundingAttack("float32", 30, counts, dict.fromkeys(counts, 0), ())
    monkeypatch.setattr(findings, "rounding_attack", lambda f, x, p: replace(tame, profile=p))
    message, passed = verify_run(folder, rounding=True)
    assert not passed
    assert "FAILED rounding_attack: no power" in message
    wild = replace(tame, broken=counts, points=((7, torch.zeros(1)),))
    monkeypatch.setattr(findings, "rounding_attack", lambda f, x, p: replace(wild, profile=p))
    message, passed = verify_run(folder, rounding=True)
    assert not passed
    index = int(folder.dataset().test.spread(30)[7])
    assert f"float64: test sample {index} broken" in message


def test_a_head_broken_by_one_per_cent_fails(folder: RunFolder) -> None:
    frozen = folder.frozen()
    scale_head(frozen)
    save(frozen, folder.model_file)
    certify_run(folder)
    message, passed = verify_run(folder)
    assert not passed
    assert "FAILED upd: 1.000e-02 exceeds 1e-05" in message
    assert json.loads(folder.checks_file.read_text())["passed"] is False


@pytest.mark.parametrize("column", ["radius", "predicted", "runner_up", "margin"])
@pytest.mark.parametrize("place", [0, -1])
def test_an_edited_certificate_fails_and_is_named(
    folder: RunFolder, column: str, place: int
) -> None:
    rows = read_rows(folder.certificates_file)
    index = int(folder.dataset().test.spread(30)[place])
    if column in ("radius", "margin"):
        rows[index][column] = repr(float(rows[index][column]) + 1e-6)
    else:  # digits are called by their numbers
        other = str((int(rows[index][column]) + 1) % 10)
        rows[index] |= {column: other, f"{column}_name": other}
    write_rows(folder.certificates_file, rows)
    message, passed = verify_run(folder)
    assert not passed
    what = {"predicted": "label", "runner_up": "runner-up"}.get(column, column)
    assert f"FAILED stored_certificates: test sample {index}: stored {what} " in message


def test_certificates_of_another_profile_are_refused(folder: RunFolder) -> None:
    facts = json.loads(folder.certificate_facts_file.read_text())
    folder.certificate_facts_file.write_text(json.dumps(facts | {"profile": "float32"}))
    with pytest.raises(RunError, match="profile must be 'float64', that of the model, got 'float3"):
        folder.certificates()


def test_missing_rows_are_refused(folder: RunFolder) -> None:
    rows = read_rows(folder.certificates_file)[:10]
    write_rows(folder.certificates_file, rows)
    with pytest.raises(RunError, match=f"rows must be .* run `unitmargin certify {folder.path}`"):
        verify_run(folder)


def test_certificates_of_another_model_are_refused(folder: RunFolder) -> None:
    dataset = folder.dataset()
    save(
        freeze(build_model("dense_ugnn", (1, 8, 8), 10), classes=dataset.classes), folder.model_file
    )
    with pytest.raises(RunError, match=f"model_sha256 .* `unitmargin certify {folder.path}` again"):
        verify_run(folder)


def test_certificates_of_other_data_are_refused(folder: RunFolder) -> None:
    rows = read_rows(folder.certificates_file)
    other = str((int(rows[7]["label"]) + 1) % 10)
    rows[7] |= {"label": other, "label_name": other}
    write_rows(folder.certificates_file, rows)
    with pytest.raises(RunError, match=f"other labels; run `unitmargin certify {folder.path}`"):
        verify_run(folder)


def test_missing_certificates_name_the_command(folder: RunFolder) -> None:
    folder.certificates_file.unlink()
    with pytest.raises(RunError, match=f"run `unitmargin certify {folder.path}` first"):
        verify_run(folder)


def test_tolerances_are_small_against_one_per_cent() -> None:
    promises = (GNP, ISOMETRY, LIPSCHITZ, *HEAD_PROMISES.values())
    bounds = (UNIT_GRADIENT_TOLERANCE, *(promise.tolerance for promise in promises))
    assert max(bounds) <= 1e-4
