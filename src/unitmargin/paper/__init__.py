"""Family: the paper's tables and figures, measured again, with the printed numbers beside ours.

A new target is one file with a :class:`Target` and one line here; the printed numbers stand in
``paper.toml`` under the label of the paper's source.
"""

from unitmargin.paper.accuracy import ACCURACY, INPUT_SIZE
from unitmargin.paper.layout import Table
from unitmargin.paper.networks import own_row
from unitmargin.paper.robust_accuracy import ROBUST_ACCURACY
from unitmargin.paper.target import Output, Target, write_output
from unitmargin.paper.tightness import TIGHTNESS
from unitmargin.paper.toy_example import TOY_EXAMPLE
from unitmargin.paper.unitary_gradient import UNITARY_GRADIENT
from unitmargin.paper.upd import UPD

__all__ = ["TARGETS", "Output", "Table", "Target", "own_row", "write_output"]

TARGETS: dict[str, Target] = {
    "accuracy": ACCURACY,
    "input-size": INPUT_SIZE,
    "tightness": TIGHTNESS,
    "robust-accuracy": ROBUST_ACCURACY,
    "unitary-gradient": UNITARY_GRADIENT,
    "upd": UPD,
    "toy-example": TOY_EXAMPLE,
}
