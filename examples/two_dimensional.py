"""The paper's first figure: a binary signed distance classifier in the plane.

Trains a deep UGNN of width 2 on the moons in seconds, then draws the contours of f_0 - f_1, a
point, its certified disc, and its closest boundary point from the closed form.

    python examples/two_dimensional.py [OUTPUT.png]
"""

import sys
from pathlib import Path

import torch
from matplotlib.figure import Figure

import unitmargin as um

DEPTH = 20


def trained() -> um.FrozenNetwork:
    """A frozen UGNN of ``DEPTH`` folds of the plane."""
    moons = um.load_dataset("moons")
    torch.manual_seed(3)
    model = um.DenseUGNN(
        in_shape=(2,), n_classes=2, activation="abs", linear="manifold", hidden=(2,) * DEPTH
    )
    with torch.no_grad():  # folds in random places: with zero biases all would meet in one point
        for name, parameter in model.named_parameters():
            if name.startswith("features") and name.endswith("bias"):
                parameter.uniform_(-0.5, 0.5)
    um.train(
        model,
        moons.train,
        moons.test,
        epochs=40,
        batch_size=64,
        learning_rate=0.02,
        manifold_rate=0.02,
        offset=0.1,
        temperature=0.03,
        quiet=True,
    )
    return um.freeze(model, torch.float64)


def draw(frozen: um.FrozenNetwork) -> Figure:
    """Contours of the signed distance, the data, and one certified point."""
    axis = torch.linspace(-1.4, 1.4, 301, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)
    logits = frozen(grid)
    signed = (logits[:, 0] - logits[:, 1]).view(301, 301).mT
    figure = Figure(figsize=(6, 5.4), layout="constrained")
    axes = figure.add_subplot()
    levels = torch.arange(-0.6, 0.601, 0.05).tolist()
    filled = axes.contourf(axis, axis, signed, levels=levels, cmap="RdBu_r", extend="both")
    axes.contour(axis, axis, signed, levels=[0.0], colors="black", linewidths=1.8)
    figure.colorbar(filled, label="$f_0 - f_1$: signed distance to the boundary")
    inputs, labels = um.load_dataset("moons").test.batch(slice(0, 200))
    axes.scatter(*inputs.T, c=labels, cmap="coolwarm_r", s=9, edgecolors="white", linewidths=0.3)
    x, radius, target = exact_point(frozen, inputs.double())
    theta = torch.linspace(0, 2 * torch.pi, 200)
    axes.plot(x[0] + radius * theta.cos(), x[1] + radius * theta.sin(), "k--", linewidth=1)
    axes.plot(*torch.stack((x, target)).T, "k-", linewidth=1)
    axes.plot(*x, "ko", markersize=6)
    axes.plot(*target, "k*", markersize=13)
    axes.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4), aspect="equal", xticks=[], yticks=[])
    axes.set_title("certified disc and closest boundary point")
    return figure


def exact_point(
    frozen: um.FrozenNetwork, x: torch.Tensor
) -> tuple[torch.Tensor, float, torch.Tensor]:
    """The input of largest radius whose closed form lands on the boundary, and where it lands."""
    certificate = um.certify(frozen, x)
    nearest = um.closest_adversarial(frozen, x)
    exact = nearest.remaining.abs() < 1e-6
    chosen = int(torch.where(exact, certificate.radius, 0.0).argmax())
    return x[chosen], float(certificate.radius[chosen]), nearest.point[chosen]


if __name__ == "__main__":
    output = Path(sys.argv[1] if len(sys.argv) > 1 else "two_dimensional.png")
    draw(trained()).savefig(output, dpi=150)
    print(f"wrote {output}")
