"""
Photographs
===========

Tiles of two photographs, ordered by how much of each colour they show: from a folder of pictures with a
manifest to predictions, by commands.
"""

# %%
# Any folder with pictures and a manifest ``image,ranking,split`` will do. Here the two photographs that come
# with scikit-learn are cut into tiles, and the order of each tile is counted from its pixels.
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import rgb_to_hsv
from PIL import Image
from sklearn.datasets import load_sample_images

from gaussianmlr import to_text

labels = ["blue", "dark", "green", "light", "red"]
folder = Path(tempfile.mkdtemp())
lines = ["image,ranking,split"]


def shares(tile):
    """Share of each colour among the pixels of a tile."""
    hue, saturation, value = np.moveaxis(rgb_to_hsv(tile / 255), -1, 0)
    vivid = (saturation > 0.25) & (value > 0.25)
    blue, green = (hue > 0.5) & (hue < 0.72), (hue > 0.18) & (hue < 0.45)
    red = (hue < 0.06) | (hue > 0.9)
    light = (value > 0.8) & (saturation < 0.25)
    return np.array([one.mean() for one in (vivid & blue, value < 0.25, vivid & green, light, vivid & red)])


for number, photo in enumerate(load_sample_images().images):
    for at, (top, left) in enumerate((top, left) for top in range(0, 360, 64) for left in range(0, 560, 64)):
        tile = photo[top : top + 80, left : left + 80]
        share = np.where(shares(tile) > 0.08, shares(tile), 0)
        order = to_text([share.argsort().argsort() * (share > 0)], labels)[0]
        Image.fromarray(tile).save(folder / f"{number}-{at}.png")
        lines.append(f"{number}-{at}.png,{order},{'test' if at % 4 == 0 else 'train'}")
(folder / "manifest.csv").write_text("\n".join(lines))
print("\n".join(lines[:5]))


# %%
# Three commands, as you would type them (`gmlr` instead of `python -m gaussianmlr`). For real photographs
# leave ``--backbone`` out: three networks pretrained on photographs then compute features, once, and a head
# is trained on them. Colours are easier, and a small network from scratch learns them in seconds.
def gmlr(*command):
    """Run a command, and show what it prints."""
    words = [sys.executable, "-m", "gaussianmlr", *map(str, command)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(done.stdout)


run = folder / "run"
gmlr("train", folder, "--out", run, "--backbone", "fast", "--epochs", 20, "--set", "batch_size=16", "--quiet")
gmlr("evaluate", run, folder, "--split", "test")
gmlr("predict", run, folder / "1-0.png", folder / "0-9.png", "--out", folder / "new.csv")

# %%
# What it says of two tiles.
found = pd.read_csv(folder / "new.csv")
fig, axes = plt.subplots(1, 2, figsize=(6, 3), layout="constrained")
for ax, (_, row) in zip(axes, found.iterrows()):
    ax.imshow(Image.open(folder / Path(row["name"]).name))
    ax.set_title(row["order"], fontsize=9)
    ax.set_axis_off()
