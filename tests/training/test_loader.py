"""A loader is trained on as it is: its order, its batches, its number of steps."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import unitmargin as um
from unitmargin.data import Dataset, Samples
from unitmargin.training.share import Share
from unitmargin.training.trainer import Trainer

X, Y = torch.rand(12, 2), torch.arange(12) % 3


def model() -> um.DenseUGNN:
    torch.manual_seed(0)
    return um.DenseUGNN((2,), 3, hidden=(2,))


def trained(data: Any, test: Any = None, **options: Any) -> tuple[um.DenseUGNN, Any]:
    network = model()
    result = um.train(network, data, test, epochs=3, quiet=True, **options)
    return network, result.history


def same(first: um.DenseUGNN, second: um.DenseUGNN) -> bool:
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(*pair) for pair in pairs)


class Seen(DataLoader[Any]):
    """A loader that keeps what it handed out."""

    def __iter__(self) -> Any:
        self.batches = getattr(self, "batches", [])
        for batch in super().__iter__():
            self.batches.append(batch)
            yield batch


def test_a_loader_is_gone_through_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[tuple[Tensor, Tensor]] = []
    original = Trainer._step

    def noted(self: Trainer, share: Share, progress: float) -> Tensor:
        steps.append((share.inputs, share.labels))
        return original(self, share, progress)

    monkeypatch.setattr(Trainer, "_step", noted)
    loader = Seen(TensorDataset(X.double(), Y), batch_size=5, shuffle=True)
    network, history = trained(loader, batch_size=2)
    assert len(history) == 3
    assert len(steps) == 3 * len(loader)
    handed = loader.batches[len(loader) :]  # the first pass looks at the range
    for (inputs, labels), (given, chosen) in zip(steps, handed, strict=True):
        assert torch.equal(inputs, given.float())
        assert torch.equal(labels, chosen)
    assert network.domain.tolist() == [0, 1]


def test_one_batch_trains_as_samples_do() -> None:
    loader = DataLoader(TensorDataset(X, Y), batch_size=12)
    (_, first), (_, second) = trained((X, Y), (X, Y), batch_size=12), trained(loader, loader)
    assert first[0].loss == pytest.approx(second[0].loss, rel=1e-6)
    assert first[0].clean_accuracy == second[0].clean_accuracy is not None


def test_a_torch_data_set_trains_as_its_pair() -> None:
    assert same(trained(TensorDataset(X, Y))[0], trained((X, Y))[0])


def test_without_test_data_nothing_is_evaluated() -> None:
    record = trained((X, Y))[1][-1]
    assert record.clean_accuracy is None
    assert record.orthogonality_error < 1e-5
    assert "clean" not in record.line(3)


def test_a_data_set_is_trained_and_evaluated_on_its_own_samples() -> None:
    dataset = Dataset("tiny", Samples(X, Y), Samples(X[:5], Y[:5]), ("a", "b", "c"))
    network, history = trained(dataset)
    pair, expected = trained((X, Y), (X[:5], Y[:5]))
    assert same(network, pair)
    assert history[-1].clean_accuracy == expected[-1].clean_accuracy is not None


def test_the_domain_holds_the_test_data_as_that_of_samples_does() -> None:
    loader, test = DataLoader(TensorDataset(X, Y), batch_size=5), (3.0 * X, Y)
    network, (pair, _) = trained(loader, test)[0], trained((X, Y), test)
    assert torch.equal(network.domain, pair.domain)
    assert float(network.domain[1]) > 3.0 * float(X.max())
    um.certify(um.freeze(network), test[0])


def test_test_images_in_other_units_are_refused() -> None:
    images, model = torch.rand(6, 1, 4, 4), um.UGNN((1, 4, 4), 3, depth=1)
    loader = DataLoader(TensorDataset(images, Y[:6]), batch_size=5)
    with pytest.raises(ValueError, match="test images must be in the units of the training"):
        um.train(model, loader, (255.0 * images, Y[:6]), epochs=1, quiet=True)


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return iter(zip(X, Y, strict=True))


LOADER = DataLoader(TensorDataset(X, Y), batch_size=4)


@pytest.mark.parametrize(
    ("data", "options", "kind", "message"),
    [
        (LOADER, {"crop": 1}, ValueError, "crop must be left out with a DataLoader, .* got 1;"),
        (LOADER, {"flip": True}, ValueError, "flip must be left out with a DataLoader"),
        (LOADER, {"checkpoint": "c"}, ValueError, "checkpoint must be left out with a DataLoader"),
        (DataLoader(Stream()), {}, TypeError, "must be a DataLoader with a length"),
        (DataLoader(TensorDataset(X[:0], Y[:0])), {}, ValueError, "a batch at least, got none"),
        (DataLoader(TensorDataset(X[:, :1], Y)), {}, ValueError, r"of shape \(2,\), .* batch 0;"),
        (DataLoader(TensorDataset(X, Y + 1)), {}, ValueError, "from 0 to 2, .* got 3 in batch 2;"),
        (DataLoader(TensorDataset(X, Y - 1)), {}, ValueError, "from 0 to 2, .* -1 in batch 0;"),
        (DataLoader(TensorDataset(X / 0, Y)), {}, ValueError, "in float32, got others in batch 0;"),
    ],
)
def test_loaders_that_do_not_fit_are_refused_before_the_first_step(
    data: Any, options: dict[str, Any], kind: type, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trainer, "epoch", None)  # whoever calls it fails
    with pytest.raises(kind, match=message):
        trained(data, **options)


class Once(IterableDataset[Any]):
    """A data set of four samples that can be read once."""

    def __init__(self) -> None:
        self.left = iter(zip(X[:4], Y[:4], strict=True))

    def __len__(self) -> int:
        return 4

    def __iter__(self) -> Iterator[Any]:
        yield from self.left


def test_a_loader_that_can_be_gone_through_once_is_refused() -> None:
    with pytest.raises(ValueError, match="must yield its 2 batches in every pass, got 0 in epoch"):
        trained(DataLoader(Once(), batch_size=2))


class Emptied(DataLoader[Any]):
    """A loader of one batch, which is empty after some passes."""

    def __init__(self, passes: int) -> None:
        super().__init__(TensorDataset(X, Y), batch_size=12)
        self.passes = passes

    def __iter__(self) -> Any:
        self.passes -= 1
        yield (X, Y) if self.passes >= 0 else (X[:0], Y[:0])


def test_a_pass_of_empty_batches_is_refused() -> None:
    message = "a sample at least in every pass, got 1 empty batches in epoch 2; pass a loader"
    with pytest.raises(ValueError, match=message):
        trained(Emptied(2))


def test_empty_batches_are_left_out() -> None:
    batches = [(X, Y), (X[:0], Y[:0])]
    first, _ = trained(DataLoader(batches, batch_size=None))  # type: ignore[arg-type]
    assert all(bool(tensor.isfinite().all()) for tensor in first.parameters())
