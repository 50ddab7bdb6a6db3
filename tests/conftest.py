"""Settings for all tests."""

import os

# Two workers with two threads each would wait for each other's cores; child processes inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from hypothesis import settings

# a busy machine is no failure
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
