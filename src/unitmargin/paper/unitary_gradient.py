"""The figure of gradient norms: all pairs of five classes, random inputs, each of our heads."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from unitmargin.auditing.gradients import pair_gradient_norms
from unitmargin.heads import UPD_HEADS
from unitmargin.models import UGNN
from unitmargin.paper.canvas import panels
from unitmargin.paper.layout import Table
from unitmargin.paper.target import Output, Target
from unitmargin.reporting.drawing import CLASS_COLOURS, INK, MUTED, TEXT_SIZE
from unitmargin.runs.folder import RunFolder

CLASSES = 5
SAMPLES = 512
IN_SHAPE = (3, 32, 32)
SEED = 0

BINS = 31
PANEL = 130.0
"""Side of one of the small panels, in points."""

TABLE_HEADER = ("Head", "Dtype", "Pairs x samples", "Largest error", "Mean norm - 1")

CAPTION = (
    "Norms ||∇(f_i - f_j)|| of a UGNN with 5 classes at 512 inputs with standard normal entries: "
    "their deviation from 1, by pair of classes and head. The network is as initialised, 3 x 32 x "
    "32, MaxMin; the property is that of the architecture and needs no training."
)


def unitary_gradient(runs: Sequence[RunFolder]) -> Output:
    """``fig:distplot_unitary_grad`` and its numbers; no run is needed."""
    norms = {
        (head, dtype): gradient_norms(head, dtype)
        for head in UPD_HEADS
        for dtype in (torch.float32, torch.float64)
    }
    rows = [
        (
            head,
            str(dtype).removeprefix("torch."),
            str(values.numel()),
            f"{float((values - 1.0).abs().max()):.1e}",
            f"{float((values - 1.0).mean()):+.1e}",
        )
        for (head, dtype), values in norms.items()
    ]
    table = Table("tab:unitary-gradient", CAPTION, TABLE_HEADER, [rows], TABLE_HEADER[2:])
    drawn = {head: norms[head, torch.float32] for head in UPD_HEADS}
    return Output([table], {"distplot-unitary-grad": (norm_figure(drawn), CAPTION)})


def gradient_norms(head: str, dtype: torch.dtype) -> Float[Tensor, "batch pairs"]:
    """Norms for all pairs at the random inputs."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)
        model = UGNN(IN_SHAPE, CLASSES, head=head).to(dtype)
    inputs = torch.randn(SAMPLES, *IN_SHAPE, generator=torch.Generator().manual_seed(SEED))
    return pair_gradient_norms(model, inputs.to(dtype))


def norm_figure(norms: dict[str, Float[Tensor, "batch pairs"]]) -> Figure:
    """The paper's triangle of histograms: the panel in row i, column j shows the pair i, j."""
    figure, axes = panels(CLASSES, CLASSES, PANEL, PANEL)
    end = 1.05 * max(float((values - 1.0).abs().max()) for values in norms.values())
    for panel in axes:
        panel.set_axis_off()
    first, second = torch.triu_indices(CLASSES, CLASSES, offset=1)
    for column, (i, j) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        panel = axes[i * CLASSES + j]
        panel.set_axis_on()
        for number, (head, values) in enumerate(norms.items()):
            panel.hist(
                (values[:, column] - 1.0).numpy(), bins=BINS, range=(-end, end), histtype="step",
                color=CLASS_COLOURS[number], label=head, linewidth=1.2,
            )  # fmt: skip
        panel.set_title(f"f{i} - f{j}", color=INK, fontsize=TEXT_SIZE - 2)
        panel.set_yticks([])
        panel.set_xticks([-end, 0.0, end], [f"{-end:.0e}", "0", f"{end:.0e}"], color=MUTED)
    handles, names = axes[1].get_legend_handles_labels()
    figure.legend(handles, names, loc="lower left", frameon=False, labelcolor=INK)
    return figure


UNITARY_GRADIENT = Target(recipes=(), searches=False, write=unitary_gradient, takes=lambda _: False)
