"""
A table
=======

Features of 400 (made up) hikes, and in which order people named what they remember: from a table to orders
with how sure they are.
"""

# %%
# What you need is one row of features per instance and one order per row. The last 100 rows are kept for the
# test.
from pathlib import Path

import pandas as pd

from gaussianmlr import GaussianMLR
from gaussianmlr.plots import GaussianDisplay

folder = Path(__file__).parent if "__file__" in globals() else Path.cwd()
hikes = pd.read_csv(folder / "hikes.csv", keep_default_na=False)  # "" = no label applies
orders = hikes.pop("ranking").tolist()
labels = ["mountain", "sea", "sky", "snow"]
hikes.head(4).assign(order=orders[:4])

# %%
# `GaussianMLR` is a scikit-learn estimator. By default it compares networks with boosted trees on held-out
# rows, and keeps what is better there.
ranker = GaussianMLR(labels=labels, random_state=0).fit(hikes[:300], orders[:300])
print(ranker.chosen_["kind"], "-", ranker.chosen_["why"].replace("; ", ";\n"))
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
GaussianDisplay.from_predictions(prediction, 0).plot()
