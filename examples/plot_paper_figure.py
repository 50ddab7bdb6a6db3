"""
A figure of the paper
=====================

Does a network that saw orders only know *how much* larger one digit is than another? The paper's
adjusting-significance experiment: one digit grows, one shrinks, one keeps its size.
"""

# %%
# Five sequences of 50 canvases with digits that were never trained on. Their true scales are known.
import numpy as np

import gaussianmlr
from gaussianmlr.data import adjusting_sequences
from gaussianmlr.plots import InterpolationDisplay

probe = adjusting_sequences("gray-s", digits="embedded")
frames, truth = probe[0], probe.significance[0]
print(frames.shape, [str(label) for label in probe.labels[0]], truth[0], truth[-1])

# %%
# The model that comes with the package was trained on the order of digits in images of Ranked MNIST.
model = gaussianmlr.load("shipped:gray-s")
prediction = model.predict(frames)
display = InterpolationDisplay.from_predictions(
    prediction, labels=[str(label) for label in probe.labels[0]], truth=truth
)
display.plot()

# %%
# How straight is the line from true scale to significance? On the scale of just noticeable differences, which
# models keep, nearly perfectly.
columns = [int(label) for label in probe.labels[0]]
for name, one in (("canonical", prediction), ("just noticeable differences", prediction.rescaled("jnd"))):
    means = one.significance[:, columns]
    straight = np.corrcoef(means[:, [0, 2]].T.ravel(), truth[:, [0, 2]].T.ravel())[0, 1]
    print(f"{name}: correlation with the true scale {straight:.3f}")
