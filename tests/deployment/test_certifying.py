"""A certifying network issues the certificates of its frozen network, wherever it runs.

Graphs are made in processes of their own, since the run-time checks of shapes in tests cannot be
traced.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from claims import EXAMPLES
from torch import Tensor
from torch.nn.modules.module import register_module_forward_hook

import unitmargin as um
from unitmargin.deployment.certifying import CertifyingNetwork
from unitmargin.frozen import FROZEN_LAYERS, FrozenNetwork
from unitmargin.frozen.profiles import PROFILES, ProfileError

CLAIMS = ("label", "runner_up", "margin", "radius")

TESTS = Path(__file__).parents[1]


def agree(found: dict[str, Tensor], frozen: FrozenNetwork, x: Tensor, profile: str | None) -> bool:
    """Whether all claims are those of ``certify``, bit for bit."""
    expected = um.certify(frozen, x, profile, domain="any")
    return all(torch.equal(found[name], getattr(expected, name)) for name in CLAIMS)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_claims_are_those_of_certify(name: str, profile: str) -> None:
    example = EXAMPLES[name]()
    module = um.certifying_network(example.network, profile)
    found = module(example.inputs)
    assert agree(found, example.network, example.inputs, profile)
    held = PROFILES[profile].hold(example.inputs)
    assert torch.equal(found["logits"], example.network.deployed(profile)(held))
    assert profile == "float32" or (found["radius"] > 0).sum() >= len(example.inputs) // 2
    assert agree(module(example.inputs[:0]), example.network, example.inputs[:0], profile)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_inputs_are_of_any_floating_type(dtype: torch.dtype) -> None:
    example = EXAMPLES["pooled"]()
    x = example.inputs.to(dtype)
    found = um.certifying_network(example.network)(x)
    assert agree(found, example.network, x, None)
    assert [found[name].dtype for name in (*CLAIMS, "logits")] == [
        torch.int64, torch.int64, torch.float64, torch.float64, torch.float64
    ]  # fmt: skip


@pytest.mark.parametrize("profile", PROFILES)
def test_nothing_is_claimed_of_what_is_no_number_or_too_large(profile: str) -> None:
    example = EXAMPLES["by FFT"]()
    x = example.inputs[:5].clone()
    for sample, value in enumerate((torch.nan, torch.inf, -torch.inf, 1e38)):
        x[sample, 0, 0, 0] = value
    found = um.certifying_network(example.network, profile)(x)
    assert agree(found, example.network, x, profile)
    assert found["label"][:3].tolist() == [-1] * 3
    assert found["radius"][:3].tolist() == [0.0] * 3
    assert profile == "float32" or found["radius"][4] > 0


def test_nothing_is_claimed_of_numbers_that_the_profile_cannot_hold() -> None:
    """``certify`` refuses them, and a graph cannot."""
    example = EXAMPLES["head alone"]()
    held = 4.0 * example.inputs.double()
    other = held.clone()
    other[::2, 0] += 1e-12
    with pytest.raises(ValueError, match="x must hold torch.float32 numbers"):
        um.certify(example.network, other, "float32", "any")
    module = um.certifying_network(example.network, "float32")
    expected, found = module(held)["radius"], module(other)["radius"]
    assert (expected[::2] > 0).any()
    assert (found[::2] == 0).all()
    assert torch.equal(found[1::2], expected[1::2])


def test_it_follows_no_later_change() -> None:
    example = EXAMPLES["mixed"]()
    module = um.certifying_network(example.network)
    before = module(example.inputs)["radius"]
    for tensor in example.network.buffers():
        tensor.mul_(2.0)
    assert torch.equal(module(example.inputs)["radius"], before)
    assert not agree(module(example.inputs), example.network, example.inputs, None)


def test_it_keeps_its_types() -> None:
    example = EXAMPLES["odd map"]()
    module = um.certifying_network(example.network, "float32")
    for change in (module.double, module.half, lambda: module.to(torch.bfloat16)):
        with pytest.raises(TypeError, match="must keep the types its bounds were proved for, got"):
            change()
    assert agree(module.cpu()(example.inputs), example.network, example.inputs, "float32")


def test_a_hook_of_all_modules_is_refused() -> None:
    example = EXAMPLES["head alone"]()
    module = um.certifying_network(example.network)
    handle = register_module_forward_hook(lambda module, x, output: None)
    try:
        with pytest.raises(TypeError, match=r"hooks of the forward .* got 1, .*; remove"):
            module(example.inputs)
    finally:
        handle.remove()
    assert agree(module(example.inputs), example.network, example.inputs, None)


def test_flushed_denormals_are_refused_at_construction() -> None:
    example = EXAMPLES["head alone"]()
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor flushes nothing")
    try:
        with pytest.raises(ProfileError, match="profile float64 needs denormal numbers"):
            um.certifying_network(example.network)
    finally:
        torch.set_flush_denormal(False)


@contextmanager
def default_float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


CIRCUMSTANCES = {
    "inference mode": torch.inference_mode,
    "gradients": torch.enable_grad,
    "default float64": default_float64,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("circumstance", CIRCUMSTANCES)
def test_circumstances_change_no_bit(circumstance: str, profile: str) -> None:
    """Neither of evaluation nor of construction."""
    example = EXAMPLES["averaged"]()
    expected = um.certifying_network(example.network, profile)(example.inputs)
    with CIRCUMSTANCES[circumstance]():
        made_there = um.certifying_network(example.network, profile)
        found = made_there(example.inputs.requires_grad_(circumstance == "gradients"))
    again = made_there(example.inputs)
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor)
        assert torch.equal(again[name], tensor)


def test_another_thread_changes_no_bit() -> None:
    example = EXAMPLES["by FFT"]()
    module: CertifyingNetwork = um.certifying_network(example.network)
    found: list[dict[str, Tensor]] = []
    thread = threading.Thread(target=lambda: found.append(module(example.inputs)))
    thread.start()
    thread.join()
    assert agree(found[0], example.network, example.inputs, None)


def run(program: str, *arguments: str) -> list[str]:
    """The lines that a program prints, which finds the files of the tests."""
    paths = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


COMMON = """
import sys
import torch
import unitmargin as um
from claims import EXAMPLES, convolution, dense
from unitmargin.frozen import FrozenNetwork
from unitmargin.frozen.profiles import PROFILES, require_environment
from unitmargin.layers.activations import Abs
from unitmargin.layers.rearrangement import Flatten
from unitmargin.models import build_model

