"""What is certified: a batch of a frozen network's inputs, within its domain unless told else."""

from torch import Tensor

from unitmargin.foundation.choice import require_choice
from unitmargin.foundation.numbers import as_tensor
from unitmargin.frozen import FrozenNetwork, require_frozen

DOMAINS = ("model", "any")
"""Where inputs may lie: in the domain that the model file states, or anywhere."""


def require_inputs(frozen: FrozenNetwork, x: object, domain: str) -> Tensor:
    """``x`` as a tensor; raises unless it is a batch that the network was made for.

    Entries that are NaN or infinite lie in every domain: nothing is claimed of their samples.

    Raises:
        TypeError: a model that is not frozen, or what is no tensor, array or data frame.
        ValueError: another type, shape or device than the network takes, or finite entries outside
            of the domain.
    """
    require_frozen(frozen)
    require_choice("domain", domain, DOMAINS)
    inputs = as_tensor("x", x)
    frozen.require_input(inputs)
    if domain == "model":
        frozen.require_domain(inputs)
    return inputs
