r"""
A table, a scaler and units
===========================

A row of a table has columns in grams, percent and hours. A radius is *one* length over all of
them, so before anything can be certified somebody has to say how long a gram is. That is what
scalers do, mostly unnoticed.

You will certify a classifier of wines, read its radii in standard deviations, then in units of a
laboratory, and ship it with a guard that takes rows as they are.
"""

import csv
import math
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_wine

import unitmargin as um
from unitmargin.data import TableOptions

# %%
# The table
# ---------
#
# 178 wines, 13 measured columns, three cultivars. It lies in a file, as yours does.

folder = Path(tempfile.mkdtemp())
wine = load_wine()
with open(folder / "wine.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow([*wine.feature_names, "cultivar"])
    for row, kind in zip(wine.data, wine.target, strict=True):
        writer.writerow([*row, f"cultivar {kind}"])

for name, column in zip(wine.feature_names, wine.data.T, strict=True):
    print(f"{name:30} {column.min():8.2f} to {column.max():8.2f}, deviation {column.std():7.3f}")

# %%
# Proline reaches from 278 to 1680, the hue from 0.48 to 1.71. Taken as they are, a difference of
# 1 in the hue, nearly all that there is, would be as long as one of 1 mg of proline, which nobody
# can measure.
#
# Standard deviations
# -------------------
#
# ``scale="features"`` makes :math:`(x - m) / s` of each column, with mean and deviation of the
# *training* rows. The network sees these numbers, so a radius is a length of these: 1 is one
# standard deviation of one column, or half of one in each of four.


def trained(scale, **units):
    """A frozen network on the wines under a scale, and the data as it sees them."""
    options = TableOptions(label="cultivar", scale=scale, test_share=0.3, **units)
    data = um.load_dataset("table", folder / "wine.csv", table=options)
    torch.manual_seed(0)
    model = um.DenseUGNN(data.in_shape, len(data.classes), linear="manifold", hidden=(12, 12, 12))
    um.train(
        model,
        data.train,
        data.test,
        epochs=60,
        batch_size=32,
        offset=1.0,
        temperature=0.5,
        quiet=True,
    )
    frozen = um.freeze(model, classes=data.classes)
    frozen.facts["encoding"] = data.encoding.model_dump(exclude_none=True)
    return frozen, data


frozen, data = trained("features")
x, labels = data.test.batch(slice(None))
certificate = um.certify(frozen, x)
for radius in (0.0, 0.5, 1.0, 2.0):
    share = um.certified_accuracy(certificate, labels, radius)
    print(f"right, and certified at {radius} standard deviations: {share:.1%} of {len(x)} wines")

# %%
# The last lines put the columns' shifts and units into the facts of the network. ``unitmargin
# run`` does so by itself; in Python it is one line, and the file can then be used by somebody who
# has never seen the training table.
#
# One wine, read in its own units
# -------------------------------
#
# A ball in scaled numbers is an ellipsoid in the columns' units. The radius says by how much a
# column may move *alone*: radius times its deviation. If several move, the squares of their
# shares add up to at most 1.


def down(length):
    """A length with three decimals, rounded down: a longer one is not certified."""
    return f"{math.floor(1000 * length) / 1000:.3f}"


chosen = int(certificate.radius.argsort()[len(x) // 2])
radius = float(certificate.radius[chosen])
columns = data.encoding.columns
bands = {c.name: radius * c.unit for c in columns}
print(f"radius {down(radius)} standard deviations; alone may move")
for name, band in bands.items():
    print(f"  {name:30} by {down(band):>8}")

figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
low, high = wine.data.min(0), wine.data.max(0)
own = (
    x[chosen].double().numpy() * [c.unit for c in columns] + [c.shift for c in columns] - low
) / (high - low)
half = [band / width for band, width in zip(bands.values(), high - low, strict=True)]
axes.errorbar(own, range(13), xerr=half, fmt="o", color="#0b5394", capsize=3)
axes.set(
    yticks=range(13),
    yticklabels=list(bands),
    xlabel="from the smallest to the largest value of all wines",
    title="How far one measurement of this wine may be wrong",
)
axes.invert_yaxis()
plt.show()

# %%
# **The mistake to avoid.** The closest wine of another cultivar that a gradient finds lies just
# outside the ball, and its distance is right in scaled numbers alone. Measured over raw columns,
# milligrams added to percents, it is another number, larger or smaller as the columns please, and
# means nothing.

nearest = um.closest_adversarial(frozen, x[chosen : chosen + 1])
scaled = nearest.flipped_point - x[chosen : chosen + 1]
raw = scaled * torch.tensor([c.unit for c in columns])
print(f"scaled distance {scaled.norm():.3f}, at least the radius {down(radius)}")
print(f"'distance' over raw columns {raw.norm():.3f}")

# %%
# Units that mean something
# -------------------------
#
# Standard deviations say how wines differ, not how wrong a measurement may be. Suppose that the
# laboratory states for each method how far two measurements of one wine lie apart. These are
# lengths that can be compared: ``scale="units"`` divides each column by its own, and a radius of
# 1 is *one* such error in one column.

repeatability = {
    "alcohol": 0.1, "malic_acid": 0.1, "ash": 0.05, "alcalinity_of_ash": 0.8, "magnesium": 4.0,
    "total_phenols": 0.15, "flavanoids": 0.15, "nonflavanoid_phenols": 0.03,
    "proanthocyanins": 0.12, "color_intensity": 0.3, "hue": 0.04,
    "od280/od315_of_diluted_wines": 0.12, "proline": 35.0,
}  # fmt: skip
measured, lab = trained("units", units=repeatability)
inputs, kinds = lab.test.batch(slice(None))
errors = um.certify(measured, inputs)
for radius in (0.0, 1.0, 3.0):
    share = um.certified_accuracy(errors, kinds, radius)
    print(f"right, and certified at {radius} errors: {share:.1%}")

# %%
# Thirteen measurements that are each wrong by one such error are a move of length
# :math:`\sqrt{13} = 3.6`. So 3.6 is the epsilon at which nothing that the laboratory may do by
# chance alters the answer. That is how an epsilon is chosen: from what happens to inputs, not
# from a table of results.

epsilon = len(repeatability) ** 0.5
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained", sharey=True)
for axes, found, truth, unit in (
    (left, certificate, labels, "standard deviations"),
    (right, errors, kinds, "errors of measurement"),
):
    radii = torch.linspace(0, 1.1 * float(found.radius.max()), 200).tolist()
    shares = [100 * um.certified_accuracy(found, truth, radius) for radius in radii]
    axes.plot(radii, shares, color="#0b5394")
    axes.set(xlabel=f"radius in {unit}", ylim=(0, 103))
left.set(ylabel="right and certified, %", title="One scale ...")
right.axvline(epsilon, color="#b45309", linestyle="--")
right.set(title="... and one that measures errors")
plt.show()
print(f"at {epsilon:.2f} errors: {um.certified_accuracy(errors, kinds, epsilon):.1%}")

# %%
# Shipped
# -------
#
# The file states columns, shifts and units, so a guard takes a row of the laboratory as it comes,
# in any order, with text for numbers. It answers if the radius is above epsilon, and says why not
# otherwise.

um.save(measured, folder / "wine.safetensors")
guard = um.Guard(folder / "wine.safetensors", reject_below=epsilon)
with open(folder / "wine.csv", newline="") as file:
    rows = list(csv.DictReader(file))
answers = guard(rows[:1] + rows[70:71] + [rows[0] | {"proline": ""}])
for answer in answers:
    print(answer.name, down(answer.radius), answer.reason)
print({outcome: count for outcome, count in guard.counters.items() if count})

# %%
# To try
# ------
#
# - ``scale="none"``: what becomes of accuracy, and in which unit are radii?
# - Halve the unit of proline. Does the radius of a wine halve? Why not?
# - Add a column of words (``scale`` knows them): how long is a change of a word?
#
# All of it by three commands, and the rules of columns: :doc:`/your-tables`. The same behind a
# ``StandardScaler``: :doc:`/estimator`.
