"""Family: the verbs of the walk, in order: train, freeze, certify, verify, report.

Each reads what came before from the run folder, writes its own files, and can be run again.
"""
