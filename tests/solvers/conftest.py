"""Small networks run fastest on one thread, above all where the machine has other work."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    """One thread for the tests of this folder."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
