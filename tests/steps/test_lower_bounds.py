"""The walk of networks that are 1-Lipschitz and no more: certified, never called distances."""

import json
from pathlib import Path

import pytest
import torch

from unitmargin.auditing.finding import Finding
from unitmargin.certificates.certify import certify
from unitmargin.data import Samples
from unitmargin.frozen import FrozenNetwork
from unitmargin.models import build_model, fixed_network
from unitmargin.models.freezing import freeze
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.recipe import DataOptions, ModelOptions, Recipe
from unitmargin.steps.certify import certify_run
from unitmargin.steps.freeze import freeze_run
from unitmargin.steps.report import report_run
from unitmargin.steps.train import train_run
from unitmargin.steps.verify import verify, verify_run
from unitmargin.training.evaluation import evaluate
from unitmargin.training.options import TrainingOptions

NOT_PROMISED = {"unit_gradient", "closed_form_outside_radius"}


def checks_of(frozen: FrozenNetwork) -> dict[str, Finding]:
    inputs = torch.rand(8, *frozen.in_shape)
    samples = Samples(inputs, torch.zeros(8, dtype=torch.int64))
    return {check.name: check for check in verify(frozen, samples)}


def peer(name: str = "large_convnet", head: str = "bjorck") -> FrozenNetwork:
    shape = (1, 16, 16) if name == "resnet9" else (1, 8, 8)
    return freeze(build_model(name, shape, 4, width=4, head=head))


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("large_convnet", "bjorck", {"orthonormal_head", "upd"}),
        ("resnet9", "cayley", {"orthonormal_head", "upd"}),
        ("lip_convnet5", "lln", {"unit_rows", "upd"}),
        ("large_convnet", "simplex", {"upd"}),
    ],
)
def test_what_is_not_promised_is_not_run_with_a_reason(
    name: str, head: str, expected: set[str]
) -> None:
    checks = checks_of(peer(name, head))
    assert set(checks) == {"orthogonality", "lipschitz"} | expected | NOT_PROMISED
    left_out = {name for name, check in checks.items() if check.not_run}
    assert left_out == NOT_PROMISED | ({"upd"} if head != "simplex" else set())
    assert {check.passed for name, check in checks.items() if name not in left_out} == {True}
    assert {checks[name].passed for name in left_out} == {None}
    for check_name in left_out:
        assert checks[check_name].value is None
    assert checks["unit_gradient"].not_run.startswith("not a signed distance classifier: ")
    assert "not GNP" in checks["unit_gradient"].not_run


def test_a_ugnn_with_a_plain_head_is_no_signed_distance_classifier() -> None:
    frozen = freeze(build_model("dense_ugnn", (6,), 4, head="bjorck"))
    assert checks_of(frozen)["unit_gradient"].not_run.endswith("no UPD head")


def test_one_per_cent_is_noticed() -> None:
    for change, expected in (
        (lambda f: f.head.weight.mul_(1.01), "orthonormal_head"),
        (lambda f: f.layers[1].real.mul_(1.01), "orthogonality"),
    ):
        frozen = peer()
        change(frozen)
        assert [n for n, check in checks_of(frozen).items() if check.passed is False] == [expected]
    frozen = peer("resnet9", "cayley")
    frozen.layers[6].branch[0].real.mul_(1.01)
    failed = {name for name, check in checks_of(frozen).items() if check.passed is False}
    assert failed == {"orthogonality", "lipschitz"}


def test_a_broken_ugnn_cannot_hide_among_lower_bounds() -> None:
    frozen = freeze(build_model("ugnn", (1, 4, 4), 4))
    frozen.layers[1].real.mul_(0.9)
    failed = {name for name, check in checks_of(frozen).items() if check.passed is False}
    assert {"orthogonality", "unit_gradient"} <= failed


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = RunFolder(tmp_path_factory.mktemp("peer"))
    recipe = Recipe(
        name="peer",
        data=DataOptions(name="digits", limit=120),
        model=ModelOptions(name="lip_convnet5", options={"width": 4}),
        training=TrainingOptions(epochs=2, batch_size=40, learning_rate=1e-2, loss="multi_margin"),
        verify_samples=16,
    )
    train_run(recipe, folder)
    freeze_run(folder)
    certify_run(folder)
    message, passed = verify_run(folder)
    assert passed
    assert "verify: not run upd: the head promises orthonormal" in message
    assert "verify: not run unit_gradient, closed_form_outside_radius: not a signed" in message
    assert "verify: 5 of 5 checks passed" in message
    report_run(folder)
    return folder


def texts(folder: RunFolder) -> list[str]:
    return [Path(file).read_text() for file in (folder.report_md, folder.report_html)]


def test_checks_are_valid_json_with_their_reasons(run: RunFolder) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    checks = json.loads(run.checks_file.read_text(), parse_constant=refuse)["checks"]
    left_out = {check["name"]: check for check in checks if check["not_run"]}
    assert set(left_out) == {"upd", *NOT_PROMISED}
    assert left_out["upd"]["not_run"] == "the head promises orthonormal"
    report = json.loads(run.report_json.read_text(), parse_constant=refuse)
    assert report["signed_distance"] is False
    assert report["unit_gradient_error"] is None
    assert report["upd_error"] is None


def test_the_report_speaks_of_lower_bounds_and_of_no_distance(run: RunFolder) -> None:
    for text in texts(run):
        assert "Lower bounds" in text
        assert "not a signed distance classifier" in text
        assert text.count("signed distance classifier") == text.count(
            "not a signed distance classifier"
        )
        assert "reads as a distance" not in text
        assert "read as a distance" not in text
        assert "Unitary" not in text
        assert "not run" in text


def test_the_frozen_facts_name_the_head(run: RunFolder) -> None:
    facts = run.frozen().facts
    assert facts["head"] == "orthonormal"
    assert facts["head_error"] <= 1e-6
    assert "upd_error" not in facts


@pytest.mark.parametrize("head", ["bjorck", "lln", "simplex"])
def test_training_counts_radii_by_the_distances_of_rows(head: str) -> None:
    model = build_model("large_convnet", (1, 8, 8), 4, width=4, head=head)
    x = 3.0 * torch.rand(200, 1, 8, 8)
    certificate = certify(freeze(model, torch.float64), x)
    labels = certificate.label.where(torch.arange(200) % 3 > 0, 0)
    right = labels == certificate.label
    _, certified = evaluate(fixed_network(model), Samples(x, labels))
    assert 0.0 < certified < 1.0
    assert certified == float((right & (certificate.radius > 36 / 255)).double().mean())
