"""Small sets in the layouts of the published ones."""

import json

import numpy as np
import scipy.io
from PIL import Image


def picture(path, seed):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 255, (12, 16, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


def permutation(*relevant):
    """A ranker's row: the relevant labels by number, the virtual label 10, the rest."""
    return [*relevant, 10, *(number for number in range(1, 10) if number not in relevant)]


def nsid(folder, rankings, split=None, pictures=()):
    """`rankings`: for each image, one tuple of label numbers a ranker."""
    folder.mkdir(parents=True, exist_ok=True)
    table = np.zeros((1, len(rankings)), dtype=[("label", "O")])
    for number, rankers in enumerate(rankings):
        rows = [row if isinstance(row, list) else permutation(*row) for row in rankers]
        table["label"][0, number] = np.array(rows, dtype=np.uint8)
    scipy.io.savemat(folder / "pic_scene.mat", {"pic": table})
    if split is not None:
        (folder / "config.json").write_text(json.dumps(split))
    for number in pictures:
        picture(folder / "images" / f"{number}.jpg", number)
    return folder


def avdp(folder, domains, pictures=()):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "splitted_labels.json").write_text(json.dumps(domains))
    for number, name in enumerate(pictures):
        picture(folder / name, number)
    return folder
