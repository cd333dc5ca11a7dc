r"""
The signed distance in the plane
================================

A classifier draws a boundary. Of a point one would like to know two things: on which side it
lies, and how far it is from the boundary. A *signed distance classifier* answers both by one
number: the sign of :math:`f_0 - f_1` is the side, and its size is the distance. In the plane all
of that can be seen.

You will train such a network, draw what it computes, compare it with the true distance, and with
an ordinary network.
"""

import matplotlib.pyplot as plt
import torch

import unitmargin as um

# %%
# A network that keeps distances
# ------------------------------
#
# Two half circles, the *moons*, are to be told apart. Every layer of the network below multiplies
# by an orthogonal matrix, which turns and mirrors the plane, and takes absolute values, which
# folds it along the axes. Neither makes anything longer, and away from the creases neither makes
# anything shorter. In formulas, with :math:`J` the derivative of a layer and :math:`W` the last
# matrix,
#
# .. math:: J J^T = I, \qquad \|W_0 - W_1\| = 1 ,
#
# so the gradient of :math:`f_0 - f_1` has length 1 nearly everywhere, as a distance has. Many
# folds of the plane are needed for a bent boundary, hence twenty layers of width two. They begin
# in random places: with zero biases all creases would meet in one point.

moons = um.load_dataset("moons")
torch.manual_seed(3)
model = um.DenseUGNN(
    in_shape=(2,), n_classes=2, activation="abs", linear="manifold", hidden=(2,) * 20
)
with torch.no_grad():
    for name, parameter in model.named_parameters():
        if name.startswith("features") and name.endswith("bias"):
            parameter.uniform_(-0.5, 0.5)

# %%
# Training asks for a margin. ``offset`` says how large, in the units of the plane;
# ``temperature`` how much a larger one still pays. The matrices move on the set of orthogonal
# ones, so what was said of the gradient holds in every step.

um.train(
    model,
    moons.train,
    moons.test,
    epochs=40,
    batch_size=64,
    learning_rate=0.02,
    offset=0.1,
    temperature=0.03,
    quiet=True,
)
frozen = um.freeze(model, torch.float64)
x, labels = moons.test.batch(slice(None))
x = x.double()
certificate = um.certify(frozen, x)
accuracy = float((certificate.label == labels).double().mean())
print(f"{accuracy:.1%} of {len(x)} test points are right")

# %%
# What the network computes
# -------------------------
#
# Below are level lines of :math:`f_0 - f_1`. They are parallel, and one step of colour is always
# as wide as the next one: the number is a length. Around three points the circle of the certified
# radius is drawn. No point inside it has another label, and it comes from one evaluation at its
# centre.

axis = torch.linspace(-1.5, 1.5, 201, dtype=torch.float64)
grid = torch.cartesian_prod(axis, axis)


def draw(axes, logits, title):
    """Level lines of the difference of two logits, the boundary, and the test points."""
    signed = (logits[:, 0] - logits[:, 1]).reshape(201, 201).T
    largest = float(signed.abs().max())
    levels = torch.linspace(-largest, largest, 25).tolist()
    axes.contourf(axis, axis, signed, levels=levels, cmap="RdBu_r")
    axes.contour(axis, axis, signed, levels=[0.0], colors="black", linewidths=2)
    axes.scatter(
        *x[:200].T, c=labels[:200], cmap="coolwarm_r", s=14, edgecolors="white", linewidths=0.6
    )
    axes.set(title=title, aspect="equal", xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), xticks=[], yticks=[])


figure, axes = plt.subplots(figsize=(6, 6), layout="constrained")
draw(axes, frozen(grid), "Colour is a length: the circles touch the boundary at most")
for k in (3, 17, 30):
    axes.add_patch(
        plt.Circle(x[k], float(certificate.radius[k]), fill=False, linestyle="--", linewidth=1.5)
    )
    axes.plot(*x[k], "ko", markersize=4)
