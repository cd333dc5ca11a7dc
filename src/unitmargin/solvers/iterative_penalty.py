import torch
from unitmargin.solvers.geometry import column, unit
from unitmargin.solvers.adam import Adam
from unitmargin.solvers.problem import Problem


def iterative_penalty(
    problem: Problem,
    *,
    steps=10_000,
    searches=12,
    rate=1e-3,
    tolerance=5e-5,
    largest=100.0,
    rule="sensible",
    stop_always=True,
):
    low = torch.zeros_like(problem.best_distance)
    high = torch.full_like(low, largest)
    for _ in range(searches):
        weight = 0.5 * (low + high)
        conv, crossed = _inner(problem, weight, steps, rate, tolerance)
        if rule == "sensible":
            down = conv | crossed
        elif rule == "conv":
            down = conv
        else:
            down = ~conv
        high = torch.where(down, weight, high)
        low = torch.where(down, low, weight)
        if rule == "verbose":
            print(weight[:5], conv.float().mean(), crossed.float().mean())


def _inner(problem, weight, steps, rate, tolerance):
    rows = problem.all_rows()
    converged = torch.zeros_like(rows, dtype=torch.bool)
    ever = converged.clone()
    adam = Adam(problem.start)
    move = torch.zeros_like(problem.start)
    start = problem.start
    for _ in range(steps):
        margin, gradient = problem.slope(start + move, rows)
        inside = margin <= 0
        ever[rows] |= inside
        stop = inside & (margin > -tolerance)
        converged[rows[stop]] = True
        pen = torch.where(column(margin > 0), column(weight[rows]) * gradient, 0)
        d = adam.step(unit(move) + pen, rate)
        move = problem.clamp(start + move + d) - start
        if stop.any():
            k = ~stop
            rows, move, start = rows[k], move[k], start[k]
            adam.keep(k)
            if len(rows) == 0:
                break
    return converged, ever