torch.manual_seed(0)

def export(frozen, profile=None, dtype=torch.float32, dim=torch.export.Dim("batch", min=1)):
    example = torch.rand(3, *frozen.in_shape, dtype=dtype)
    module = um.certifying_network(frozen, profile)
    return torch.export.export(module, (example,), dynamic_shapes={"x": {0: dim}})

def compare(graph, frozen, batches, profile=None, dtype=torch.float32):
    claimed = 0
    for batch in batches:
        x = torch.rand(batch, *frozen.in_shape, dtype=dtype)
        if batch > 2:
            x[1].view(-1)[0] = torch.nan
        expected, found = um.certify(frozen, x, profile, "any"), graph(x)
        assert torch.equal(found["label"], expected.label)
        assert torch.equal(found["runner_up"], expected.runner_up)
        assert found["logits"].shape == (batch, frozen.n_classes)
        for name in ("margin", "radius"):
            assert found[name].dtype == torch.float64
            torch.testing.assert_close(
                found[name], getattr(expected, name), rtol=1e-12, atol=1e-12
            )
        claimed += int((found["radius"] > 0).sum())
    for one in PROFILES.values():
        require_environment(one, torch.device("cpu"))
    return claimed
"""

LAYERS = """
from unitmargin.frozen import FROZEN_LAYERS

met = set()
for name in sys.argv[1:]:
    frozen = EXAMPLES[name]().network
    by_fft = any(not getattr(part, "by_matrix", True) for part in frozen.modules())
    assert compare(export(frozen).module(), frozen, (1, 2, 7) if by_fft else (0, 1, 2, 7)) > 0
    met |= {layer.kind for layer in frozen.modules() if hasattr(layer, "kind")}
