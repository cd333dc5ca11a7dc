import torch
from unitmargin.solvers.geometry import column, norm, unit
from unitmargin.solvers.rays import walk_out
from unitmargin.solvers.problem import Problem


def deepfool(problem: Problem, *, steps=50, n_candidates=10, overshoot=0.02, extra=1e-4):
    rows = problem.all_rows()
    classes = problem.rivals()[:, :n_candidates]
    move = torch.zeros_like(problem.start)
    for _ in range(steps):
        start = problem.start[rows]
        points = problem.clamp(start + (1 + overshoot) * move)
        margins, gradients = problem.pair_slopes(points, rows, classes)
        crossed = margins.min(1).values <= -problem.tolerance[rows]
        k = ~crossed
        rows, move, classes, margins, gradients = (
            rows[k],
            move[k],
            classes[k],
            margins[k],
            gradients[k],
        )
        if len(rows) == 0:
            return
        lengths = torch.linalg.vector_norm(gradients, dim=2)
        d = torch.where(lengths > 0, margins.abs() / lengths, torch.inf)
        nearest = d.argmin(1, keepdim=True)
        g = gradients.gather(1, nearest[..., None].expand(-1, -1, move.shape[1])).squeeze(1)
        move = move - (d.gather(1, nearest) + extra / lengths.gather(1, nearest)).nan_to_num(
            0, 0, 0
        ) * unit(g)
    walk_out(problem, rows, unit(move), norm(move))
