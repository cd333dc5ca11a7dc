"""experimental"""
import math
import torch
from unitmargin.solvers.geometry import column, inner, norm, ray_point, ray_reach, unit
from unitmargin.solvers.problem import Problem


def sphere_tracing(problem: Problem, *, steps=30, n_candidates=1, first_turn=0.3, last_turn=0.01,
                   momentum=0.0, overall=True, newton=False, kkt=True, first_over=1e-3, last_over=1e-7,cap=1e-5, stop=0.0, decay="cos") -> None:
    rows = problem.all_rows()
    rivals = problem.rivals()
    for rank in range(min(n_candidates, problem.n_classes - 1)):
        cls = rivals[:, rank]
        keep = problem.lower_bounds[rows, cls] < problem.best_distance
        trace(problem, rows[keep], None if (overall and rank == 0) else cls[keep], steps, first_turn, last_turn, momentum, newton, kkt, first_over, last_over, cap, stop, decay)


def trace(problem, rows, classes, steps, first_turn, last_turn, momentum, newton, kkt, first_over, last_over, cap, stop, decay):
    box = problem.box
    start = problem.start[rows]
    M, g = problem.slope(start, rows, classes)
    u = unit(-g)
    gn = norm(g)
    lb = problem.lower_bounds[rows, classes] if classes is not None else problem.lower_bound()[rows]
    r = torch.maximum(column(lb), torch.where(gn > 0, column(M) / gn, 0))
    vel = torch.zeros_like(u)
    for k in range(steps - 1):
        f = k / max(steps - 2, 1)
        if decay == "cos":
            a = last_turn + (first_turn - last_turn) * 0.5 * (1 + math.cos(math.pi * f))
        else:
            a = first_turn * (last_turn / first_turn) ** f
        over = first_over + (last_over - first_over) * f
        p = ray_point(start, u, r, box)
        M, g = problem.slope(p, rows, classes)
        gn = norm(g)
        h = unit(-g)
        if box is not None and not kkt:
            blocked = ((p <= box[0]) & (h < 0)) | ((p >= box[1]) & (h > 0))
            h = unit(torch.where(blocked, 0, h))
        if newton:
            if box is None:
                slope = -inner(g, u)
                slope = torch.where(slope > 0.3 * gn, slope, gn)
                step = column(M) / slope
                r = r + torch.where(gn > 0, step, 0)
            else:
                free = (p > box[0]) & (p < box[1])
                uf = torch.where(free, u, 0)
                slope = -inner(g, uf)
                full = gn*norm(uf)
                slope = torch.where(slope > 0.3 * full, slope, full)
                d = norm(p - start)
                dt = column(M) / slope
                # dr/dt = t |uf|^2 / r
                t = ray_reach(start, u, r, box)
                r = d + torch.where(slope > 0, dt * t * norm(uf)**2 / d, 0)
        else:
            r = r + torch.where(gn > 0, column(M) / gn, 0)
        t_ = h - inner(h, u) * u
        vel = momentum * vel + (1 - momentum) * t_
        u = unit(u + a * vel)
        r = r * (1 + over)
        r = torch.minimum(r, column(problem.best_distance[rows]) * (1 - cap))
        r = r.clamp_min(column(lb))
