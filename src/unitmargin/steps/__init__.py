"""Family: the verbs, one file each, in order from init, train and freeze to report and export.

Those of the walk read what came before from the run folder, write their own files, and can be run
again. Above them stand run and reproduce, which compose them, and calls, which are for Python.
"""
