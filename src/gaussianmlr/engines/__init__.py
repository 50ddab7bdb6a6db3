"""Where independent jobs run: in this process, or on the machines of a Ray cluster."""

from gaussianmlr.engines.cluster import LOCAL
from gaussianmlr.engines.jobs import Engine, Tell, run
from gaussianmlr.engines.scikit import joblib_on_ray

__all__ = ["LOCAL", "Engine", "Tell", "joblib_on_ray", "run"]