assert met == set(FROZEN_LAYERS), met
print(len(met))
"""

FEWEST = ["dense", "pooled", "widened", "averaged", "pooled by norms", "mixed", "reflected"]
"""Examples that hold every kind of layer between them."""


@pytest.mark.parametrize(
    "names", [FEWEST, pytest.param(list(EXAMPLES), marks=pytest.mark.nightly)], ids=len
)
def test_every_kind_of_layer_is_exported_for_any_batch(names: list[str]) -> None:
    assert run(COMMON + LAYERS, *names) == [str(len(FROZEN_LAYERS))]


SIZES = """
import json
for height, width in json.loads(sys.argv[1]):
    pixels = height * width
    layers = (convolution(1, 2, height, width), Abs(), Flatten(), dense(2 * pixels, 3))
    frozen = FrozenNetwork(layers, (1, height, width))
    batches = (0, 1, 2, 7) if pixels <= 64 else (1, 2, 7)
    assert compare(export(frozen).module(), frozen, batches) > 0
    print(height, width)
"""

FEW_SIZES = [(1, 1), (2, 1), (5, 3), (8, 8), (1, 65), (5, 13), (33, 47)]

MORE_SIZES = [
    (1, 2), (1, 7), (7, 7), (4, 16), (1, 64), (13, 5), (67, 1), (2, 33), (9, 8), (31, 37), (47, 33)
]  # fmt: skip


@pytest.mark.parametrize(
    "sizes", [FEW_SIZES, pytest.param(MORE_SIZES, marks=pytest.mark.nightly)], ids=len
)
def test_every_map_size_is_exported_for_any_batch(sizes: list[tuple[int, int]]) -> None:
    """Transformed by a matrix up to 64 pixels, and by FFT above."""
    assert len(run(COMMON + SIZES, json.dumps(sizes))) == len(sizes)


MODELS = """
import json
for name, shape, options in json.loads(sys.argv[1]):
    frozen = um.freeze(build_model(name, shape, 3, **options))
    for profile in sys.argv[2:]:
        claimed = compare(export(frozen, profile).module(), frozen, (1, 2, 7), profile)
        assert claimed > 0 or profile == "float32"
    print(name)
"""

SMALL = """[["ugnn", [1, 4, 4], {"hidden": [6]}], ["mixing_ugnn", [3, 4, 4], {}]]"""

LARGE = """[
    ["dense_ugnn", [2], {}],
    ["ugnn", [3, 24, 40], {"hidden": [9], "depth": 3}],
    ["mixing_ugnn", [3, 8, 8], {}],
    ["large_convnet", [1, 12, 20], {"width": 4, "hidden": [16]}],
    ["lip_convnet5", [3, 32, 32], {"width": 4}],
    ["resnet9", [3, 16, 16], {"width": 4}]
]"""


@pytest.mark.parametrize(
    ("models", "profiles"),
    [(SMALL, ["float64"]), pytest.param(LARGE, PROFILES, marks=pytest.mark.nightly)],
    ids=["small", "large"],
)
def test_models_are_exported_for_any_batch(models: str, profiles: list[str]) -> None:
    assert run(COMMON + MODELS, models, *profiles) == [name for name, *_ in json.loads(models)]


RANGES = """
frozen = EXAMPLES["head alone"]().network
for dim in (torch.export.Dim("batch", min=1), torch.export.Dim.DYNAMIC):
    program = export(frozen, dim=dim)
    compare(program.module(), frozen, (0, 1, 2, 7))
    (bounds,) = program.range_constraints.values()
    print(bounds.lower)
try:
    shapes = {"x": {0: torch.export.Dim.DYNAMIC}}
    torch.export.export(um.certifying_network(frozen), (torch.rand(1, 5),), dynamic_shapes=shapes)
except ValueError as error:
    print("0/1 spec" in str(error))

import threading
frozen = EXAMPLES["averaged"]().network
x = torch.rand(4, *frozen.in_shape)
expected = um.certifying_network(frozen, "float32")(x)
torch.set_default_dtype(torch.float64)
with torch.inference_mode():
    there = export(frozen, "float32").module()
