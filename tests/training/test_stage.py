"""The parts of a stage: averaged weights."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from gaussianmlr.training.stage import moving_average


@pytest.mark.parametrize("decay", [0.5, 0.99])
def test_the_average_of_weights_forgets_where_they_began(decay):
    """Against the shares of all past weights, multiplied out."""
    values = np.random.default_rng(0).normal(size=60)
    network = nn.BatchNorm1d(1)
    average = AveragedModel(network, multi_avg_fn=moving_average(decay), use_buffers=True)
    for number, value in enumerate(values):
        with torch.no_grad():
            network.weight.fill_(value)
            network.num_batches_tracked.fill_(number)
        average.update_parameters(network)
    kept = np.array([min(decay, (1 + n) / (10 + n)) for n in range(1, 60)])
    shares = [np.prod(kept[n:]) * (1.0 if n == 0 else 1 - kept[n - 1]) for n in range(60)]
    assert sum(shares) == pytest.approx(1)
    assert shares[0] < 1e-9
    assert average.module.weight.item() == pytest.approx(np.dot(shares, values), rel=1e-5)
    assert average.module.num_batches_tracked.item() == 59
