"""Short precisions reach activations in training, and nothing else."""

import subprocess
import sys
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from unitmargin.certificates.certify import certify
from unitmargin.heads import HEADS, Head
from unitmargin.layers.singular_values import spectrum_singular_values
from unitmargin.models import UGNN, build_model
from unitmargin.models.freezing import freeze
from unitmargin.orthogonal import (
    ORTHOGONAL_CONVS,
    ORTHOGONAL_LINEARS,
    OrthogonalConv2d,
    OrthogonalLinear,
)
from unitmargin.orthogonal.bcop import BCOPConv2d
from unitmargin.orthogonal.skew import SkewConv2d, exponential
from unitmargin.training import precision
from unitmargin.training.precision import (
    PRECISIONS,
    require_precision,
    training_precision,
    usable_precision,
)
from unitmargin.training.processes import Processes
from unitmargin.training.train import train

CPU = torch.device("cpu")

ORTHOGONAL = 1e-5
"""The promise of convolutions in float32."""

FACTORS = {
    torch.ops.aten.mm.default: (0, 1),
    torch.ops.aten.bmm.default: (0, 1),
    torch.ops.aten.addmm.default: (1, 2),
    torch.ops.aten.baddbmm.default: (1, 2),
}
"""Which arguments of a matrix product are its factors."""


def short(factor: torch.Tensor) -> torch.Tensor:
    """A float32 factor with 10 bits of mantissa, rounded to nearest; wider ones as they are."""
    factor = factor.resolve_conj().resolve_neg()
    if factor.dtype == torch.complex64:
        return torch.view_as_complex(short(torch.view_as_real(factor)))
    if factor.dtype != torch.float32:
        return factor
    return ((factor.contiguous().view(torch.int32) + 2**12) & -(2**13)).view(torch.float32)


