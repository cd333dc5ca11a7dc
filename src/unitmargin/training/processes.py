"""Many processes: who am I, what is my share of a batch. One process needs none of it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

PATIENCE = timedelta(days=1)
"""How long a process waits for the others, of which one may decode images or freeze the network: if
one ends, the launcher ends all."""

Part = TypeVar("Part")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Processes:
    """The group of training processes as one of them sees it."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this process prints and writes files."""
        return self.rank == 0

    def share(self, index: Int[Tensor, " batch"]) -> Int[Tensor, " share"]:
        """This process's samples of a global batch; all of it if there is not one for each."""
        return index if len(index) < self.count else index[self.rank :: self.count]

    def weight(self, batch: int, share: int) -> float:
        """Factor on the mean loss of a share that makes the average over processes the mean."""
        return 1.0 if batch < self.count else share * self.count / batch

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model with gradients averaged over all processes."""
        return model if self.count == 1 else DistributedDataParallel(model)

    def agree(self, model: nn.Module) -> None:
        """Give the model the weights that it has in the first process."""
        for value in model.state_dict().values() if self.count > 1 else ():
            dist.broadcast(value, 0)

    def average(self, value: Tensor) -> float:
        """Mean of a number over all processes."""
        if self.count > 1:
            dist.all_reduce(value)
        return float(value) / self.count

    def total(self, number: float, device: torch.device) -> float:
        """Sum of a number over all processes, which is sent from their own devices."""
        return self.average(torch.tensor(number, dtype=torch.float64, device=device)) * self.count

    def say(self, message: str) -> None:
        """Print in the first process alone."""
        if self.first:
            print(message)

    def own(self, parts: Sequence[Part]) -> Sequence[Part]:
        """This process's parts of some work that is done part by part."""
        return parts[self.rank :: self.count]

    def does(self, part: int) -> bool:
        """Whether a part, by its number, is this process's own."""
        return part % self.count == self.rank

    def gather(self, answers: list[Answer]) -> list[Answer]:
        """The answers of all processes to their own parts, in the order of the parts, in each."""
        if self.count == 1:
            return answers
        every: list[list[Answer]] = [[] for _ in range(self.count)]
        dist.all_gather_object(every, answers)
        total = sum(map(len, every))
        return [every[place % self.count][place // self.count] for place in range(total)]

    def wait(self) -> None:
        """Return when all processes have come here."""
        if self.count > 1:
            dist.barrier()


def join_processes(device: str | torch.device) -> tuple[Processes, torch.device]:
    """Join the group that ``torchrun`` describes in the environment, if any.

    Returns the group and this process's own device: ``cuda`` becomes one GPU a process. The
    backend is nccl on CUDA and gloo elsewhere.

    Raises:
        ValueError: a device that does not exist here.
    """
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if several and str(device) == "cuda":  # before it is tried, which takes memory on it
        device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    chosen = require_device(device)
    if not several:
        return Processes(), chosen
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    if not dist.is_initialized():
        dist.init_process_group("nccl" if chosen.type == "cuda" else "gloo", timeout=PATIENCE)
    return joined_processes(), chosen


def joined_processes() -> Processes:
    """The group that this process has joined; alone it is one of one."""
    joined = dist.is_available() and dist.is_initialized()
    return Processes(dist.get_rank(), dist.get_world_size()) if joined else Processes()


def require_device(device: str | torch.device) -> torch.device:
    """The device, or a ValueError if nothing can be computed on it, a TypeError if it is none."""
    if not isinstance(device, str | torch.device):
        raise TypeError(f"device must be a str or a torch.device, got {device!r}; use 'cpu'")
    try:
        chosen = torch.device(device)
        torch.ones(1, device=chosen).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0][:200]
        raise ValueError(
            f"device must be one that torch can use here, got {str(device)!r}; use cpu ({reason})"
        ) from None
    return chosen


def leave_processes() -> bool:
    """Leave the group, so that the process can end in peace; whether it was the first."""
    if not dist.is_initialized():
        return True
    first = dist.get_rank() == 0
    dist.destroy_process_group()
    return first


def print_last(message: str) -> None:
    """Leave the group, and print in its first process alone."""
    if leave_processes():
        print(message)
