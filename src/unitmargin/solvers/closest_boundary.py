import torch
from unitmargin.solvers.geometry import column, ray_point, norm
from unitmargin.solvers.problem import Problem

LADDER = tuple(2.0 ** (k / 1) for k in range(-3, 6))


def closest_boundary(problem, *, bisections=17, ladder=LADDER):
    rows = problem.all_rows()
    others = problem.rivals()
    margins, gradients = problem.pair_slopes(problem.start, rows, others)
    n = others.shape[1]
    rows = rows.repeat_interleave(n)
    search_rays(
        problem,
        rows,
        others.flatten(),
        margins.flatten(),
        gradients.flatten(0, 1),
        bisections,
        ladder,
    )


def fast_outer_boundary(problem, *, bisections=17, ladder=LADDER):
    rows = problem.all_rows()
    margin, gradient = problem.slope(problem.start, rows)
    search_rays(problem, rows, None, margin, gradient, bisections, ladder)


def search_rays(problem, rows, classes, margins, gradients, bisections, ladder):
    length = norm(gradients)
    direction = torch.where(length > 0, -gradients / length, 0)
    guess = torch.where(length > 0, column(margins) / length, 0)
    floor = column(
        problem.lower_bound()[rows] if classes is None else problem.lower_bounds[rows, classes]
    )
    low, high = floor.clone(), torch.full_like(guess, torch.inf)
    pend = (guess > 0).squeeze(1).nonzero().squeeze(1)

    def ev(idx, radius):
        p = ray_point(problem.start[rows[idx]], direction[idx], radius, problem.box)
        return problem.margin(p, rows[idx], None if classes is None else classes[idx])

    for t in ladder:
        r = torch.maximum(floor, t * guess)[pend]
        if len(pend) == 0:
            break
        neg = ev(pend, r) < 0
        high[pend[neg]] = r[neg]
        low[pend[~neg]] = r[~neg]
        pend = pend[~neg]
    for _ in range(bisections):
        best = torch.full_like(problem.best_distance, torch.inf).scatter_reduce(
            0, rows, high.squeeze(1), "amin"
        )
        act = (
            (torch.isfinite(high) & (low < column(best[rows])) & (high - low > 1e-7 * high))
            .squeeze(1)
            .nonzero()
            .squeeze(1)
        )
        if len(act) == 0:
            break
        mid = 0.5 * (low[act] + high[act])
        neg = ev(act, mid) < 0
        high[act[neg]] = mid[neg]
        low[act[~neg]] = mid[~neg]
