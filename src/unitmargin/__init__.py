"""Classifiers whose logit margin is the distance to the decision boundary.

Train, freeze, certify every prediction with one forward pass, attack the certificates, deploy.
The source is the paper "Robust-by-Design Classification via Unitary-Gradient Neural Networks"
(Brau, Rossolini, Biondi, Buttazzo, AAAI 2023, arXiv 2209.04293).

Public names stand in ``__init__.pyi``, and are imported on first use: ``unitmargin --help`` does
not wait for torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
