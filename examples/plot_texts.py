"""
Texts
=====

Short texts with the emotions that people read in them, the strongest first.
"""

# %%
# Texts and orders, made up here; yours come from a table with a column ``text`` and a column ``ranking``.
import itertools

import numpy as np
import pandas as pd

from gaussianmlr import GaussianMLR, to_text

words = {
    "joy": ["happy", "glad", "wonderful", "smiling"],
    "sadness": ["sad", "crying", "lonely", "lost"],
    "fear": ["afraid", "nervous", "scared", "worried"],
    "anger": ["angry", "furious", "annoyed", "unfair"],
}
labels = list(words)
rng = np.random.default_rng(0)
texts, ranks = [], []
for first, second in itertools.permutations(labels, 2):
    for _ in range(20):
        one, other = rng.choice(words[first]), rng.choice(words[second])
        texts.append(f"so very {one}, and a bit {other} about it")
        ranks.append([2 * (label == first) + (label == second) for label in labels])
orders = to_text(ranks, labels)
order = rng.permutation(len(texts))
train, test = order[:180], order[180:]
pd.DataFrame({"text": texts, "order": orders}).iloc[train[:4]]

# %%
# A list of strings is enough. ``text:tfidf`` needs nothing else; without ``recipe`` texts are read by a
# pretrained network (the extra ``texts``), which knows words that it has not seen here.
ranker = GaussianMLR(labels=labels, recipe={"backbone": "text:tfidf"}, epochs=60, random_state=0)
ranker.fit([texts[i] for i in train], [orders[i] for i in train])
found = ranker.predict_full([texts[i] for i in test])
print("tau-b on unseen texts:", round(ranker.score([texts[i] for i in test], [orders[i] for i in test]), 3))
pd.DataFrame(
    {
        "text": [texts[i] for i in test[:4]],
        "true": [orders[i] for i in test[:4]],
        "predicted": found.orders[:4],
    }
)

# %%
# One curve per emotion: left of zero it is not there.
from gaussianmlr.plots import GaussianDisplay

display = GaussianDisplay.from_predictions(found, 0).plot()
display.ax_.set_title(f"“{texts[test[0]]}”\n{found.orders[0]}", loc="left", fontsize=10.5)
