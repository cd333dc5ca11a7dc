import torch
from unitmargin.solvers.geometry import linear_distance, unit
from unitmargin.solvers.problem import Problem
from unitmargin.solvers.rays import walk_out


def closed_form(problem):
    rows = problem.all_rows()
    classes = problem.rivals()[:, 0]
    margin, gradient = problem.slope(problem.start, rows, classes)
    walk_out(problem, rows, -unit(gradient), linear_distance(margin, gradient))
