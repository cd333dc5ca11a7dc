import torch
from unitmargin.solvers.geometry import column, cosine_decay, linear_distance, norm, unit
from unitmargin.solvers.problem import Problem


def fmn(
    problem: Problem,
    *,
    steps=100,
    first_decay=0.05,
    last_decay=1e-4,
    first_step=1.0,
    last_step=0.01,
    overshoot=1e-2,
):
    rows = problem.all_rows()
    x = problem.start
    move = torch.zeros_like(x)
    for step in range(steps):
        done = step / max(steps - 1, 1)
        margin, gradient = problem.slope(x + move, rows)
        linear = linear_distance(margin, gradient)
        if step == 0:
            scale = linear
        best = column(problem.best_distance)
        decay = cosine_decay(first_decay, last_decay, done)
        crossed = column(margin <= -problem.tolerance)
        length = norm(move)
        outside = torch.where(
            torch.isinf(best),
            (length + linear) * (1 + overshoot),
            eps * (1 + decay) if step else length,
        )
        inside = torch.minimum(eps, best) * (1 - decay) if step else length
        eps = torch.where(crossed, inside, outside)
        move = move - scale * cosine_decay(first_step, last_step, done) * unit(gradient)
        length = norm(move)
        move = torch.where(length > eps, eps * unit(move), move)
        move = problem.clamp(x + move) - x
