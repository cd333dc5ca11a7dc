"""The figure of pair distances of UPD matrices: L-BFGS after 2, 3 and 4 steps, and closed forms."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor, nn

from unitmargin.auditing.gradients import pair_distances
from unitmargin.heads import BoundedUPD, LbfgsUPD, SimplexUPD, UPDHead
from unitmargin.heads.upd import psi
from unitmargin.paper.canvas import panels
from unitmargin.paper.layout import Row, Table
from unitmargin.paper.target import Output, Target
from unitmargin.reporting.drawing import CLASS_COLOURS, INK, TEXT_SIZE, label, legend
from unitmargin.runs.folder import RunFolder

CLASSES = (10, 43, 100)
FEATURES = 512
STEPS = (2, 3, 4)
DRAWS = 10
"""Random matrices U a number of classes, as in the paper."""

BINS = 40

EXACT = 1e-9
"""Smallest deviation that is told apart: below one float32 ulp of a distance."""

AXIS = (-9.2, -3.0)
"""Powers of ten in the figure."""

DASHES = ("-", "--", ":")
"""Many of the curves coincide."""

TABLE_HEADER = ("Classes", "Weight", "Largest error", "Median error", "Paper")
PRINTED = {(10, "L-BFGS, 3 steps"): "1e-5", (10, "listing, 3 steps"): "1e-5"}
"""Largest error that the paper states, by classes and weight."""

CAPTION = (
    "Errors | ||W_i - W_j|| - 1 | of all pairs of rows of W = UPD(U), for 10 random matrices U of "
    "512 columns each, as a linear layer is initialised: L-BFGS after 2, 3 and 4 steps of up to 20 "
    "iterations, as an unrolled map (float64 inside, float32 out) and as in the paper's listing "
    "(torch.optim.LBFGS, float32, in place), and the two closed forms."
)


def listing(start: Float[Tensor, "c m"], steps: int) -> Float[Tensor, "c m"]:
    """The projection of the paper's listing: ``steps`` calls of torch's L-BFGS on the mean Psi."""
    weight = start.clone().requires_grad_(True)
    optimizer = torch.optim.LBFGS([weight])
    pairs = start.shape[0] * (start.shape[0] - 1) // 2

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = psi(weight) / pairs
        value.backward()
        return value

    for _ in range(steps):
        optimizer.step(closure)
    return weight.detach()


def ours(start: Float[Tensor, "c m"], head: Callable[[int, int], UPDHead]) -> Tensor:
    """The weight of one of our heads with the free matrix ``start``."""
    module = head(start.shape[1], start.shape[0])
    with torch.no_grad():
        module.raw.copy_(start)
        return module.weight()


def weights() -> dict[str, Callable[[Tensor], Tensor]]:
    """The ways from U to W that are compared, by name."""
    unrolled = {f"L-BFGS, {steps} steps": partial(LbfgsUPD, steps=steps) for steps in STEPS}
    closed = {"simplex (closed form)": SimplexUPD, "bounded (closed form)": BoundedUPD}
    return {
        **{name: partial(ours, head=head) for name, head in unrolled.items()},
        **{f"listing, {steps} steps": partial(listing, steps=steps) for steps in STEPS},
        **{name: partial(ours, head=head) for name, head in closed.items()},
    }


def pair_errors(classes: int, weight: Callable[[Tensor], Tensor]) -> Float[Tensor, " pairs"]:
    """Errors of all pair distances over the random starts, draw after draw."""
    errors = []
    for draw in range(DRAWS):
        generator = torch.Generator().manual_seed(draw)
        start = torch.empty(classes, FEATURES)
        nn.init.kaiming_uniform_(start, a=5**0.5, generator=generator)
        errors.append((pair_distances(weight(start)) - 1.0).abs())
    return torch.cat(errors)


def upd(runs: Sequence[RunFolder]) -> Output:
    """``fig:distplot_upd`` and its numbers; no run is needed."""
    errors = {
        (classes, name): pair_errors(classes, weight)
        for classes in CLASSES
        for name, weight in weights().items()
    }
    groups: dict[int, list[Row]] = defaultdict(list)
    for (classes, name), found in errors.items():
        figures = (f"{float(found.max()):.1e}", f"{float(found.median()):.1e}")
        groups[classes].append((str(classes), name, *figures, PRINTED.get((classes, name), "")))
    table = Table("tab:upd", CAPTION, TABLE_HEADER, list(groups.values()), TABLE_HEADER[2:])
    return Output([table], {"distplot-upd": (error_figure(errors), CAPTION)})


def error_figure(errors: dict[tuple[int, str], Float[Tensor, " pairs"]]) -> Figure:
    """Histograms of the errors' powers of ten, one panel a number of classes."""
    figure, axes = panels(len(CLASSES))
    for panel, classes in zip(axes, CLASSES, strict=True):
        for number, name in enumerate(weights()):
            powers = errors[classes, name].clamp_min(EXACT).log10().numpy()
            panel.hist(
                powers, bins=BINS, range=AXIS, histtype="step", density=True, label=name,
                color=CLASS_COLOURS[number], linestyle=DASHES[number % len(DASHES)], linewidth=1.4,
            )  # fmt: skip
        panel.set_title(f"C = {classes}", color=INK, fontsize=TEXT_SIZE)
        panel.set_yticks([])
        label(panel, "log10 of the error of a pair distance")
    legend(axes[0], TEXT_SIZE - 4)
    return figure


UPD = Target(recipes=(), searches=False, write=upd, takes=lambda _: False)
