import torch
from unitmargin.solvers.geometry import column, cosine_decay, linear_distance, norm, unit
from unitmargin.solvers.problem import Problem, pair_margins, select

def ddn(problem: Problem, *, loss="cross_entropy", steps=100, temperature=1.0, decay=0.05, first_step=None, last_step=.01):
    rows = problem.all_rows()
    x = problem.start
    if loss == "margin":
        def objective(logits, rows): return select(pair_margins(logits, problem.labels[rows]), None)
    else:
        def objective(logits, rows): return -torch.nn.functional.cross_entropy(temperature * logits, problem.labels[rows], reduction="none")
    move = torch.zeros_like(x)
    radius = torch.ones_like(x[:, :1])
    scale = torch.ones_like(radius)
    for step in range(steps):
        margin, _, gradient = problem.descend(x + move, rows, objective)
        if step == 0 and loss == "margin":
            radius = torch.maximum(column(problem.lower_bound()), linear_distance(margin, gradient))
            scale = radius
        else:
            crossed = column(margin <= -problem.tolerance)
            radius = radius * torch.where(crossed, 1 - decay, 1 + decay) if step else radius
        fs = first_step or (1.0 if loss == "cross_entropy" else 0.4)
        move = move - scale * cosine_decay(fs, last_step*fs, step / max(steps - 1, 1)) * unit(gradient)
        move = radius * unit(move)
        move = problem.clamp(x + move) - x
