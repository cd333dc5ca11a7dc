"""The largest slack: above that of every input of the domain, and reached at its far corner."""

import pytest
import torch

from unitmargin import DenseUGNN, certify, freeze
from unitmargin.certificates.slack import largest_slack
from unitmargin.frozen import Dense, FrozenNetwork
from unitmargin.layers.normalize import Normalize


@pytest.mark.parametrize("profile", ["float64", "float32"])
@pytest.mark.parametrize("domain", [(0.0, 1.0), (-3.0, 0.1), (5.0, 5.0 + 1e-6)])
def test_no_input_of_the_domain_has_a_larger_slack(
    domain: tuple[float, float], profile: str
) -> None:
    torch.manual_seed(0)
    normalize = Normalize(torch.tensor([0.3]), torch.tensor([0.5]))
    model = DenseUGNN(in_shape=(1, 4, 4), n_classes=3, hidden=(8,), normalize=normalize)
    frozen = freeze(model, domain=domain, profile=profile)
    bound = largest_slack(frozen)
    assert bound is not None
    low, high = domain
    ends = torch.randint(0, 2, (200, 1, 4, 4)).float()
    inner = torch.rand(200, 1, 4, 4)
    corners = torch.stack([torch.zeros(1, 4, 4), torch.ones(1, 4, 4)])
    x = low + (high - low) * torch.cat([ends, inner, corners])
    slack = certify(frozen, x.clamp(torch.tensor(low), torch.tensor(high))).slack
    assert float(slack.max()) <= bound
    assert bound <= 2.0 * float(slack.max())


@pytest.mark.parametrize("entries", [4, 784, 3072])
def test_what_certificates_add_to_a_norm_for_its_rounding_is_covered(entries: int) -> None:
    row = torch.randn(1, entries, generator=torch.Generator().manual_seed(0))
    head = Dense(torch.cat((row, -row)), torch.zeros(2))
    frozen = FrozenNetwork([head], (entries,), domain=(-1.0, 1.0))
    bound = largest_slack(frozen)
    assert bound is not None
    assert float(certify(frozen, torch.ones(1, entries)).slack) <= bound


def test_without_a_domain_there_is_none() -> None:
    assert largest_slack(freeze(DenseUGNN(in_shape=(2,), n_classes=2, hidden=(2,)))) is None


@pytest.mark.parametrize("domain", [(-1000.3, 70000.0), (-70000.0, 1000.3)])
def test_an_end_that_a_short_type_rounds_outwards_counts_where_the_other_overflows(
    domain: tuple[float, float],
) -> None:
    """In float16 the near end is rounded to a thousand and a half, and 70,000 is infinite. The far
    end is the mean, so that the near one has the larger norm."""
    near, far = sorted(domain, key=abs)
    normalize = Normalize(torch.full((4,), far).double(), torch.ones(4).double())
    rows = torch.tensor([[0.5] * 4, [-0.5] * 4]).double()
    layers = [normalize, Dense(rows, torch.zeros(2).double())]
    frozen = FrozenNetwork(layers, (4,), domain=domain)
    x = torch.full((1, 4), near).double().half()
    assert abs(float(x[0, 0])) > abs(near)
    bound = largest_slack(frozen)
    assert bound is not None
    assert float(certify(frozen, x).slack) <= bound
