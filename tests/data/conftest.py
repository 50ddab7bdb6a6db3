"""Tests of the data family see no MNIST of the machine they run on, unless they ask for it."""

import pytest


@pytest.fixture(autouse=True)
def _own_cache(own_cache):
    pass