class ShortFactors(TorchDispatchMode):
    """Matrix products as CUDA makes them where TF32 is allowed."""

    def __torch_dispatch__(
        self, operation: Any, types: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        places = FACTORS.get(operation, ())
        rounded = [short(a) if i in places else a for i, a in enumerate(arguments)]
        return operation(*rounded, **(options or {}))


def convolution_error(layer: OrthogonalConv2d) -> float:
    """How far from 1 singular values are whose blocks, or what they come from, a step makes."""
    with ShortFactors():
        if isinstance(layer, BCOPConv2d):
            made: Any = layer.kernel()
        else:
            made = layer.skew_spectrum() if isinstance(layer, SkewConv2d) else layer.spectrum()
    if isinstance(layer, BCOPConv2d):
        made = layer.kernel_transform(made)
    if isinstance(layer, SkewConv2d):
        made = made.each(exponential)
    return float((spectrum_singular_values(made) - 1.0).abs().max())


@pytest.mark.parametrize("name", ORTHOGONAL_CONVS)
@pytest.mark.parametrize(("inputs", "outputs"), [(12, 12), (12, 6), (6, 12)])
@torch.no_grad()
def test_convolutions_say_whether_tf32_rounds_their_blocks(
    name: str, inputs: int, outputs: int
) -> None:
    if name == "manifold" and inputs < outputs:
        return  # refused
    layer = ORTHOGONAL_CONVS[name](inputs, outputs, 3, (4, 4))
    assert layer.exact_in_tf32 == (convolution_error(layer) < ORTHOGONAL)


@pytest.mark.parametrize("name", [*ORTHOGONAL_LINEARS, *HEADS])
@pytest.mark.parametrize("features", [32, 64])
@torch.no_grad()
def test_dense_weights_that_are_exact_in_tf32_do_not_move(name: str, features: int) -> None:
    for family in (ORTHOGONAL_LINEARS, HEADS):
        layer = family[name](features, 32) if name in family else None
        if isinstance(layer, OrthogonalLinear | Head) and layer.exact_in_tf32:
            with ShortFactors():
                weight = layer.weight()
            assert torch.equal(weight, layer.weight())


def model(linear: str = "manifold") -> UGNN:
    torch.manual_seed(0)
    return UGNN((1, 16, 16), 4, conv="manifold", linear=linear)


def images() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(64) % 4
    centres = torch.rand(4, 1, 16, 16, generator=generator)
    return centres[labels] + 0.05 * torch.randn(64, 1, 16, 16, generator=generator), labels


@pytest.mark.usefixtures("multiplied")
def test_bfloat16_trains_and_keeps_the_weights_orthogonal() -> None:
    data = images()
    options = {"epochs": 8, "batch_size": 32, "learning_rate": 1e-2, "quiet": True}
    last = train(model(), data, data, precision="bfloat16", **options).history[-1]
    assert last.clean_accuracy == 1.0
    assert last.orthogonality_error < 1e-5


def test_logits_are_float32_and_gradients_point_the_same_way() -> None:
    x, labels = images()
    logits, gradients = {}, {}
    for name in ("float32", "bfloat16"):
        network = model()
        with training_precision(name, CPU):
            logits[name] = network(x)
            torch.nn.functional.cross_entropy(logits[name], labels).backward()
        gradients[name] = [p.grad.flatten() for p in network.parameters() if p.grad is not None]
    difference = (logits["bfloat16"] - logits["float32"]).detach().abs().max()
    assert logits["bfloat16"].dtype == torch.float32
    assert 0 < float(difference) < 2**-8 * float(x.flatten(1).norm(dim=1).max())
    for exact, rounded in zip(*gradients.values(), strict=True):
        assert float(torch.cosine_similarity(exact, rounded, dim=0)) > 0.95


def test_a_device_that_would_emulate_bfloat16_trains_in_float32_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(precision, "multiplies_bfloat16", lambda _: False)
    weights = {}
    for name in ("float32", "bfloat16"):
        network = train(model(), images(), epochs=2, batch_size=32, precision=name).model
        weights[name] = network.state_dict()
        said = "products are in float32: a processor here does not multiply bfloat16"
        assert capsys.readouterr().out.count(said) == (name == "bfloat16")
    for kept, taken in zip(*(one.values() for one in weights.values()), strict=True):
        assert torch.equal(kept, taken)
    train(model(), images(), epochs=1, precision="bfloat16", quiet=True)
    assert not capsys.readouterr().out


@pytest.mark.parametrize("multiplied", [(True, True), (True, False), (False, False)])
def test_processes_train_in_one_precision(
    monkeypatch: pytest.MonkeyPatch, multiplied: tuple[bool, ...]
) -> None:
    ranks = Processes(rank=1, count=2)
    monkeypatch.setattr(precision, "multiplies_bfloat16", lambda _: multiplied[1])
    monkeypatch.setattr(Processes, "gather", lambda _, own: [multiplied[0], *own])
    used = "bfloat16" if all(multiplied) else "float32"
    assert usable_precision("bfloat16", ranks, CPU) == used
    assert usable_precision("tf32", ranks, CPU) == "tf32"


@pytest.mark.parametrize("name", PRECISIONS)
def test_the_global_setting_comes_back(name: str) -> None:
    before = torch.backends.cuda.matmul.fp32_precision
    with pytest.raises(RuntimeError, match="stop"), training_precision(name, CPU):
        raise RuntimeError("stop")
    assert torch.backends.cuda.matmul.fp32_precision == before
    assert not torch.is_autocast_enabled("cpu")


def test_tf32_is_asked_for_inside_alone() -> None:
    before = torch.backends.cuda.matmul.fp32_precision
    assert before != "tf32"
    with training_precision("tf32", CPU):
        assert torch.backends.cuda.matmul.fp32_precision == "tf32"
    assert torch.backends.cuda.matmul.fp32_precision == before


def test_certificates_never_come_from_a_short_precision() -> None:
    frozen, (x, _) = freeze(model()), images()
    plain = certify(frozen, x)
    with training_precision("bfloat16", CPU):
        inside = certify(frozen, x)
    assert torch.equal(plain.radius, inside.radius)


def test_unknown_names_and_unsafe_choices_are_refused() -> None:
    with pytest.raises(ValueError, match="must be one of float32, tf32, bfloat16, got 'half'"):
        require_precision("half", model())
    with pytest.raises(ValueError, match="got CholeskyLinear"):
        require_precision("tf32", model("cholesky"))
    require_precision("tf32", model())
    peer = build_model("large_convnet", (1, 8, 8), 3, width=4)
    choices = 'tf32 needs conv = "skew", linear = "manifold", head = "manifold", got BCOPConv2d, '
    with pytest.raises(ValueError, match=choices):
        require_precision("tf32", peer)
    chosen = {"conv": "skew", "linear": "manifold", "head": "manifold", "strided_kernel": 1}
    require_precision("tf32", build_model("large_convnet", (1, 8, 8), 3, width=4, **chosen))
    require_precision("bfloat16", model("cholesky"))


SETTINGS = """
import os, sys, torch, unitmargin as um
from unitmargin.foundation.full_precision import in_full_precision
from unitmargin.training import precision as precisions

precisions.multiplies_bfloat16 = lambda device: True  # however slow here

def stated():
    return [torch.backends.fp32_precision, torch.backends.cuda.matmul.fp32_precision,
            torch.backends.mkldnn.matmul.fp32_precision]

def kept(setting):
    exec(setting)
    before = stated()
    x, y = torch.rand(8, 2), torch.arange(8) % 2
    for precision in ("float32", "bfloat16", "tf32"):
        model = um.DenseUGNN((2,), 2, linear="manifold", head="manifold")
        um.train(model, (x, y), epochs=1, quiet=True, precision=precision)
    um.audit(um.freeze(model), x)
    return before == stated() and not {*in_full_precision(stated)()[1:]} - {"ieee", "none"}

for setting in sys.argv[1:]:
    if not (child := os.fork()):  # settings of a process cannot be taken back
        os._exit(0 if kept(setting) else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_settings_of_precision_are_left_as_they_are() -> None:
    settings = (
        "pass",
        "torch.set_float32_matmul_precision('medium')",
        "torch.backends.fp32_precision = 'tf32'",
        "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
        "torch.backends.mkldnn.matmul.fp32_precision = 'bf16'",
    )
    command = [sys.executable, "-c", SETTINGS, *settings]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0"] * len(settings), done.stderr


def test_a_setting_for_short_products_ends_where_a_training_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def asking(name: str, device: torch.device) -> AbstractContextManager[None]:
        asked.append(torch.get_float32_matmul_precision())
        return training_precision(name, device)

    monkeypatch.setattr("unitmargin.training.trainer.training_precision", asking)
    torch.set_float32_matmul_precision("medium")
    try:
        train(model(), images(), epochs=1, batch_size=64, quiet=True)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
    assert set(asked) == {"highest"}


def test_compilers_may_ask_for_the_precision() -> None:
    with training_precision("tf32", CPU):
        assert torch.get_float32_matmul_precision() == "high"
    assert torch.get_float32_matmul_precision() == "highest"
