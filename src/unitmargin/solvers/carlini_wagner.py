import torch
from unitmargin.solvers.adam import Adam
from unitmargin.solvers.geometry import column
from unitmargin.solvers.problem import Problem


def carlini_wagner(
    problem: Problem, *, steps=1000, searches=9, rate=0.01, first_weight=1e-3, patience=10
):
    low = torch.zeros_like(problem.best_distance)
    high = torch.full_like(low, torch.inf)
    weight = torch.full_like(low, first_weight)
    for _ in range(searches):
        feas = _descend(problem, weight, steps, rate, patience)
        high = torch.where(feas, weight, high)
        low = torch.where(feas, low, weight)
        weight = torch.where(torch.isinf(high), 10 * low, 0.5 * (low + high))


def _descend(problem, weight, steps, rate, patience):
    rows = problem.all_rows()
    feas = torch.zeros_like(rows, dtype=torch.bool)
    box = problem.box
    if box is not None:
        mid, half = 0.5 * (box[0] + box[1]), 0.5 * (box[1] - box[0])
        w0 = torch.atanh((problem.start - mid) / half * 0.999999)

        def place(w):
            return mid + half * torch.tanh(w)

        def chain(w):
            return half * (1 - torch.tanh(w) ** 2)

        x = place(w0)
    else:
        w0 = problem.start
        x = w0

        def place(w):
            return w

        def chain(w):
            return 1.0

    w = w0.clone()
    adam = Adam(w)
    reference = torch.full_like(weight, torch.inf)
    for step in range(steps):
        p = place(w)
        margin, gradient = problem.slope(p, rows)
        feas[rows[margin <= -problem.tolerance[rows]]] = True
        d = p - x
        loss = d.square().sum(1) + weight[rows] * margin.clamp_min(0)
        g = (2 * d + torch.where(column(margin > 0), column(weight[rows]) * gradient, 0)) * chain(w)
        w = w + adam.step(g, rate)
        if step % max(steps // patience, 1) == max(steps // patience, 1) - 1:
            k = loss < 0.9999 * reference
            reference = loss[k]
            rows, w, x = rows[k], w[k], x[k]
            adam.keep(k)
            if len(rows) == 0:
                break
    return feas
