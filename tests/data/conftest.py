"""Tests of the data family see no MNIST of the machine they run on, unless they ask for it."""

import os

import pytest

MACHINE_MNIST = os.environ.get("GAUSSIANMLR_MNIST")


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path_factory):
    monkeypatch.delenv("GAUSSIANMLR_MNIST", raising=False)
    monkeypatch.setenv("GAUSSIANMLR_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def machine_mnist():
    """The folder of full MNIST that the person at this machine names, if any."""
    if not MACHINE_MNIST:
        pytest.skip("set GAUSSIANMLR_MNIST to a folder with full MNIST")
    return MACHINE_MNIST
