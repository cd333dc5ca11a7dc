"""Where and with what a network was made."""

import platform
import subprocess
from pathlib import Path

import torch


def hardware() -> str:
    """Processor with the instructions that torch uses, threads and accelerator, in a few words."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    name = next(models, platform.processor() or platform.machine())
    threads = torch.get_num_threads()
    instructions = torch.backends.cpu.get_cpu_capability()
    words = f"{name} with {instructions}, {threads} thread{'s' if threads > 1 else ''}"
    return f"{words}, {torch.cuda.get_device_name()}" if torch.cuda.is_available() else words


def commit() -> str:
    """Short hash of the source tree's commit; empty if the package is not in a repository."""
    file = Path(__file__)
    git = ["git", "-C", str(file.parent)]
    # An installed package may lie inside somebody else's repository without belonging to it.
    commands = (["ls-files", "--error-unmatch", file.name], ["rev-parse", "--short", "HEAD"])
    try:
        for command in commands:
            done = subprocess.run([*git, *command], capture_output=True, text=True, check=True)
        return done.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def provenance(products: str = "") -> dict[str, str]:
    """Where and with what a network was trained, and the type of its products; kept with its
    weights."""
    words = f"{hardware()}, products in {products}" if products else hardware()
    return {"hardware": words, "torch": str(torch.__version__), "commit": commit()}
