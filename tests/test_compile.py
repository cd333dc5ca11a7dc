"""Whole models are one graph for ``torch.compile``: no step depends on the data.

In a process of its own, since the run-time checks of shapes in tests cannot be traced.
"""

import subprocess
import sys

SCRIPT = """
import torch
from unitmargin.models import build_model

for conv, linear in (("manifold", "manifold"), ("cayley", "bjorck")):
    model = build_model("ugnn", (1, 16, 16), 3, conv=conv, linear=linear)
    x = torch.rand(4, 1, 16, 16)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")(x)
    torch.testing.assert_close(compiled, model(x), rtol=0, atol=1e-5)
    compiled.sum().backward()
    print("one graph")
"""


def test_forward_and_backward_are_one_graph() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.stdout.split("\n")[:-1] == ["one graph"] * 2, done.stderr
