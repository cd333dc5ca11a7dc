"""Short precisions reach activations in training, and nothing else."""

import pytest
import torch

from unitmargin.certificates.certify import certify
from unitmargin.models import UGNN
from unitmargin.models.freezing import freeze
from unitmargin.training.precision import PRECISIONS, require_precision, training_precision
from unitmargin.training.train import train

CPU = torch.device("cpu")


def model(linear: str = "manifold") -> UGNN:
    torch.manual_seed(0)
    return UGNN((1, 16, 16), 4, conv="manifold", linear=linear)


def images() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(64) % 4
    centres = torch.rand(4, 1, 16, 16, generator=generator)
    return centres[labels] + 0.05 * torch.randn(64, 1, 16, 16, generator=generator), labels


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


@pytest.mark.parametrize("name", PRECISIONS)
def test_the_global_setting_comes_back(name: str) -> None:
    before = torch.get_float32_matmul_precision()
    with pytest.raises(RuntimeError, match="stop"), training_precision(name, CPU):
        raise RuntimeError("stop")
    assert torch.get_float32_matmul_precision() == before
    assert not torch.is_autocast_enabled("cpu")


def test_tf32_is_asked_for_inside_alone() -> None:
    with training_precision("tf32", CPU):
        assert torch.get_float32_matmul_precision() == "high"
    assert torch.get_float32_matmul_precision() == "highest"


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
    require_precision("bfloat16", model("cholesky"))
