import torch
from unitmargin.solvers.geometry import column, inner, linear_distance, norm, unit
from unitmargin.solvers.problem import Problem


def alma(
    problem: Problem,
    *,
    steps=100,
    first_step=0.2,
    last_step=0.01,
    smoothing=0.9,
    growth=1.2,
    check=10,
    mu0=1.0,
    rho0=1.0,
    second=None,
):
    rows = problem.all_rows()
    x = problem.start
    move = torch.zeros_like(x)
    mu = torch.full_like(x[:, :1], mu0)
    rho = torch.full_like(mu, rho0)
    momentum = torch.zeros_like(x)
    square = torch.zeros_like(mu)
    second = second or smoothing
    seen = torch.zeros_like(mu, dtype=torch.bool)
    for step in range(steps):
        margin, gradient = problem.slope(x + move, rows)
        if step == 0:
            scale = linear_distance(margin, gradient)
            unit_margin = column(margin)
            reference = torch.ones_like(mu)
        y = column(margin) / unit_margin  # 1 at x, 0 on the boundary
        seen |= y <= 0
        mu_hat = penalty_slope(y, mu, rho)
        mu = (smoothing * mu + (1 - smoothing) * mu_hat).clamp(1e-6, 1e12) if step else mu_hat
        if step % check == check - 1:
            rho = torch.where(~seen & (y > 0.95 * reference), growth * rho, rho)
            reference = y
            seen = torch.zeros_like(seen)
        total = 2 * move / scale + penalty_slope(y, mu, rho) * gradient * scale / unit_margin
        square = second * square + (1 - second) * norm(total).square()
        momentum = smoothing * momentum + (1 - smoothing) * total / (
            square / (1 - second ** (step + 1))
        ).sqrt().clamp_min(1e-30)
        rate = first_step * (last_step / first_step) ** (step / max(steps - 1, 1))
        move = problem.clamp(x + move - rate * scale * momentum) - x


def penalty_slope(y, mu, rho):
    return torch.where(
        y > 0, mu + 2 * mu * rho * y + 0.5 * rho**2 * y**2, mu / (1 - rho * y.clamp_max(0)) ** 2
    )
