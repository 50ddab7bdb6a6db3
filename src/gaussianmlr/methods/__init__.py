"""Methods of multi-label ranking, by name.

=========  =====================================================  ===========
name       what it learns                                         supervision
=========  =====================================================  ===========
`gmlr`     Gaussian significances (the paper's method)            strong, weak
`lsep`     scores by log-sum-exp of pairs, then thresholds        strong, weak
`crpc`     one comparison a pair of labels, votes                 strong, weak
`ranknet`  scores by logistic pairs and a zero label              strong, weak
`zlpr`     scores by log-sum-exp of pairs with a zero label       strong, weak
`pl`       scores by Plackett-Luce with a virtual label           strong, weak
`br`       scores by one logistic classifier a label              weak
=========  =====================================================  ===========
"""

from gaussianmlr.methods.base import Method, Output, Outputs, Reading, Stage, available, make, register
from gaussianmlr.methods.crpc import Crpc
from gaussianmlr.methods.gmlr import Gmlr
from gaussianmlr.methods.lsep import Lsep
from gaussianmlr.methods.rivals import BinaryRelevance, PlackettLuce, RankNet, Zlpr
from gaussianmlr.methods.stages import begin_stage

__all__ = [
    "BinaryRelevance",
    "Crpc",
    "Gmlr",
    "Lsep",
    "Method",
    "Output",
    "Outputs",
    "PlackettLuce",
    "RankNet",
    "Reading",
    "Stage",
    "Zlpr",
    "available",
    "begin_stage",
    "make",
    "register",
]
