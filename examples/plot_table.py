"""
A table
=======

Features of 400 hikes, and in which order people named what they remember of each: from a table to orders
with how sure they are.
"""

# %%
# What you need is one row of features per instance and one order per row. Here both are made up; the last 100
# rows are kept for the test.
import numpy as np
import pandas as pd

from gaussianmlr import GaussianMLR, to_text

rng = np.random.default_rng(0)
hikes = pd.DataFrame(
    {
        "altitude": rng.uniform(0, 3000, 400).round(),
        "distance to the sea": rng.uniform(0, 200, 400).round(1),
        "clouds": rng.uniform(0, 1, 400).round(2),
        "month": rng.integers(1, 13, 400),
    }
)
labels = ["mountain", "sea", "sky", "snow"]
remembered = np.column_stack(
    [
        hikes["altitude"] / 1000 - 1,
        1 - hikes["distance to the sea"] / 40,
        1 - 1.5 * hikes["clouds"],
        hikes["altitude"] / 1500 - 1 - 0.3 * np.abs(6.5 - abs(hikes["month"] - 6.5)) + 0.4,
    ]
)
remembered += 0.2 * rng.normal(size=remembered.shape)
ranks = np.where(remembered > 0, remembered.argsort(1).argsort(1) + 1, 0)
orders = to_text(ranks, labels)
pd.DataFrame({**hikes.head(4), "order": orders[:4]})

# %%
# `GaussianMLR` is a scikit-learn estimator. By default it compares networks with boosted trees on held-out
# rows, and keeps what is better there.
ranker = GaussianMLR(labels=labels, random_state=0).fit(hikes[:300], orders[:300])
print(ranker.chosen_)
print("tau-b on unseen rows:", round(ranker.score(hikes[300:], orders[300:]), 3))

# %%
# A prediction holds orders, probabilities and what is certain.
prediction = ranker.predict_full(hikes[300:])
pd.DataFrame(
    {
        "true": orders[300:305],
        "predicted": prediction.orders[:5],
        "sure at 90 %": prediction.partial_text(0.9)[:5],
        "P(snow applies)": prediction.p_relevant[:5, labels.index("snow")].round(2),
    }
)

# %%
# Each curve is the significance of a label. Labels left of zero do not apply, and the further two curves are
# apart, the surer is their order.
from gaussianmlr.plots import GaussianDisplay

GaussianDisplay.from_predictions(prediction, 0).plot()
