r"""
From photos to a guarded service
================================

A folder of photos becomes a network, the network a file, the file a service that answers over
HTTP: with a label, and a radius within which it stands, or with a reason for giving none.

The photos are drawn by the program, so that nothing has to be fetched; yours are in folders of
the same layout.
"""

import io
import json
import tempfile
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFilter, ImageOps

import unitmargin as um

# %%
# Photos in folders
# -----------------
#
# Three kinds of leaves on all kinds of ground, in other sizes and places, under another light
# each time: ``CLASS/IMAGE``, which is all that the library asks for.

folder = Path(tempfile.mkdtemp())
generator = np.random.default_rng(0)
CLASSES = ("lobed", "narrow", "round")


def photo(kind):
    """A blurred leaf of one kind on a noisy ground, of 90 to 120 by 90 to 120 pixels."""
    width, height = (int(side) for side in generator.integers(90, 121, 2))
    ground = generator.normal(generator.uniform(40, 160), 40, (height, width, 3))
    image = Image.fromarray(ground.clip(0, 255).astype(np.uint8)).filter(
        ImageFilter.GaussianBlur(2)
    )
    angle = np.linspace(0, 2 * np.pi, 120)
    length = 0.7 + generator.uniform(0.1, 0.3) * np.cos(5 * angle) if kind == "lobed" else 0.8
    width_of_leaf = generator.uniform(0.3, 0.75) if kind == "narrow" else 1.0
    shape = np.stack([length * np.cos(angle), length * np.sin(angle) * width_of_leaf])
    turn = generator.uniform(0, np.pi)
    turned = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]) @ shape
    middle = np.array([width, height])[:, None] * generator.uniform(0.47, 0.53, (2, 1))
    outline = (middle + generator.uniform(32, 40) * turned).T.ravel().tolist()
    green = (generator.uniform(0.5, 1.0) * np.array([60, 150, 40])).astype(int)
    ImageDraw.Draw(image).polygon(outline, fill=tuple(green.tolist()))
    return image.filter(ImageFilter.GaussianBlur(1))


for kind in CLASSES:
    (folder / "leaves" / kind).mkdir(parents=True)
    for number in range(150):
        photo(kind).save(folder / "leaves" / kind / f"{number}.png")

