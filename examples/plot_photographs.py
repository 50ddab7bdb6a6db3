"""
Photographs
===========

Six photographs in the order of a model that comes with the package; then a model of your own, from a folder
of pictures with a manifest.
"""

# %%
# These are commands, as you would type them, with `gmlr` instead of `python -m gaussianmlr`. The model
# ``shipped:nsid`` has learned nine labels from 1,279 landscapes (extra `efficientnet`). It has seen none of
# these photographs.
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import rgb_to_hsv
from PIL import Image

from gaussianmlr import to_text
from gaussianmlr.plots import GaussianDisplay

here = Path(__file__).parent if "__file__" in globals() else Path.cwd()
photos, folder = here / "photos", Path(tempfile.mkdtemp())


def gmlr(*command):
    """Run a command, and show what it prints."""
    words = [sys.executable, "-m", "gaussianmlr", *map(str, command)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(done.stdout)


gmlr("predict", "shipped:nsid", photos, "--out", folder / "scenes.csv")
scenes = pd.read_csv(folder / "scenes.csv")
print(scenes["order"].to_string())

# %%
# The table also holds a curve per label: how significant it is, and how sure that is. Labels left of zero do
# not apply. Photographs by Aitzol Berasategi (CC BY 4.0), danielbuechele and vultilion
# (CC BY 2.0), see ``photos/SOURCES.md``.
known = [name.removeprefix("rank:") for name in scenes if name.startswith("rank:")]
figure = plt.figure(figsize=(11.4, 4.2), layout="constrained")
for cell, (_, row) in zip(figure.subfigures(2, 3).flat, scenes.iterrows()):
    picture, curves = cell.subplots(1, 2)
    picture.imshow(Image.open(photos / Path(row["name"]).name))
    picture.set_axis_off()
    mu, sigma = ([row[f"{what}:{name}"] for name in known] for what in ("significance", "sigma"))
    GaussianDisplay(mu, sigma, known).plot(curves, span=(-2, 6))
    curves.set_xticks([0, 2, 4])
    curves.set_xlabel("significance", fontsize=8)
    cell.suptitle(row["order"], fontsize=11, weight="bold")

# %%
# For labels of your own, any folder with pictures and a manifest ``image,ranking,split`` will do. Here two of
# the photographs are cut into tiles, ordered by how much of each colour they show.
labels = ["blue", "dark", "green", "light", "red"]
lines = ["image,ranking,split"]


def shares(tile):
    """Share of each colour among the pixels of a tile."""
    hue, saturation, value = np.moveaxis(rgb_to_hsv(tile / 255), -1, 0)
    vivid = (saturation > 0.25) & (value > 0.25)
    blue, green = (hue > 0.5) & (hue < 0.72), (hue > 0.18) & (hue < 0.45)
    red = (hue < 0.06) | (hue > 0.9)
    light = (value > 0.8) & (saturation < 0.25)
    return np.array([one.mean() for one in (vivid & blue, value < 0.25, vivid & green, light, vivid & red)])


for photo in ("china", "flower"):
    pixels = np.array(Image.open(photos / f"{photo}.jpg"))
    for at, (top, left) in enumerate((top, left) for top in range(0, 260, 48) for left in range(0, 420, 48)):
        tile = pixels[top : top + 60, left : left + 60]
        share = np.where(shares(tile) > 0.08, shares(tile), 0)
        order = to_text([share.argsort().argsort() * (share > 0)], labels)[0]
        Image.fromarray(tile).save(folder / f"{photo}-{at}.png")
        lines.append(f"{photo}-{at}.png,{order},{'test' if at % 4 == 0 else 'train'}")
(folder / "manifest.csv").write_text("\n".join(lines))
print("\n".join(lines[:5]))

# %%
# Three commands. For real photographs leave ``--backbone`` out: networks pretrained on photographs then
# compute features, once, and a head is trained on them. Colours are easier, and a small network from scratch
# learns them in seconds.
run = folder / "run"
gmlr("train", folder, "--out", run, "--backbone", "fast", "--epochs", 20, "--set", "batch_size=16", "--quiet")
gmlr("evaluate", run, folder, "--split", "test")
gmlr("predict", run, folder / "flower-0.png", folder / "china-9.png", "--out", folder / "new.csv")

# %%
# What it says of two tiles.
found = pd.read_csv(folder / "new.csv")
fig, axes = plt.subplots(1, 2, figsize=(6, 3), layout="constrained")
for ax, (_, row) in zip(axes, found.iterrows()):
    ax.imshow(Image.open(folder / Path(row["name"]).name))
    ax.set_title(row["order"], fontsize=9)
    ax.set_axis_off()
