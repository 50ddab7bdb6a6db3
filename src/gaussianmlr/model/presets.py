"""Recipes by name: the paper's exact settings, ours for a CPU and for texts, and one to try."""

from __future__ import annotations

from typing import Literal

from gaussianmlr.errors import DataError
from gaussianmlr.model.recipe import Recipe

Preset = Literal["paper", "cpu", "smoke"]
Kind = Literal["canvas", "photo", "table", "text"]
PRESETS: tuple[Preset, ...] = ("paper", "cpu", "smoke")

# The paper trains with Adam at 1e-4, and knows no clipping; its log-variance has no bound worth the name.
_PAPER = Recipe(
    backbone="resnet18",
    backbone_settings={"values": "half"},
    head="linear",
    optimizer="adam",
    rate=1e-4,
    weight_decay=1e-5,
    schedule="exponential",
    decay=0.9,
    clip=None,
    epochs=50,
    select="loss",
)
TUNED = "tuned"
_TUNED = Recipe(
    backbone="text:minilm",
    backbone_settings={"layers": "all"},
    freeze=3,  # the upper half: on a few thousand texts, training all six layers is no better
    head="linear",
    head_settings={
        "hidden": 0,
        "dropout": 0.1,
    },  # a hidden layer would have to be learned from nothing
    epochs=4,
    later_epochs=1,  # the thresholds of lsep alone
    batch_size=32,
    rate=1e-3,
    backbone_rate=0.15,
    weight_decay=0.01,
    rise=0.1,
    average=0.99,
    select="last",  # the rate falls to zero and weights are averaged, so the last epoch is the best
)
_RECIPES: dict[tuple[str, Kind], Recipe] = {
    ("paper", "canvas"): _PAPER,
    ("paper", "photo"): _PAPER.replace(
        backbone="hf:microsoft/resnet-18",
        backbone_settings={},
        freeze="all",
        augment="randaugment",
        augment_settings={"operations": 3, "magnitude": 10, "bins": 40},
        epochs=200,
        decay_every=5,
    ),
    ("paper", "table"): _PAPER.replace(backbone="mlp", backbone_settings={}),
    # Images cost nothing to draw, so none is shown twice; then many steps count: small batches, and Muon.
    ("cpu", "canvas"): Recipe(
        backbone_settings={"curves": True}, epochs=8, batch_size=16, optimizer="muon", rate=5e-3, fresh=True
    ),
    # Networks that were trained apart see more together, and their features are computed once.
    ("cpu", "photo"): Recipe(
        backbone="efficientnet-lite0+efficientnet-lite1+efficientnet-lite2",
        backbone_settings={"pool": True, "mirror": True},
        freeze="all",
        head="linear",
        head_settings={"dropout": 0.6},
        epochs=40,
        rate=1e-3,
    ),
    ("cpu", "table"): Recipe(backbone="mlp", epochs=60, rate=1e-3, patience=15),
    # The encoder stays as it is, so its features are computed once: minutes instead of hours.
    ("cpu", "text"): Recipe(
        backbone="text:minilm",
        backbone_settings={"layers": "all"},  # lower ones know words, upper ones sentences
        freeze="all",
        head="linear",
        head_settings={"hidden": 256, "dropout": 0.5},
        epochs=60,
        batch_size=32,
        rate=1e-3,
        patience=15,
    ),
    (TUNED, "text"): _TUNED,
}


def preset(name: str, kind: Kind, *, method: str = "gmlr", supervision: str = "strong") -> Recipe:
    """The recipe of a preset for a kind of data and a method.

    Parameters
    ----------
    name : {"paper", "cpu", "smoke", "tuned"}
        The paper's exact settings (a GPU is wise); the fast ones; a run of seconds; or, for texts, an encoder
        that is trained with the head, which takes minutes more than a frozen one and is better.
    kind : {"canvas", "photo", "table", "text"}
        Ranked MNIST and the like; photographs; rows of numbers; rows with texts.
    method, supervision : str
        Name of the method, and what it may use of the order.

    Examples
    --------
    >>> recipe = preset("paper", "canvas", method="lsep")
    >>> recipe.method, recipe.rate, recipe.epochs
    ('lsep', 0.0001, 50)
    """
    if name not in PRESETS and name != TUNED:
        raise DataError(f"no preset {name!r}; known are {', '.join(PRESETS)}, and {TUNED} for texts")
    if kind not in ("canvas", "photo", "table", "text"):
        raise DataError(f"kind is 'canvas', 'photo', 'table' or 'text', not {kind!r}")
    if name != "smoke" and (name, kind) not in _RECIPES:
        raise DataError(f"the preset {name!r} is not for data of the kind {kind!r}")
    settings: dict[str, object] = {"supervision": supervision}
    if method == "gmlr" and name == "paper":
        settings["bound"] = 50.0
    elif method == "gmlr":
        # As in the estimators; a canvas has digits enough to settle its own scale.
        settings |= {"balance": "comparisons", **({} if kind == "canvas" else {"gauge": "canonical"})}
    if name == "smoke":
        recipe = _RECIPES["cpu", kind].replace(epochs=1, batch_size=16, patience=None)
        if kind == "photo":
            recipe = recipe.replace(backbone="efficientnet-lite0", backbone_settings={"pool": True})
    else:
        recipe = _RECIPES[name, kind]
    if method == "lsep" and name == "cpu" and kind == "canvas":
        # Images are the budget. Thresholds are one layer on a frozen network: an eighth of it.
        # Without a zero to learn first, it stays where it began for as long as the rate is high.
        epochs = recipe.epochs
        recipe = recipe.replace(epochs=epochs * 7 // 8, later_epochs=epochs // 8, rate=2e-3)
    return recipe.replace(method=method, method_settings=settings)
