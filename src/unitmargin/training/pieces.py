"""A batch in pieces, one after another: less memory, and the same bits whoever computes them."""

from collections.abc import Callable
from itertools import accumulate, pairwise

import torch
import torch.distributed as dist
from jaxtyping import Float, Int
from torch import Tensor, nn

from unitmargin.training.processes import Processes
from unitmargin.training.share import Share

Backward = Callable[[Tensor, Tensor, float], Tensor]
"""Adds the gradient of the mean loss of inputs and labels, times a factor, to the parameters, and
returns that number."""


class Pieces:
    """The pieces of every batch: fixed slices of it, whose gradients are added in their order.

    Processes take pieces in turns, and each sends what it has computed to the others, so that all
    of them add the same numbers in the same order.
    Guarantee: gradient and loss are equal to the last bit in any number of processes, on machines
    of one kind with one number of threads each.
    Cost: every process sends a gradient for each of its pieces, and holds three at a time. Weights
    that are computed from parameters are computed for every piece.

    Args:
        count: of the pieces of a batch; one of fewer samples has a piece a sample.
        model: what is trained, on its device; all processes get the weights of the first one.

    Raises:
        ValueError: fewer pieces than processes.
    """

    def __init__(self, count: int, processes: Processes, model: nn.Module) -> None:
        require_pieces(count, processes)
        self.count, self.processes = count, processes
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        types = {parameter.dtype for parameter in self.parameters}
        self.dtype = torch.float64 if torch.float64 in types else torch.float32
        processes.agree(model)

    def sizes(self, batch: int) -> list[int]:
        """Samples of each piece; the first ones have one more where they cannot be equal.

        Example:
            >>> Pieces(4, Processes(), torch.nn.Linear(1, 1)).sizes(10)
            [3, 3, 2, 2]
        """
        pieces = max(1, min(self.count, batch))
        return [batch // pieces + (number < batch % pieces) for number in range(pieces)]

    def positions(self, batch: int) -> Int[Tensor, " share"]:
        """Where in the batch this process's samples stand, piece after piece."""
        ends = list(accumulate(self.sizes(batch), initial=0))
        own = self.processes.own([torch.arange(*bounds) for bounds in pairwise(ends)])
        return torch.cat([torch.arange(0), *own])

    def differentiate(self, share: Share, backward: Backward) -> Float[Tensor, ""]:
        """The mean loss of a batch, whose gradient is left in the parameters."""
        sizes, processes = self.sizes(share.batch), self.processes
        own = list(processes.own(sizes))
        pieces = iter(zip(share.inputs.split(own), share.labels.split(own), strict=True))
        total: Tensor | None = None
        for first in range(0, len(sizes), processes.count):
            numbers = range(len(sizes))[first : first + processes.count]
            # Before the others' gradients are waited for, so that all compute at once.
            mine = None
            if (number := first + processes.rank) in numbers:
                factor = sizes[number] / max(1, share.batch)
                mine = self._gradient(*next(pieces), factor, backward)
            for number in numbers:
                gradient = self._sent(mine, number)
                total = gradient if total is None else total.add_(gradient)
        assert total is not None  # a batch has a piece at least
        self._keep(total)
        return total[-1]

    def _gradient(
        self, inputs: Tensor, labels: Tensor, factor: float, backward: Backward
    ) -> Float[Tensor, " n"]:
        """The gradient of a piece in one row, its loss behind it."""
        self._forget()
        # Copies begin where memory is aligned: in which order a product adds may depend on that.
        loss = backward(inputs.clone(), labels.clone(), factor)
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        self._forget()
        return torch.cat([part.flatten().to(self.dtype) for part in (*gradients, loss)])

    def _forget(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    def _sent(self, mine: Tensor | None, number: int) -> Float[Tensor, " n"]:
        """The gradient of a piece, from the process that has computed it to all others."""
        owner = number % self.processes.count
        if mine is not None and owner == self.processes.rank:
            row = mine
        else:
            length = 1 + sum(parameter.numel() for parameter in self.parameters)
            row = torch.empty(length, dtype=self.dtype, device=self.parameters[0].device)
        if self.processes.count > 1:
            dist.broadcast(row, owner)
        return row

    def _keep(self, row: Float[Tensor, " n"]) -> None:
        """Give each parameter its part of a gradient in one row."""
        parts = row[:-1].split([parameter.numel() for parameter in self.parameters])
        for parameter, part in zip(self.parameters, parts, strict=True):
            # A copy, for memory that is aligned.
            parameter.grad = part.view_as(parameter).to(parameter.dtype, copy=True)


def require_pieces(count: int, processes: Processes, streamed: bool = False) -> None:
    """Raise unless pieces can be dealt to processes; of shards each takes as many as another.

    Raises:
        ValueError: fewer pieces than processes, or of shards no multiple.
    """
    ranks = processes.count
    if 1 < count < ranks:
        raise ValueError(
            f"pieces must be 1, or at least the number of processes, {ranks}, got {count}; use "
            f"{ranks}, or fewer processes"
        )
    if streamed and count > 1 and count % ranks:
        raise ValueError(
            f"pieces must be 1, or a multiple of the number of processes, {ranks}, where shards "
            f"are streamed, got {count}; use {count + -count % ranks}"
        )
