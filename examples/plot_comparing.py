"""
Comparing methods
=================

Is GaussianMLR better than its rivals on your data, or is that noise? Same folds for all, and a paired test.
"""

# %%
# Six labels whose significances depend on ten features; a third of the noise cannot be predicted.
import numpy as np
from sklearn.model_selection import KFold

from gaussianmlr import CalibratedRanker, DummyRanker, GaussianMLR, NeighbourRanker, densify

rng = np.random.default_rng(1)
X = rng.normal(size=(300, 10))
y = densify(np.tanh(X @ rng.normal(size=(10, 6))) * 1.5 + 0.5 * rng.normal(size=(300, 6)))

contenders = {
    "GaussianMLR": GaussianMLR(model="network", n_members=1, random_state=0),
    "calibrated ranking (logistic)": CalibratedRanker(),
    "neighbours": NeighbourRanker(),
    "constant order": DummyRanker(),
}

# %%
# One number per fold and contender: tau-b on rows that were not trained on.
folds = list(KFold(5, shuffle=True, random_state=0).split(X))
scores = {
    name: np.array([one.fit(X[train], y[train]).score(X[test], y[test]) for train, test in folds])
    for name, one in contenders.items()
}
for name, values in scores.items():
    print(f"{name}: tau-b {100 * values.mean():.1f} ± {100 * values.std(ddof=1):.1f} over folds")

# %%
# Folds share training rows, so a plain t-test is too sure; the correction of Nadeau and Bengio (2003) is not.
# On the command line, `gmlr compare table.csv --out who` does all this, with adjusted p-values and a verdict.
import matplotlib.pyplot as plt
from scipy import stats

first, second = scores["GaussianMLR"], scores["calibrated ranking (logistic)"]
difference = first - second
error = np.sqrt((1 / 5 + 1 / 4) * difference.var(ddof=1))
p = 2 * stats.t.sf(abs(difference.mean() / error), df=4)
print(f"difference {100 * difference.mean():.1f}, p = {p:.3f}")

fig, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
for height, values in enumerate(reversed(scores.values())):
    ax.plot(100 * values, np.full(5, height), "o", alpha=0.6)
    ax.plot(100 * values.mean(), height, "k|", markersize=16)
ax.set_yticks(range(len(scores)), [*reversed(scores)])
ax.set_xlabel("tau-b per fold, percent")
