"""A table as people keep it: texts, words for yes and no, dates, gaps, an empty column and free text."""

import numpy as np
import pandas as pd

LABELS = ("a", "b", "c")
USED = ["age", "city", "wet", "day"]


def messy_table(rows=300, seed=0):
    """A frame whose orders follow from city, age, wet and the half of the year."""
    rng = np.random.default_rng(seed)
    city = rng.choice(["Rome", "Oslo", "Bern", "Kyiv"], rows, p=[0.4, 0.3, 0.2, 0.1])
    age, wet = rng.normal(40, 10, rows), rng.choice(["yes", "no"], rows)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, rows), "D")
    heights = [
        (city == "Rome") * 2.0 + (wet == "yes"),
        (age - 40) / 10,
        (city == "Oslo") * 2 - 1 + (day.month > 6),
    ]
    heights = np.stack(heights, 1) + rng.normal(0, 0.3, (rows, 3))
    orders = [" > ".join(LABELS[place] for place in np.argsort(-row) if row[place] > 0) for row in heights]
    frame = pd.DataFrame({"id": [f"r{row}" for row in range(rows)], "age": age, "city": city, "wet": wet})
    frame = frame.assign(
        day=day.strftime("%Y-%m-%d"), note=[f"text {row}" for row in range(rows)], nothing=None
    )
    frame["ranking"] = orders
    frame["split"] = np.where(np.arange(rows) < 0.8 * rows, "train", "test")
    frame.loc[rng.choice(rows, rows // 10, replace=False), "age"] = np.nan
    frame.loc[rng.choice(rows, rows // 10, replace=False), "city"] = None
    return frame
