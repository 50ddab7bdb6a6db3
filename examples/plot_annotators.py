"""
Several annotators
==================

Four people order the labels of the same 200 pictures, and one of them is careless. How well do they agree,
whom should one trust, and does it help to know?
"""

# %%
# Each person sees the true significances through noise of their own, and calls a label relevant above zero.
import matplotlib.pyplot as plt
import numpy as np

from gaussianmlr import metrics, rankers

rng = np.random.default_rng(0)
truth = rng.normal(0, 2.5, (200, 6))
noise = {"Ann": 0.5, "Bob": 0.8, "Cy": 1.0, "Dee": 4.0}
seen = truth[:, None] + np.array([*noise.values()])[:, None] * rng.normal(size=(200, 4, 6))
several = np.where(seen > 0, seen.argsort(-1).argsort(-1) + 1, 0)  # ranks [pictures, people, labels]

# %%
# Agreement: of two people, and of each person with all others.
found = rankers.agreement(several)
print(f"tau-b of two people: {found.pairwise_tau_b:.2f}")
for name, tau in zip(noise, found.tau_b_of_ranker):
    print(f"{name} with the others: {tau:.2f}")

# %%
# `thurstone` learns how noisy each person is, without knowing the truth.
model = rankers.thurstone(several)
fig, ax = plt.subplots(figsize=(5, 3), layout="constrained")
ax.bar([*noise], model.reliability)
ax.set_title("1 = a typical person", fontsize=10)
ax.set_ylabel("reliability")

# %%
# One order per picture, in four ways, against the truth that nobody saw.
ranks = np.where(truth > 0, truth.argsort(-1).argsort(-1) + 1, 0)
for method in ("mean_rank", "borda", "kemeny", "thurstone"):
    one = rankers.aggregate(several, method)
    print(f"{method}: tau-b {100 * metrics.kendall_tau_b(one.astype(float), ranks):.1f}")
