"""Run: a whole recipe, from data to report."""

from unitmargin.runs.folder import RunFolder
from unitmargin.runs.recipe import Recipe
from unitmargin.steps.certify import certify_run
from unitmargin.steps.freeze import freeze_run
from unitmargin.steps.report import report_run
from unitmargin.steps.train import train_run
from unitmargin.steps.verify import verify_run
from unitmargin.training.processes import join_processes, leave_processes


def run_recipe(
    recipe: Recipe,
    folder: RunFolder,
    device: str = "cpu",
    minutes: float | None = None,
    log: str | None = None,
) -> bool:
    """Train, freeze, certify, verify and report; whether no promise was broken.

    The message of each verb is printed as it ends. Of many processes the first freezes and reports,
    and all train, certify and search.
    """
    processes, _ = join_processes(device)
    processes.say(train_run(recipe, folder, device, minutes, log))
    if processes.first:
        print(freeze_run(folder))
    processes.wait()
    processes.say(certify_run(folder))
    message, passed = verify_run(folder)
    processes.say(message)
    if processes.first:
        print(report_run(folder))
    leave_processes()
    return passed