figure, axes = plt.subplots(1, 6, figsize=(9, 1.9), layout="constrained")
for place, panel in enumerate(axes):
    panel.imshow(Image.open(folder / "leaves" / CLASSES[place // 2] / f"{place}.png"))
    panel.set(title=CLASSES[place // 2], xticks=[], yticks=[])
plt.show()

# %%
# A network
# ---------
#
# ``resize=16`` cuts the middle square out of each photo and makes it 16 x 16 pixels: radii will
# be lengths of *these* pixels, in [0, 1]. A fifth of each class is kept for the test, drawn by
# the contents of the photos.

photos = um.load_dataset("images", folder / "leaves", resize=16, cache=folder / "cache")
torch.manual_seed(0)
model = um.MixingUGNN(photos.in_shape, len(photos.classes))
um.train(
    model, photos.train, photos.test, epochs=20, batch_size=64, learning_rate=5e-3,
    flip=True, crop=1, offset=0.3, temperature=0.2, quiet=True,
)  # fmt: skip
frozen = um.freeze(model, classes=photos.classes)
x, labels = photos.test.batch(slice(None))
certificate = um.certify(frozen, x)
for radius in (0.0, 0.141, 0.5):
    share = um.certified_accuracy(certificate, labels, radius)
    print(f"right, and certified at {radius}: {share:.1%} of {len(x)} photos")

# %%
# Which threshold?
# ----------------
#
# A service that has to be right more than it has to answer rejects what lies near the boundary.
# The picture shows what a threshold costs, in answers, and what it gains, in accuracy of the
# answers. Here it is the smallest one in steps of 0.02 at which 97 % of the accepted test photos
# are right. That accepted answers stand within it is proved; the 97 % are a measurement on these
# few photos.

thresholds = torch.arange(0.0, 1.0, 0.02).tolist()
right = certificate.label == labels
accepted = [certificate.radius > threshold for threshold in thresholds]
coverage = [float(one.double().mean()) for one in accepted]
accuracy = [float(right[one].double().mean()) if one.any() else 1.0 for one in accepted]
chosen = next(t for t, a in zip(thresholds, accuracy, strict=True) if a >= 0.97)

figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
axes.plot(thresholds, coverage, color="#0b5394", label="accepted")
axes.plot(thresholds, accuracy, color="#b45309", label="right among the accepted")
axes.axvline(chosen, color="black", linestyle="--", label=f"chosen: {chosen:.2f}")
axes.set(
    xlabel="threshold of the radius",
    ylabel="share",
    title="A higher threshold: fewer answers, better ones",
)
axes.legend()
plt.show()

# %%
# A file
# ------
#
# One ONNX file holds network *and* certificate. Whoever runs it needs onnxruntime and NumPy, and
# neither torch nor this library, though a guard, which checks the input and counts, is a part of
# it.

um.export_onnx(frozen, folder / "leaves.onnx")
guard = um.Guard(folder / "leaves.onnx", reject_below=chosen)
print(f"{(folder / 'leaves.onnx').stat().st_size / 1e6:.1f} MB, classes {guard.model.classes}")

# %%
# A service
# ---------
#
# The service decodes a photo, cuts and scales it as the training did, and asks the guard. What
# the guard rejects has no label: there is nothing that a caller could take for an answer.
# (Certificates begin behind the scaling; a changed photo is another input.)


def prepared(image):
    """The input that the training would have made of a photo of 8 bits without transparency."""
    upright = ImageOps.exif_transpose(image).convert("RGB")
    side = min(upright.size)
    left, top = ((length - side) // 2 for length in upright.size)
    middle = left, top, left + side, top + side
    pixels = np.asarray(upright.resize((16, 16), Image.Resampling.BILINEAR, box=middle))
    return (pixels.transpose(2, 0, 1) / 255).astype(np.float32)


class Service(BaseHTTPRequestHandler):
    """Answers a posted photo with a line of JSON."""

    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        answer = guard(prepared(Image.open(io.BytesIO(data))))
        said = {"name": answer.name, "radius": answer.radius, "reason": answer.reason}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(said).encode())

    def log_message(self, *arguments):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=server.serve_forever, daemon=True).start()


def ask(image):
    """What the service says of a photo."""
    data = io.BytesIO()
    image.save(data, "png")
    address = f"http://127.0.0.1:{server.server_port}"
    with urllib.request.urlopen(address, data.getvalue()) as reply:
        return json.load(reply)


for kind in CLASSES:
    print(kind, ask(photo(kind)))

# %%
# **And what is no leaf at all?** Noise gets a label, and often a good radius: the label of that
# noise is stable, and means nothing. A radius says nothing of inputs that are unlike all photos
# of the training (:doc:`/limitations`).

noise = Image.fromarray(generator.integers(0, 256, (100, 100, 3), dtype=np.uint8))
print("noise", ask(noise))

# %%
# Attacked
# --------
#
# An attacker who may change pixels looks for the closest input with another answer. The
# certificate said how far that is at least, before anybody had searched. And just beyond the
# boundary the radius is small, so the changed input is not answered. For a wrong answer an attacker
# has to go further, to where the radius of the other label exceeds the threshold.

own = int((certificate.radius * right).argmax())
one = x[own : own + 1]
attack = um.minimal_perturbation(frozen, one, certificate.label[own : own + 1], box=(0.0, 1.0))
changed = attack.point[0].float()
found_at = float(attack.distance[0])
print(f"certified radius {float(certificate.radius[own])}, another label at {found_at:.3f}")
print("before:", guard(x[own]).name, "- after:", guard(changed).reason)

figure, axes = plt.subplots(1, 3, figsize=(7, 2.7), layout="constrained")
difference = changed - x[own]
for panel, picture, title in zip(
    axes, (x[own], changed, 0.5 + difference / difference.abs().max() / 2),
    ("answered", "not answered", "difference, amplified"), strict=True,
):  # fmt: skip
    panel.imshow(picture.permute(1, 2, 0).clamp(0, 1).numpy())
    panel.set(title=title, xticks=[], yticks=[])
plt.show()

# %%
# What it did
# -----------

server.shutdown()
server.server_close()
print(guard.counters)

# %%
# ``guard.export_metrics()`` gives the same counts to Prometheus: :doc:`/monitoring`.
#
# To try
# ------
#
# - Post a leaf of blue colour. The network has never seen one; what does it say, and what does
#   its radius say? (:doc:`/limitations`)
# - ``resize=8``, ``resize=32``: what becomes of accuracy, and may radii be compared?
# - The same without Python: ``unitmargin init leaves``, ``run``, ``export``, and the program in
#   C++ of :doc:`/project/other-languages`.
