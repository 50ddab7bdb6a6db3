"""Long attacks on the whole product, with counts: kills, fuzzed files, hostile traffic, full disks.

`make chaos` runs all of them; `python -m chaos NAME ...` (with `tests` on the path) runs some. Every random
choice follows from the seed, so a failing case can be run alone: `python -m chaos images --case 123`.
"""