torch.set_default_dtype(torch.float32)
found = []
def call():
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        found.append(there(x))
thread = threading.Thread(target=call)
thread.start()
thread.join()
print(all(torch.equal(found[0][name], tensor) for name, tensor in expected.items()))
"""


def test_an_exported_program_takes_any_batch_anywhere() -> None:
    """Whatever its range says: an example of one input alone is no example. Default type, inference
    mode, autocast and thread change no bit, of the export and of the call."""
    assert run(COMMON + RANGES) == ["1", "2", "True", "True"]


COMPILED = """
torch._dynamo.config.cache_size_limit = 64
for name in sys.argv[2:]:
    frozen = EXAMPLES[name]().network
    module = um.certifying_network(frozen)
    graph = torch.compile(module, fullgraph=True, dynamic=True, backend=sys.argv[1])
    assert compare(graph, frozen, (2, 7, 1)) > 0
    print(name)
"""


@pytest.mark.parametrize(
    ("backend", "names"),
    [
        ("aot_eager", ["averaged", "by FFT"]),
        pytest.param("inductor", ["by FFT", *FEWEST], marks=pytest.mark.nightly),
    ],
)
def test_it_is_one_graph_of_a_compiler(backend: str, names: list[str]) -> None:
    if backend == "inductor" and shutil.which("g++") is None:
        pytest.skip("the inductor backend needs g++")
    assert run(COMMON + COMPILED, backend, *names) == names


PACKAGED = """
import json
name, path, settings = sys.argv[1:]
if name.startswith("["):
    frozen = um.freeze(build_model(*json.loads(name)))
else:
    frozen = EXAMPLES[name]().network
with torch.no_grad():
    torch._inductor.aoti_compile_and_package(
        export(frozen), package_path=path, inductor_configs=json.loads(settings)
    )
inputs = [torch.rand(batch, *frozen.in_shape) for batch in (1, 2, 7)]
torch.save([(x, um.certifying_network(frozen)(x)) for x in inputs], path + ".expected")
"""

LOADED = """
import sys
import torch
graph = torch._inductor.aoti_load_package(sys.argv[1])
for x, expected in torch.load(sys.argv[1] + ".expected"):
    found = graph(x)
    assert list(found) == list(expected)
    assert torch.equal(found["label"], expected["label"])
    torch.testing.assert_close(found["radius"], expected["radius"], rtol=1e-12, atol=1e-12)
assert "unitmargin" not in sys.modules
print(float(torch.tensor(2.0**-1022, dtype=torch.float64) * 0.5) > 0)
"""


REFUSED = """
import sys
import torch
graph = torch._inductor.aoti_load_package(sys.argv[1])
x = torch.load(sys.argv[1] + ".expected")[-1][0]
graph(x)
for other in (x.double(), torch.stack((x, x), 1)[:, 0], x[..., :-1]):
    try:
        graph(other)
        print(f"taken: {other.dtype} {other.shape} {other.stride()}")
    except RuntimeError as error:
        print(str(error).split(",")[0].split(": ", 1)[1].split(" value")[0])
"""

QUICK = """{
    "aot_inductor.precompile_headers": false, "aot_inductor.compile_wrapper_opt_level": "O0"
}"""
"""Settings of how the caller of the kernels is compiled, not of their arithmetic."""


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("head alone", QUICK),
        pytest.param("by FFT", "{}", marks=pytest.mark.nightly),
        pytest.param('["ugnn", [1, 8, 8], 10]', "{}", marks=pytest.mark.nightly),
        pytest.param('["mixing_ugnn", [3, 8, 8], 3]', "{}", marks=pytest.mark.nightly),
    ],
)
def test_a_package_issues_them_without_this_library(
    name: str, settings: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loaded in a process that has torch alone, where denormal numbers stay, and which refuses
    inputs of another type, layout or shape where torch is asked to."""
    if shutil.which("g++") is None:
        pytest.skip("AOTInductor needs g++")
    path = str(tmp_path / "package.pt2")
    run(COMMON + PACKAGED, name, path, settings)
    assert run(LOADED, path) == ["True"]
    monkeypatch.setenv("AOTI_RUNTIME_CHECK_INPUTS", "1")
    assert run(REFUSED, path) == ["unmatched dtype", "unmatched stride", "unmatched dim"]
