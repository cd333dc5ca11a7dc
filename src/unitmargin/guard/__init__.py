"""A shipped network at run time: answers with a label and a radius, or a reason for none.

It imports NumPy and the standard library, onnxruntime where an exported file is opened, and torch
where a model file is.
"""

from unitmargin.guard.answer import OUTCOMES, Answer
from unitmargin.guard.guard import Guard
from unitmargin.guard.onnx_model import Claims, OnnxModel
from unitmargin.guard.opening import Model

__all__ = ["OUTCOMES", "Answer", "Claims", "Guard", "Model", "OnnxModel", "onnx_model"]
