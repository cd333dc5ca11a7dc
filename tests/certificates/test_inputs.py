"""What may be certified: inputs in the units of the training, of any kind that holds numbers."""

import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from exact import affine, unit_affine
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as drawn
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

import unitmargin as um
from unitmargin.certificates.exhibits import make_exhibits
from unitmargin.certificates.findings import closed_form_finding, rounding_finding
from unitmargin.certificates.spaces import input_space
from unitmargin.certificates.stored import stored_finding
from unitmargin.certificates.tightness import search_boundary
from unitmargin.data import Samples
from unitmargin.foundation.numbers import as_tensor

Use = Callable[..., Any]

USES: dict[str, Use] = {"certify": um.certify, "closest_adversarial": um.closest_adversarial}


def network(domain: tuple[float, float] | None = (0.0, 1.0)) -> um.FrozenNetwork:
    frozen = unit_affine(torch.float32, 3, (2,)).network
    frozen.domain = domain
    return frozen


@pytest.fixture(params=USES)
def use(request: pytest.FixtureRequest) -> Use:
    return USES[request.param]


# --- The domain --------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [255.0, 16.0, 1.0 + 2**-20])
def test_inputs_in_other_units_than_the_training_are_refused(use: Use, factor: float) -> None:
    x = torch.tensor([[0.2, 0.3], [0.0, 1.0], [1.0, 1.0]])
    use(network(), x)
    message = (
        "x must lie in [0.0, 1.0], the domain of the network, got entries from 0.0 to "
        f"{factor}, the first outside in sample {0 if factor > 2 else 1}; scale the inputs as "
        "those the network was trained on, or pass domain='any'"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        use(network(), factor * x)


def test_the_first_sample_outside_is_counted_over_all_batches() -> None:
    x, labels = torch.rand(600, 2), torch.zeros(600, dtype=torch.int64)
    x[-1] = 2.0
    loader = DataLoader(TensorDataset(x, labels), batch_size=100)
    for given_ in (x, Samples(x, labels), loader):
        with pytest.raises(ValueError, match="the first outside in sample 599; scale"):
            um.certify(network(), given_)


def test_any_domain_takes_them_and_says_the_same(use: Use) -> None:
    x = 255.0 * torch.rand(4, 2)
    taken, free = use(network(), x, domain="any"), use(network(None), x)
    for name, value in vars(taken).items():
        assert torch.equal(value, getattr(free, name)), name


def test_another_word_for_the_domain_is_refused(use: Use) -> None:
    with pytest.raises(ValueError, match="domain must be one of model, any, got 'all'; choose"):
        use(network(), torch.rand(2, 2), domain="all")


@pytest.mark.parametrize("entry", [math.nan, math.inf, -math.inf])
def test_entries_that_are_not_finite_claim_nothing_and_hide_nothing(entry: float) -> None:
    x = torch.tensor([[entry, 0.5], [0.5, 0.5]])
    certificate = um.certify(network(), x)
    assert certificate.label.tolist()[0] == -1
    assert certificate.radius.tolist()[0] == 0.0
    x[0, 1] = 9.0
    with pytest.raises(ValueError, match=r"from 0\.5 to 9\.0, the first outside in sample 0"):
        um.certify(network(), x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_ends_of_the_domain_lie_inside_in_every_type(use: Use, dtype: torch.dtype) -> None:
    high = 255.0 / 100.0  # no binary number: rounded to each type
    frozen = network((-0.0, high))
    use(frozen, torch.tensor([[0.0, -0.0], [high, 1.0]], dtype=torch.float64).to(dtype))
    above = torch.tensor([[0.0, 1.01 * high]], dtype=torch.float64).to(dtype)
    with pytest.raises(ValueError, match="x must lie in"):
        use(frozen, above)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_a_domain_that_a_type_cannot_hold_admits_all_its_numbers(dtype: torch.dtype) -> None:
    x = torch.full((1, 2), torch.finfo(dtype).max, dtype=dtype)
    assert um.certify(network((-1e300, 1e300)), x).label.tolist() != [-1]
    with pytest.raises(ValueError, match=r"x must lie in \[-1e\+300, 0\.0\]"):
        um.certify(network((-1e300, 0.0)), x)


def test_the_domain_of_a_model_is_that_of_its_training_samples() -> None:
    digits = um.load_dataset("digits", limit=64)
    model = um.DenseUGNN((1, 8, 8), 10, hidden=(16,))
    assert um.freeze(model).domain is None
    assert um.freeze(model, domain=(0, 2)).domain == (0.0, 2.0)
    um.train(model, digits.train, digits.test, epochs=1, quiet=True)
    frozen = um.freeze(model)
    assert frozen.domain == (0.0, 1.0)
    x = digits.test.batch(slice(0, 8))[0]
    assert um.certify(frozen, x).radius.max() > 0
    for factor in (16, 255):
        with pytest.raises(ValueError, match="x must lie in"):
            um.certify(frozen, factor * x)


@pytest.mark.parametrize("convert", [torch.nn.Module.half, torch.nn.Module.float])
def test_a_model_of_another_type_keeps_the_unit_domain(convert: Use) -> None:
    model = um.DenseUGNN((2,), 2)
    model.domain.copy_(torch.tensor([0.0, 1.0]))
    assert um.freeze(convert(model).double()).domain == (0.0, 1.0)
    assert um.freeze(convert(um.DenseUGNN((2,), 2)).double()).domain is None


def test_the_library_attacks_points_beyond_the_domain() -> None:
    """Searches and attacks leave the domain; what they certify on the way must not stop them."""
    truth = affine(torch.float32)
    frozen = truth.network
    frozen.domain = (-1e-3, 1e-3)
    x = truth.inputs[:4]
    assert float(x.abs().max()) > 1e-3
    labels = frozen(x).argmax(1)
    certificate = um.certify(frozen, x, domain="any")
    index = torch.arange(4)
    assert closed_form_finding(frozen, x).value >= 1.0
    assert stored_finding(frozen, x, certificate).passed
    assert search_boundary(
        input_space(frozen), x, labels, index, "sphere_tracing", None
    ).found.all()
    shown = make_exhibits(frozen, Samples(x, labels), certificate.radius, labels == labels)
    assert len(shown) > 0
    assert rounding_finding(frozen, x[:1]).value == 0


# --- Kinds of numbers --------------------------------------------------------------------------

X = torch.tensor([[0.25, 0.5], [0.75, 0.125], [0.0, 1.0]])

HALF_ULP = {torch.float64: 2**-23, torch.float32: 2**-24, torch.float16: 2**-10}
"""Of points of size 1 to 2 rounded to these types; those they are compared with are float32."""

SAME: dict[str, Any] = {
    "array": X.numpy(),
    "float64": X.double(),
    "reversed": X.numpy()[::-1].copy()[::-1],
    "big endian": X.numpy().astype(">f4"),
    "half": X.numpy().astype(np.float16),
    "read-only": np.broadcast_to(X.numpy(), (3, 2)),
    "column order": np.asfortranarray(X.numpy()),
    "field": np.rec.fromarrays([X.numpy()[:, 0], [1, 2, 3]], names="a,b"),
    "frame": pandas.DataFrame(X.numpy(), columns=["a", "b"], index=[9, 4, 4]),
    "arrow-like frame": pandas.DataFrame(X.numpy()).astype("Float32"),
    "graph": X.clone().requires_grad_(True),
    "transposed": X.T.contiguous().T,
    "expanded": X[:1].expand(3, 2),
}


@pytest.mark.parametrize("kind", SAME)
def test_the_same_numbers_get_the_same_certificate(use: Use, kind: str) -> None:
    x = SAME[kind]
    if kind == "field":
        x = np.stack([x["a"], X.numpy()[:, 1]], axis=1)
    expected = use(network(), X[:1].expand(3, 2).clone() if kind == "expanded" else X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = use(network(), x)
    for name, value in vars(found).items():
        assert isinstance(value, Tensor)
        assert not value.requires_grad
        if name == "point":  # of the type of x
            assert (value.double() - expected.point.double()).abs().max() < HALF_ULP[value.dtype]
        else:
            assert torch.equal(value, getattr(expected, name)), name


def test_images_in_any_memory_format_are_taken(use: Use) -> None:
    frozen = um.freeze(um.UGNN((2, 4, 4), 3, depth=1))
    x = torch.rand(3, 2, 4, 4)
    expected, found = use(frozen, x), use(frozen, x.to(memory_format=torch.channels_last))
    for name, value in vars(found).items():
        assert torch.allclose(value, getattr(expected, name), atol=1e-12), name


def test_missing_values_of_a_frame_claim_nothing() -> None:
    frame = pandas.DataFrame({"a": [0.5, None], "b": [0.5, 0.25]})
    assert um.certify(network(), frame).label.tolist()[1] == -1


def test_a_frame_is_no_input_of_a_network_that_states_an_encoding(use: Use) -> None:
    """Its columns may be raw, or in another order: 61 years are no 0.5 of a scaled entry."""
    frozen = network()
    columns = [{"name": "b", "shift": 40.0, "unit": 42.0}, {"name": "a"}]
    frozen.facts["encoding"] = {"label": "kind", "columns": columns}
    frame = pandas.DataFrame(X.numpy(), columns=["a", "b"])
    labels = torch.zeros(3, dtype=torch.int64)
    for x in (frame, frame.convert_dtypes(), (frame, labels)) if use is um.certify else (frame,):
        with pytest.raises(TypeError, match=r"x must hold the numbers .*got a table .*; pass its"):
            use(frozen, x)
    for name, value in vars(use(frozen, frame.to_numpy())).items():
        assert torch.equal(value, getattr(use(network(), X), name)), name


def test_a_batch_of_nothing_has_certificates_of_nothing(use: Use) -> None:
    networks = {(2,): network(), (2, 4, 4): um.freeze(um.UGNN((2, 4, 4), 3, depth=1))}
    for shape, frozen in networks.items():
        for name, value in vars(use(frozen, torch.zeros(0, *shape))).items():
            points = shape if "point" in name else ()
            assert value.shape == (0, *points), name


def test_a_network_on_another_device_is_named(use: Use) -> None:
    with pytest.raises(ValueError, match="x must be on meta, where the network is, got cpu; move"):
        use(network().to("meta"), X)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (X[0], r"x must have shape \(batch, 2\), got \(2,\); add the batch axis: x\[None\]"),
        (X[:, :1], r"x must have shape \(batch, 2\), got \(3, 1\); resize it"),
        (torch.tensor(1.0), r"x must have shape \(batch, 2\), got \(\); resize it"),
        (X.long(), "x must be floating point .*, got torch.int64; convert it and scale it"),
        (X > 0.5, "x must be floating point .*, got torch.bool"),
        (X.to(torch.int8), "x must be floating point .*, got torch.int8"),
        (X.to(torch.float8_e4m3fn), "x must be floating point .*, got torch.float8_e4m3fn"),
    ],
)
def test_what_is_no_batch_of_inputs_is_refused(use: Use, x: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        use(network(), x)


ANY_TYPE = st.one_of(
    drawn.floating_dtypes(endianness="?"),
    drawn.integer_dtypes(endianness="?"),
    drawn.unsigned_integer_dtypes(),
    drawn.boolean_dtypes(),
    drawn.complex_number_dtypes(),
    drawn.datetime64_dtypes(),
    drawn.timedelta64_dtypes(),
    drawn.unicode_string_dtypes(max_len=3),
    drawn.byte_string_dtypes(max_len=3),
    st.just(np.dtype(np.longdouble)),
    st.just(np.dtype(object)),
)

ENTRIES = st.one_of(st.none(), st.floats(), st.text(max_size=9), st.booleans(), st.binary())


def refusal(step: Callable[[], object]) -> str:
    """What is said of a wrong argument, "" of a right one; any other exception passes through."""
    try:
        step()
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


@given(st.data())
def test_any_array_gives_a_result_or_one_line(data: st.DataObject) -> None:
    dtype = data.draw(ANY_TYPE)
    shape = data.draw(st.sampled_from([(2,), (3, 2), (0, 2), (1, 2), (), (2, 2, 2), (2, 0)]))
    elements = ENTRIES if dtype.kind == "O" else None
    array = data.draw(drawn.arrays(dtype, shape, elements=elements))
    steps = [lambda: as_tensor("x", array)]
    steps += [lambda use=use: use(network(None), array) for use in USES.values()]
    for step in steps:
        message = refusal(step)
        assert message == "" or re.fullmatch("x must .*; .*", message)
