"""Training that leaves the random generators of the process alone."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

_SEEDS = ("PL_GLOBAL_SEED", "PL_SEED_WORKERS")  # where Lightning keeps the seed for other processes


@contextmanager
def generators_kept() -> Iterator[None]:
    """Restore the random generators of the process, and Lightning's seeds, on exit."""
    python, legacy, tensors = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    noted = {name: os.environ.get(name) for name in _SEEDS}
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002
        torch.set_rng_state(tensors)
        for name, value in noted.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
