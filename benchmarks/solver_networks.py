"""The networks whose boundaries are searched, each with samples that it labels correctly."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

import unitmargin as um
from unitmargin.data import Samples
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.opening import open_dataset


@dataclass(frozen=True)
class Case:
    """One network, the samples to be attacked, and whether a call of it is cheap."""

    name: str
    model: nn.Module
    inputs: Tensor
    labels: Tensor
    small: bool

    def take(self, count: int) -> "Case":
        return replace(self, inputs=self.inputs[:count], labels=self.labels[:count])

    def fingerprint(self) -> str:
        """Names weights and samples, so that a stored measurement is not taken for another's."""
        digest = hashlib.sha256()
        tensors = (*self.model.parameters(), *self.model.buffers(), self.inputs, self.labels)
        for tensor in tensors:
            digest.update(tensor.detach().numpy().tobytes())
        return digest.hexdigest()[:16]


def digits_ugnn(samples: int, quick: bool) -> Case:
    """A fully connected UGNN, trained here; test digits first, then training digits."""
    data = um.load_dataset("digits")
    torch.manual_seed(0)
    model = um.DenseUGNN(in_shape=(1, 8, 8), n_classes=10, hidden=(64, 64, 64, 32))
    um.train(model, data.train, data.test, epochs=10 if quick else 60, quiet=True)
    parts = [data.test, data.train]
    return correct("digits UGNN", um.freeze(model), parts, samples, small=True)


def digits_relu(samples: int, quick: bool) -> Case:
    """A small ReLU CNN trained by cross-entropy: nothing is known of its Lipschitz constant."""
    data = um.load_dataset("digits")
    torch.manual_seed(0)
    inputs, labels = data.train.batch(slice(0, len(data.train)))
    model = nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1, stride=2)),
        *(nn.ReLU(), nn.Flatten(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10)),
    )
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(10 if quick else 30):
        for chosen in torch.randperm(len(inputs)).split(64):
            loss = nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model = model.eval().requires_grad_(False)
    return correct("digits ReLU CNN", model, [data.test, data.train], samples, small=True)


def run_case(folder: Path, data: Path | None, samples: int) -> Case:
    """The frozen network of a run folder on its test samples."""
    run = RunFolder(folder)
    recipe = run.recipe()
    path = recipe.data.path if data is None else str(data)
    test = open_dataset(recipe.changed(data={"path": path})).test
    name = f"{recipe.name}, {recipe.training.epochs} epochs"
    return correct(name, run.frozen(), [test], samples, small=False)


def correct(name: str, model: nn.Module, parts: list[Samples], samples: int, small: bool) -> Case:
    """The first samples that the model labels correctly."""
    inputs, labels = (torch.cat(tensors) for tensors in zip(*map(head, parts), strict=True))
    inputs, labels = inputs[: 3 * samples], labels[: 3 * samples]
    with torch.no_grad():
        right = torch.cat([model(some).argmax(1) for some in inputs.split(256)]) == labels
    return Case(name, model, inputs[right], labels[right], small).take(samples)


def head(samples: Samples) -> tuple[Tensor, Tensor]:
    return samples.batch(slice(0, min(len(samples), 5000)))


IN_PLACE: dict[str, Callable[[int, bool], Case]] = {
    "digits-ugnn": digits_ugnn,
    "digits-relu": digits_relu,
}
"""Networks that need no file."""
