"""A process that reads files from others within 5 seconds and 500 MB: see test_hostile_files.py.

It reads the paths of run folders, one a line, and answers each with a line of JSON.
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unitmargin import certify
from unitmargin.checker import CheckError, check
from unitmargin.checker.network import Network
from unitmargin.checker.reading import read_model
from unitmargin.foundation.failures import describe
from unitmargin.frozen import ModelFileError, load
from unitmargin.runs.certificates import read_certificates
from unitmargin.runs.folder import RunFolder

SPACE = 500 * 2**20
"""Bytes that reading may take beyond what the process has when it begins."""


def outcome(read: Callable[[], Any], refusal: type[Exception]) -> tuple[str, Any]:
    """ "taken", "refused" or what was raised instead, and the result."""
    begun = time.process_time()
    word, result = "taken", None
    try:
        result = read()
    except refusal as error:
        text = str(error)
        told = describe(error) if refusal is not ModelFileError else text
        word = "refused" if told and "\n" not in told and len(told) <= 1200 else f"bare: {error!r}"
        if "\n" in text and refusal is not Exception:
            word = f"several lines: {text!r}"
        if "memory" in text.lower():
            word = f"memory: {text}"
    except BaseException as error:  # whatever it is, it is what this process looks for
        word = f"bare: {error!r}"
    seconds = time.process_time() - begun
    return (word if seconds < 5.0 else f"{word} after {seconds} s"), result


def judged(folder: RunFolder) -> dict[str, Any]:
    """What loader and checker make of the folder's files, each alone and then together."""
    model, answer = folder.model_file, {}
    answer["load"], frozen = outcome(lambda: load(model), ModelFileError)
    answer["read"], network = outcome(lambda: Network(read_model(model), "float64"), CheckError)
    files = folder.certificates_file, folder.certificate_facts_file, model, folder.inputs_file
    answer["check"], _ = outcome(lambda: check(*files), CheckError)
    table = folder.certificates_file, model, folder.inputs_file
    answer["table"], _ = outcome(lambda: read_certificates(*table), Exception)
    if frozen is not None and network is not None:
        answer["agree"], _ = outcome(lambda: agree(frozen, network, folder), AssertionError)
    return answer


def agree(frozen: Any, network: Network, folder: RunFolder) -> None:
    """Certificates of the library are confirmed by the checker but for their radii, which it may
    prove only in part, and none whose radius was raised is."""
    assert frozen.in_shape == read_model(folder.model_file).in_shape
    x = torch.from_numpy(np.random.default_rng(0).random((3, *frozen.in_shape)))
    made = certify(frozen, x, "float64", domain="any")
    with np.errstate(all="ignore"):
        proof = network.prove(x.numpy(), np.maximum(made.label.numpy(), 0))
    for i in range(len(x)):
        if made.radius[i] > 0:
            assert proof.label[i] == made.label[i], (proof.label, made.label)
            assert abs(proof.margin[i] - float(made.margin[i])) <= proof.tolerance[i], "margin"
            if proof.margin[i] > 1000.0 * proof.tolerance[i]:  # no slack to speak of
                ratio = proof.radius[i] / float(made.radius[i])
                assert 0.99 < ratio < 1.01 or proof.radius[i] == 0.0, ratio


def highest() -> int:
    """The most memory this program has had, in MB; that of ``getrusage`` includes its parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


if __name__ == "__main__":
    torch.set_num_threads(1)
    warm = RunFolder(Path(sys.argv[1]))
    print(json.dumps(judged(warm)), flush=True)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + SPACE, size + SPACE))
    for line in sys.stdin:
        answer = judged(RunFolder(Path(line.strip())))
        answer["MB"] = highest()
        print(json.dumps(answer), flush=True)