plt.show()

# %%
# Is it the distance?
# -------------------
#
# The certificate is a lower bound: nothing nearer has another label. Here the truth can be looked
# up. A fine grid of points gives the boundary, and the nearest point of it with another label
# gives the distance, up to the grid's width.

fine = torch.linspace(-2.0, 2.0, 801, dtype=torch.float64)
points = torch.cartesian_prod(fine, fine)
side = um.certify(frozen, points, domain="any").label
distance = torch.stack(
    [
        torch.linalg.vector_norm(points[side != own] - p, dim=1).min()
        for p, own in zip(x[:100], certificate.label[:100], strict=True)
    ]
)
ratio = certificate.radius[:100] / distance
print(f"radius / distance: {ratio.median():.3f} in the median")
print(f"smallest {ratio.min():.3f}, largest {ratio.max():.3f}")

# %%
# The ratio is never above 1. It is 1 where the way to the boundary crosses no crease, and below
# it where one lies between: the network is a distance piece by piece, and a distance *to a bent
# line* cannot be smooth everywhere. That is why it is measured, and not just claimed.
#
# The closest point in closed form
# --------------------------------
#
# A distance knows the way, too. From :math:`x` the closest point of the boundary is
#
# .. math:: x^* = x - (f_l - f_s) \, \nabla (f_l - f_s) ,
#
# one gradient, no search. ``um.closest_adversarial`` computes it and tells how much margin was
# left there; a solver, which searches and needs dozens of gradients, agrees where nothing is
# left.

chosen = x[labels == certificate.label][:100]
own = um.certify(frozen, chosen)
nearest = um.closest_adversarial(frozen, chosen)
exact = nearest.remaining.abs() < 1e-6
searched = um.minimal_perturbation(frozen, chosen, own.label)
apart = (own.radius[exact] / searched.distance[exact] - 1).abs().max()
print(f"closed form exact for {int(exact.sum())} of {len(chosen)} points")
print(f"there radius and searched distance differ by {apart:.1e} at most")

# %%
# An ordinary network
# -------------------
#
# Its margin has no unit. The network below, of ReLU layers, is as right on the test points, and
# its logits grow as fast as they like: a margin of 20 says nothing of a distance, and level lines
# crowd at the boundary.

torch.manual_seed(0)
ordinary = torch.nn.Sequential(
    torch.nn.Linear(2, 32),
    torch.nn.ReLU(),
    torch.nn.Linear(32, 32),
    torch.nn.ReLU(),
    torch.nn.Linear(32, 2),
)
optimizer = torch.optim.Adam(ordinary.parameters(), 1e-2)
inputs, targets = moons.train.batch(slice(None))
for _ in range(300):
    loss = torch.nn.functional.cross_entropy(ordinary(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
ordinary.double()
with torch.no_grad():
    logits = ordinary(x)
    drawn = ordinary(grid)
ordinary_accuracy = float((logits.argmax(1) == labels).double().mean())
margins = logits.topk(2).values.diff().abs().squeeze(1)
found = um.minimal_perturbation(ordinary, x[:100], logits[:100].argmax(1)).distance
units = margins[:100] / found
print(
    f"{ordinary_accuracy:.1%} right; margin / distance from {units.min():.0f} to {units.max():.0f}"
)

figure, axes = plt.subplots(figsize=(6, 6), layout="constrained")
draw(axes, drawn, "An ordinary network: colour is no length")
plt.show()

# %%
# To try
# ------
#
# - Raise ``offset`` to 0.3, or ``temperature`` to 0.3. What becomes of accuracy, and of the
#   radii?
# - Take 5 layers in the place of 20. Where does the boundary go wrong?
# - Replace ``x`` by ``10 * x``. What has to become of the radii, and why is ``domain="any"``
#   needed?
#
# Why unit gradients make distances stands in :doc:`/theory`; why the radii hold in floating
# point, in :doc:`/soundness`.
