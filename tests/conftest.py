"""Settings for all tests."""

from hypothesis import settings

# a busy machine is no failure
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
