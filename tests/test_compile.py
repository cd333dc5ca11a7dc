"""Whole models are one graph for ``torch.compile``: no step depends on the data.

In a process of its own, since the run-time checks of shapes in tests cannot be traced.
"""

import shutil
import subprocess
import sys

import pytest

SCRIPT = """
import torch
from unitmargin.models import build_model

models = [
    build_model("ugnn", (1, size, size), 3, conv=conv, linear=linear, depth=2, hidden=(9,))
    for conv, linear, size in (
        ("manifold", "manifold", 8), ("skew", "skew", 8), ("cayley", "bjorck", 16)
    )
]
for model in (*models, build_model("mixing_ugnn", (3, 8, 8), 3)):
    x = torch.rand(4, *model.in_shape)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")(x)
    torch.testing.assert_close(compiled, model(x), rtol=0, atol=1e-5)
    compiled.sum().backward()
    print("one graph")
"""


def test_forward_and_backward_are_one_graph() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.stdout.split("\n")[:-1] == ["one graph"] * 4, done.stderr


EXPORTS = """
import torch
from unitmargin.models import build_model, freeze

for conv, linear in (("skew", "skew"), ("manifold", "cholesky")):
    model = build_model("ugnn", (1, 4, 4), 3, conv=conv, linear=linear, head="bounded").train()
    x = torch.rand(4, 1, 4, 4)
    exported = torch.export.export(model, (x,)).module()
    torch.testing.assert_close(exported(x), model(x), rtol=0, atol=1e-5)
    print("exported")
frozen = freeze(build_model("ugnn", (1, 4, 4), 3, conv="skew", linear="skew"))
deployed = torch.export.export(frozen.deployed(), (x.double(),)).module()
torch.testing.assert_close(deployed(x.double()), frozen(x))
print("exported")
for network in (build_model("ugnn", (1, 4, 4), 3, conv="skew").eval(), frozen):
    try:
        torch.export.export(network, (x,))
    except ValueError as error:
        print(error)
"""


BATCHES = """
import torch
from unitmargin.models import build_model, freeze

models = [
    build_model("ugnn", shape, 3, hidden=(6,))
    for shape in ((1, 4, 4), (1, 16, 16), (2, 8, 24))
]
for model in (*models, build_model("mixing_ugnn", (3, 8, 8), 3)):
    deployed, shape = freeze(model).deployed(), model.in_shape
    x = torch.rand(5, *shape, dtype=torch.float64)
    batch = {0: torch.export.Dim("batch", min=1)}
    graph = torch.export.export(deployed, (x,), dynamic_shapes=(batch,)).module()
    for count in (1, 2, 7):
        y = torch.rand(count, *shape, dtype=torch.float64)
        assert torch.equal(graph(y), deployed(y))
    print("any batch")
"""


def test_deployed_networks_are_exported_for_any_batch() -> None:
    """Maps that are transformed by a matrix, and larger ones by FFT."""
    done = subprocess.run([sys.executable, "-c", BATCHES], capture_output=True, text=True)
    assert done.stdout.split("\n")[:-1] == ["any batch"] * 4, done.stderr


def test_models_in_training_and_frozen_ones_are_exported() -> None:
    """In a process that has evaluated nothing before: what is drawn is drawn at construction."""
    done = subprocess.run([sys.executable, "-c", EXPORTS], capture_output=True, text=True)
    lines = done.stdout.split("\n")[:-1]
    assert lines[:-2] == ["exported"] * 3, done.stderr
    assert lines[-2].startswith("a skew layer must be exported in training mode or frozen, got")
    assert lines[-1].endswith("got the network that keeps proofs of it; export frozen.deployed()")


EXECUTIONS = """
import sys
import torch
from unitmargin import UGNN, certify, freeze
from unitmargin.frozen.profiles import PROFILES
from unitmargin.certificates.rounding_attack import near_boundary

torch.manual_seed(0)
frozen = freeze(UGNN((1, 8, 8), 4, hidden=(60, 30)))
x = near_boundary(frozen, torch.rand(200, 1, 8, 8), 0.02)
aim = near_boundary(frozen, x, 0.0) - x
aim = aim / aim.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
for profile in ("float32", "float64"):
    eager = frozen.deployed(profile)
    compiled = torch.compile(eager, fullgraph=True, backend=sys.argv[1])
    found = certify(frozen, x, profile)
    certified = found.radius > 0
    edge = x + 0.999 * found.radius.view(-1, 1, 1, 1).float() * aim
    x, edge = x.to(eager.dtype), edge.to(eager.dtype)
    for network in (eager, compiled):
        for points in (x, edge):
            assert torch.equal(network(points).argmax(1)[certified], found.label[certified])
    print(int(certified.sum()))
"""


@pytest.mark.parametrize(
    "backend",
    ["aot_eager", pytest.param("inductor", marks=pytest.mark.nightly)],
)
def test_t8_certificates_hold_for_a_compiled_network(backend: str) -> None:
    """Certified in eager mode, evaluated at the edge of the balls by the compiled network."""
    if backend == "inductor" and shutil.which("g++") is None:
        pytest.skip("the inductor backend needs g++")
    command = [sys.executable, "-c", EXECUTIONS, backend]
    done = subprocess.run(command, capture_output=True, text=True)
    assert [int(count) > 150 for count in done.stdout.split()] == [True, True], done.stderr


FAKE = """
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
import unitmargin as um

for kind in (um.UGNN, um.MixingUGNN):
    with FakeTensorMode():
        kind((1, 8, 8), 3)(torch.rand(2, 1, 8, 8))
    assert type(kind((1, 8, 8), 3)(torch.rand(2, 1, 8, 8)).detach()) is torch.Tensor
"""


def test_shapes_may_be_computed_without_numbers_before_a_network_is_used() -> None:
    """What is kept for all calls must not be what holds none."""
    done = subprocess.run([sys.executable, "-c", FAKE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
