"""Run: a whole recipe, from data to report."""

from unitmargin.runs.folder import RunFolder
from unitmargin.runs.recipe import Recipe
from unitmargin.steps.certify import certify_run
from unitmargin.steps.freeze import freeze_run
from unitmargin.steps.report import report_run
from unitmargin.steps.train import train_recipe
from unitmargin.steps.verify import verify_run


def run_recipe(
    recipe: Recipe,
    folder: RunFolder,
    device: str = "cpu",
    minutes: float | None = None,
    log: str | None = None,
) -> bool:
    """Train, freeze, certify, verify and report; whether no promise was broken.

    The message of each verb is printed as it ends. Of many processes the first goes on after the
    training, and the others are done.
    """
    if not train_recipe(recipe, folder, device, minutes, log):
        return True
    print(freeze_run(folder))
    print(certify_run(folder))
    message, passed = verify_run(folder)
    print(message)
    print(report_run(folder))
    return passed
