"""What the measurements of the solvers say: one row each, Markdown tables, one picture."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from unitmargin.solvers import Status

BELOW = 1.0 - 1e-9
"""A distance below this share of the certified radius breaks the certificate."""

BEST = "best known"
"""Name of the row that holds the minimum over all solvers, sample by sample."""

FLOOR = 1e-5
"""Excess below which the picture does not look: the resolution of the outside attacks."""

OUTSIDE = ("foolbox", "adversarial-library")
"""First words of the rows of outside attacks, drawn hollow."""

MARKERS = "o^sDv<>"


@dataclass(frozen=True)
class Measurement:
    """What one solver found for the first samples of a case."""

    network: str
    box: bool
    solver: str
    commit: str
    distance: Tensor
    status: Tensor
    n_forward: Tensor
    n_backward: Tensor
    seconds: float


@dataclass(frozen=True)
class Row:
    """The figures of one solver; those of a certificate are 0 where there is none.

    ``ratio`` is mean distance over mean best known distance, ``sample_ratio`` the mean over the
    samples of the ratio of both, ``worst_ratio`` its maximum, over the samples found;
    ``bound_ratio`` is the mean of certified radius / distance (the paper's LB/MAP).
    """

    network: str
    box: bool
    solver: str
    samples: int
    success: float
    mean_distance: float
    ratio: float
    sample_ratio: float
    worst_ratio: float
    bound_ratio: float
    smallest_bound_ratio: float
    below_certificate: int
    n_forward: float
    n_backward: float
    seconds: float
    commit: str


def best_known(measurements: Sequence[Measurement], count: int) -> Tensor:
    """The minimum over all solvers; a solver that saw fewer samples counts for those it saw."""
    best = torch.full((count,), torch.inf, dtype=torch.float64)
    for one in measurements:
        seen = len(one.distance)
        best[:seen] = torch.minimum(best[:seen], one.distance)
    return best


def rows(measurements: Sequence[Measurement], radius: Tensor) -> list[Row]:
    """One row a solver and one for the best known distance, on one network and box."""
    best = best_known(measurements, len(radius))
    nothing = torch.zeros_like(best)
    found = torch.where(torch.isfinite(best), int(Status.FOUND), int(Status.FAILED))
    first = measurements[0]
    ideal = Measurement(
        first.network, first.box, BEST, first.commit, best, found, nothing, nothing, 0.0
    )
    return [row(one, best, radius) for one in (*measurements, ideal)]


def row(one: Measurement, best: Tensor, radius: Tensor) -> Row:
    """The figures of one solver."""
    hit = one.status == Status.FOUND
    best, radius = best[: len(hit)], radius[: len(hit)]
    ratio, bound = (one.distance / best)[hit], (radius / one.distance)[hit]
    return Row(
        network=one.network,
        box=one.box,
        solver=one.solver,
        samples=len(hit),
        success=float(hit.double().mean()),
        mean_distance=float(one.distance[hit].mean()),
        ratio=float(one.distance[hit].mean() / best[hit].mean()),
        sample_ratio=float(ratio.mean()),
        worst_ratio=max(ratio.tolist(), default=math.nan),
        bound_ratio=float(bound.mean()),
        smallest_bound_ratio=min(bound.tolist(), default=math.nan),
        below_certificate=int((one.distance < BELOW * radius).sum()),
        n_forward=float(one.n_forward.double().mean()),
        n_backward=float(one.n_backward.double().mean()),
        seconds=one.seconds,
        commit=one.commit,
    )


def markdown(table: Sequence[Row]) -> str:
    """One table for each network, without and with the box."""
    parts = []
    for network, box in dict.fromkeys((one.network, one.box) for one in table):
        chosen = [one for one in table if (one.network, one.box) == (network, box)]
        parts.append(f"### {network}, {'box [0, 1]' if box else 'no box'}\n")
        parts.append(
            "| solver | samples | found, % | mean distance | / best known | per sample | worst |"
            " LB/MAP | below LB | forward | backward | s |\n|---|" + "---:|" * 11
        )
        parts += [line(one) for one in sorted(chosen, key=lambda one: one.ratio)]
        parts.append("")
    return "\n".join(parts)


def line(one: Row) -> str:
    ratios = f"{one.ratio:.4f} | {one.sample_ratio:.4f} | {one.worst_ratio:.3f}"
    calls = f"{one.n_forward:.0f} | {one.n_backward:.0f} | {one.seconds:.1f}"
    return (
        f"| {one.solver} | {one.samples} | {100 * one.success:.1f} | {one.mean_distance:.4f} | "
        f"{ratios} | {one.bound_ratio:.3f} | {one.below_certificate} | {calls} |"
    )


def draw(table: Sequence[Row], path: Path) -> None:
    """Backward calls a sample against the mean distance over the best known, without the box."""
    from matplotlib.figure import Figure

    free = [one for one in table if not one.box and one.solver != BEST and one.success == 1.0]
    networks = list(dict.fromkeys(one.network for one in free))
    figure = Figure(figsize=(4.6 * len(networks), 4.4), layout="constrained")
    panels = figure.subplots(1, len(networks), sharey=True, squeeze=False)[0]
    families = list(dict.fromkeys(family(one.solver) for one in free))
    for panel, network in zip(panels, networks, strict=True):
        for index, name in enumerate(families):
            chosen = [one for one in free if (one.network, family(one.solver)) == (network, name)]
            chosen.sort(key=lambda one: one.n_backward)
            tracing, outside = name.startswith("sphere"), name.startswith(OUTSIDE)
            panel.plot(
                [one.n_backward for one in chosen],
                [max(one.ratio - 1.0, FLOOR) for one in chosen],
                marker=MARKERS[index % len(MARKERS)],
                color="#1c2733" if tracing else f"C{index % 10}",
                markerfacecolor="none" if outside else None,
                markersize=7 if tracing else 6,
                linewidth=1.8 if tracing else 0.9,
                label=name,
            )
        panel.set(xscale="log", yscale="log", title=network, xlabel="gradient calls a sample")
        panel.grid(color="#e3e7ec")
    panels[0].set_ylabel("mean distance above the best known, relative")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)


def family(solver: str) -> str:
    """Rows that differ in their budget only are one line of the picture."""
    return " ".join(word for word in solver.split() if word != "x" and not word.isdigit())
