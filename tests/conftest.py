"""Settings for all tests."""

import os

# Two workers with two threads each would wait for each other's cores; child processes inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

collect_ignore = ["chaos"]  # `make chaos` runs it: minutes, not seconds

# a busy machine is no failure
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

MACHINE_MNIST = os.environ.get("GAUSSIANMLR_MNIST")


@pytest.fixture
def own_cache(monkeypatch, tmp_path_factory):
    """No MNIST and no cache of the machine that tests run on."""
    monkeypatch.delenv("GAUSSIANMLR_MNIST", raising=False)
    monkeypatch.setenv("GAUSSIANMLR_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def machine_mnist():
    """The folder of full MNIST that the person at this machine names, if any."""
    if not MACHINE_MNIST:
        pytest.skip("set GAUSSIANMLR_MNIST to a folder with full MNIST")
    return MACHINE_MNIST
