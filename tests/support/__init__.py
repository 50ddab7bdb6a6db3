"""What tests share: oracles, real processes, small data."""
