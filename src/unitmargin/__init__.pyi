from .auditing.audit import audit as audit
from .certificates.accuracy import certified_accuracy as certified_accuracy
from .certificates.certify import Certificate as Certificate
from .certificates.certify import certify as certify
from .certificates.closest import ClosestAdversarial as ClosestAdversarial
from .certificates.closest import closest_adversarial as closest_adversarial
from .data import load_dataset as load_dataset
from .deployment import certifying_network as certifying_network
from .deployment import export_onnx as export_onnx
from .frozen import FrozenNetwork as FrozenNetwork
from .frozen import load as load
from .frozen import save as save
from .guard import Answer as Answer
from .guard import Guard as Guard
from .models import UGNN as UGNN
from .models import DenseUGNN as DenseUGNN
from .models import MixingUGNN as MixingUGNN
from .models import build_model as build_model
from .models.freezing import freeze as freeze
from .solvers import MapResult as MapResult
from .solvers import minimal_perturbation as minimal_perturbation
from .steps.calls import report as report
from .steps.calls import verify as verify
from .training.optimizers import build_optimizer as build_optimizer
from .training.optimizers import build_optimizers as build_optimizers
from .training.train import train as train

__version__: str
