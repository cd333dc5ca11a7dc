"""The public interface: its names are a contract."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import unitmargin as um

CONTRACT = [
    "Certificate",
    "ClosestAdversarial",
    "DenseUGNN",
    "FrozenNetwork",
    "UGNN",
    "audit",
    "build_model",
    "build_optimizer",
    "build_optimizers",
    "certified_accuracy",
    "certify",
    "closest_adversarial",
    "freeze",
    "load",
    "load_dataset",
    "minimal_perturbation",
    "report",
    "save",
    "train",
    "verify",
]
"""Names may be added; these stay."""


def test_the_contract_is_public() -> None:
    assert set(CONTRACT) <= set(um.__all__)
    assert dir(um) == sorted(um.__all__)
    assert len(set(um.__all__)) == len(um.__all__)


@pytest.mark.parametrize("name", um.__all__)
def test_every_public_name_can_be_used_and_is_documented(name: str) -> None:
    value = getattr(um, name)
    assert value.__name__ == name
    assert value.__doc__


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(str(um.__file__)).with_suffix(".pyi").read_text())
    aliases = [a for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names]
    assert all(alias.name == alias.asname for alias in aliases)
    assert {alias.name for alias in aliases} == set(um.__all__)


def test_no_room_hides_a_public_name() -> None:
    """``import unitmargin.x`` makes x an attribute of the package, before any lazy name."""
    rooms = {path.stem for path in Path(str(um.__file__)).parent.iterdir()}
    assert not rooms & set(um.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="No unitmargin attribute certifi"):
        _ = um.certifi


def test_one_version_is_stated_everywhere() -> None:
    cited = (Path(__file__).parents[1] / "CITATION.cff").read_text()
    assert f"\nversion: {um.__version__}\n" in cited
    done = subprocess.run(
        [sys.executable, "-m", "unitmargin", "--version"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (f"unitmargin {um.__version__}\n", "")


def test_importing_the_package_does_not_import_torch() -> None:
    code = (
        "import sys, unitmargin; unitmargin.__version__; "
        "print('torch' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_deployment_does_not_import_the_training_code() -> None:
    code = (
        "import sys, unitmargin.frozen, unitmargin.certificates.certify; "
        "print([n for n in sys.modules if n.startswith("
        "('unitmargin.orthogonal', 'unitmargin.models', 'unitmargin.steps', 'unitmargin.heads'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
