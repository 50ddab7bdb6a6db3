"""Thousands of wrong configs of models, in a process of its own: ``python config_fuzz.py FOLDER CASES SEED``.

The models are networks, one of them an ensemble, for tables and pictures, and boosted trees; one has every
part that a config may have: columns of all kinds, temperatures, a scale, guarantees, and peers. In some
cases the files of trees are changed, with a checksum that fits.

Every case is refused by a `DataError`, or loads to a model that predicts. What was counted is printed as
JSON, and what the process did besides: modules imported, files opened to be written, programs, connections.
"""

import copy
import hashlib
import json
import random
import re
import shutil
import sys
import time
import warnings
from pathlib import Path

import torch

from gaussianmlr import DataError, load
from gaussianmlr.data.inputs import read_rows
from gaussianmlr.data.loading import Arrays
from gaussianmlr.model.calibration import Calibration
from gaussianmlr.model.model import Model, build, join
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.model.scale import JndScale
from gaussianmlr.model.schema import digest_of
from gaussianmlr.training.trees import fit_trees
from support.memory import peak_megabytes

CODE = ["torch.hub:load", "logging:basicConfig", "fuzz_evil:Evil", "os:system", "subprocess:run", "os:open"]
PLACES = ["hf:./x", "hf:/etc", "hf:..", "timm:hf-hub:some/thing", "timm:local-dir:/etc", "/dev/zero", "../x"]
WORDS = [
    "",
    "x",
    "gmlr",
    "crpc",
    "mlp",
    "fast",
    "mlp+mlp",
    "fast+fast",
    "tokens",
    "\ud800",
    "\0",
    "a" * 99_999,
]
NUMBERS = [0, -1, 1, 2, 3, 64, 4_097, 10**6, 10**9, 2**31, 2**63, 10**30, 10**400, 0.5, -0.0, 1e-320, 1e308]
OTHERS = [None, True, False, float("nan"), float("inf"), [], {}, [[]] * 500, [0] * 5_000, {"a": {"b": [1]}}]
KEYS = ["pretrained", "weights", "trust_remote_code", "repo_or_dir", "name", "channels", "filename", "width"]
KEYS += ["depth", "hidden", "blocks", "widths", "size", "labels", "outputs", "backbone", "dropout", "bound"]
WATCHED = ["subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect", "socket.bind"]

# Networks that would take all memory, or all time; by the place in `models`.
ABSURD = [
    (0, {"head_settings": {"hidden": 30_000_000}}),
    (0, {"head_settings": {"hidden": 10**15}}),
    (0, {"backbone_settings": {"width": 20_000}}),
    (0, {"backbone_settings": {"width": 4, "depth": 10**9}}),
    (0, {"backbone": "+".join(["mlp"] * 200)}),
    (2, {"backbone_settings": {"widths": [4, 4], "blocks": [10**9]}}),
    (2, {"backbone_settings": {"widths": [30_000] * 3, "blocks": [1, 1]}}),
    (2, {"head_settings": {"width": 10**8}}),
    (2, {"head_settings": {"width": 4, "embedding": 10**9}}),
    (2, {"backbone": "fast+" * 100_000 + "fast"}),
    (2, {"backbone": "resnet18", "backbone_settings": {}}),
]


def tables(**settings):
    recipe = Recipe(backbone="mlp", backbone_settings={"width": 4}, head_settings={"hidden": 4}, **settings)
    scaling = {"mean": [0.0, 1.0, 2.0], "std": [1.0, 2.0, 3.0]}
    inputs = {"kind": "table", "channels": 3, "columns": ["a", "b", "c"], "scaling": scaling}
    about = {"images": 5, "metrics": {"f1": 0.5}}
    return Model(*build(recipe, 2, inputs), ("sky", "sea"), recipe, inputs, about, Calibration(1.5, 1.2))


def pictures():
    recipe = Recipe(
        method="crpc",
        backbone_settings={"widths": [4, 4], "blocks": [1]},
        head_settings={"width": 4, "hidden": 4, "embedding": 2},
    )
    preprocess = {"size": [16, 16], "crop": None, "mean": [0.0], "std": [1.0], "channels": 1}
    inputs = {"kind": "image", "channels": 1, "size": [16, 16], "preprocess": preprocess}
    return Model(*build(recipe, 3, inputs), ("sky", "sea", "sun"), recipe, inputs)


def boosted():
    """A network and trees, three columns and two labels."""
    x = torch.rand(60, 3, generator=torch.Generator().manual_seed(0))
    data = Arrays(x, (x[:, :2] > 0.5) * (x[:, :2].argsort(1) + 1))
    network = tables()
    trees = fit_trees(
        Recipe(trees={"rounds": 3}), data, data, labels=("sky", "sea"), inputs=dict(network.inputs)
    )
    return join([network, trees])


def described():
    """A network and trees of columns of every kind, with a scale, guarantees and peers."""
    columns = [
        {"kind": "number", "gaps": True},
        {"kind": "category", "categories": ["blue", "green", "red"], "frequent": [0, 2], "other": True},
        {"kind": "boolean"},
        {"kind": "date", "parts": ["days", "weekday"]},
    ]
    scaling = {"mean": [0.0, 0.0, 0.0, 2e4, 3.0], "std": [1.0, 1.0, 1.0, 365.0, 2.0]}
    inputs = {"kind": "table", "channels": 5, "columns": ["size", "colour", "new", "day", "more"][:4]}
    inputs |= {"encoding": columns, "scaling": scaling}
    recipe = Recipe(
        backbone="mlp",
        backbone_settings={"width": 4},
        head_settings={"hidden": 4},
        trees={"rounds": 2, "depth": 2},
    )
    labels = ("sky", "sea")
    chance = random.Random(0)
    rows = [
        [chance.gauss(0, 1), chance.choice(["blue", "green", "red"]), chance.random() < 0.5, "2024-05-17"]
        for _ in range(60)
    ]
    x = read_rows(rows, inputs)
    ranks = (x[:, :2] > 0.5) * (x[:, :2].argsort(1) + 1)
    data = Arrays(x, ranks)
    trees = fit_trees(recipe, data, data, labels=labels, inputs=inputs)
    model = join([Model(*build(recipe, 2, inputs), labels, recipe, inputs), trees])
    model.calibration = Calibration(1.5, 1.2)
    model.jnd = JndScale((-1.0, 0.0, 2.0), (0.1, 0.0, -0.3))
    model.calibrate_conformal(x, ranks.numpy())
    peer = {"metrics": {"f1": 0.5, "tau_b": None}, "seconds": 0.1}
    peers = {"constant_order": {**peer, "scores": [1.0, -1.0]}, "forest": peer, "notes": ["a note"]}
    model.about = {"images": 5, "metrics": {"f1": 0.5}, "measured_on": "validation", "peers": peers}
    return model


ROWS = [[0.5, "red", True, "2024-05-17"], [None, "grey", False, "2023-01-31T12:00:00"]]


def read(folder, x):
    """All numbers that a model says of inputs; rows of cells for a model with columns of all kinds."""
    model = load(folder)
    if isinstance(x, list):
        x = read_rows(x, model.inputs)
    found = model.predict(x)
    parts = [found.scores, found.p_relevant]
    if found.raw is not None:
        parts += [found.significance, found.sigma]
    if model.guarantees is not None and model.guarantees.smallest_alpha <= 0.2:
        parts += list(found.guaranteed(0.2).columns().values())
    model.card()
    return torch.cat([torch.as_tensor(part.copy()).double() for part in parts])


def places_in(value, path=()):
    """The path of everything in a config."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places_in(one, (*path, key))


def mutate(config, chance):
    """A config with one to three things wrong; the recipe and the inputs more often than the rest."""
    config = copy.deepcopy(config)
    for _ in range(chance.choice((1, 1, 2, 3))):
        paths = [path for path in places_in(config) if path]
        if not paths:
            break
        likely = [path for path in paths if path[0] in ("recipe", "inputs") and len(path) > 1] or paths
        *inner, key = chance.choice(likely if chance.random() < 0.6 else paths)
        holder = config
        for one in inner:
            holder = holder[one]
        change = chance.random()
        if change < 0.1:
            del holder[key]
        elif change < 0.25 and isinstance(holder, dict):
            holder[chance.choice(KEYS)] = value_of(chance)
        elif change < 0.3 and isinstance(holder[key], list):
            holder[key] = holder[key] * chance.choice((0, 2, 1_000))
        elif change < 0.35:
            other = chance.choice(paths)
            if len(other) == 1:
                holder[key] = copy.deepcopy(config.get(other[0]))
        elif key in ("method", "backbone") and change < 0.8:
            holder[key] = chance.choice(CODE + PLACES)
        else:
            holder[key] = value_of(chance)
    return config


def spoil_trees(saved, files, config, chance):
    """Change a file of trees, and write the checksum that it has then."""
    which = chance.randrange(len(files))
    data = bytearray(files[which])
    arrays = [one.end() for one in re.finditer(rb"\$[dl]#L.{8}", data, re.DOTALL)]
    if chance.random() < 0.5:  # one number of an array, so that the file stays well formed
        place = chance.choice(arrays) + 4 * chance.randrange(3)
        data[place : place + 4] = chance.choice(
            (b"\0" * 4, b"\xff" * 4, b"\x7f\x80\0\0", chance.randbytes(4))
        )
        arrays = []
    for _ in range(chance.choice((1, 1, 2, 5)) if arrays else 0):
        place = chance.randrange(len(data))
        change = chance.random()
        if change < 0.5:
            data[place] = chance.choice((chance.randrange(256), 0, 127, 128, 255))
        elif change < 0.6:
            data[place : place + 8] = chance.choice((0, 1, 2**31 - 1, 2**63 - 1)).to_bytes(8, "big")
        elif change < 0.7:
            del data[place : place + chance.choice((1, 4, 100))]
        elif change < 0.8:
            data[place:place] = data[place : place + chance.choice((1, 4, 1_000))]
        elif change < 0.9:
            data[place:place] = chance.choice((b"[" * 99, b"{}" * 9_999, b"[$Z#L\0\0\0\1\0\0\0\0", b"S"))
        else:
            data = data[:place]
            break
        data = data or bytearray(b"{")
    (saved / f"trees-{which}.ubj").write_bytes(data)
    digests = list(config["trees_sha256"])
    digests[which] = hashlib.sha256(data).hexdigest()
    return {**config, "trees_sha256": digests}


def value_of(chance):
    return copy.deepcopy(chance.choice(chance.choice((CODE, PLACES, WORDS, NUMBERS, NUMBERS, OTHERS))))


def text_of(config, chance):
    """What is written; mostly by somebody who knows about checksums."""
    knowing = chance.random() < 0.85
    if knowing:
        finite = json.loads(json.dumps(config), parse_constant=lambda _: None)
        try:
            config["config_sha256"] = digest_of(finite)
        except ValueError:  # halves of characters have no bytes
            config.pop("config_sha256", None)
    text = json.dumps(config)
    damage = chance.random()
    if damage < 0.02:
        depth = chance.choice((50, 900, 5_000, 200_000))
        return text[:-1] + f', "about": {"[" * depth}{"]" * depth}}}', False
    if damage < 0.04:
        return text[: chance.randrange(len(text))], False
    if damage < 0.06:
        place = chance.randrange(len(text))
        return text[:place] + chance.choice('09aZ"{}[],:') + text[place + 1 :], False
    return text, knowing


def main(folder, cases, seed):
    warnings.simplefilter("ignore")  # of layers without units, which do not fit the weights anyway
    chance = random.Random(seed)
    torch.manual_seed(seed)
    models = [
        tables(),
        join([tables(method="lsep"), tables(method="lsep")]),
        pictures(),
        boosted(),
        described(),
    ]
    inputs = [torch.rand(2, 3), torch.rand(2, 3), torch.rand(2, 1, 16, 16), torch.rand(2, 3), ROWS]
    saved, configs, wanted = [], [], []
    files = {number: model.trees.files for number, model in enumerate(models) if model.trees is not None}
    for number, model in enumerate(models):
        saved.append(model.save(folder / str(number)))
        configs.append(json.loads((saved[-1] / "config.json").read_text()))
        wanted.append(read(saved[-1], inputs[number]))
    events, known = {"written": set(), "else": set()}, set(sys.modules)
    allowed = [folder / str(number) / "config.json" for number in range(len(models))]
    allowed += [folder / str(number) / f"trees-{one}.ubj" for number in files for one in range(9)]

    def watch(event, arguments):
        if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
            if arguments[0] not in map(str, allowed):
                events["written"].add(str(arguments[0]))
        elif event in WATCHED:
            events["else"].add(event)

    sys.addaudithook(watch)
    counts = {"refused": 0, "checksum": 0, "same": 0, "other": 0, "trees": 0, "wrong": [], "slowest": 0.0}
    for number in range(cases):
        which = chance.randrange(len(models))
        forged = saved[which] if which in files and chance.random() < 0.3 else None
        if forged is not None:
            counts["trees"] += 1
            text, knowing = text_of(spoil_trees(saved[which], files[which], configs[which], chance), chance)
        else:
            text, knowing = text_of(mutate(configs[which], chance), chance)
        if number < len(ABSURD):
            which, recipe = ABSURD[number]
            config = {**configs[which], "recipe": {**configs[which]["recipe"], **recipe}}
            text = json.dumps({**config, "config_sha256": digest_of(config)})
        elif number == len(ABSURD):
            which, config = 2, {**configs[2], "labels": [str(label) for label in range(99_999)]}
            text = json.dumps({**config, "config_sha256": digest_of(config)})
        (saved[which] / "config.json").write_text(text)
        began = time.monotonic()
        try:
            scores = read(saved[which], inputs[which])
        except DataError as error:
            why = "checksum" if "is not the file that was saved" in str(error) else "refused"
            counts[why] += 1
            str(error).encode()  # it can be shown
        except BaseException as error:
            counts["wrong"].append(f"{type(error).__name__}: {error} {text[:3_000]}"[:3_500])
        else:
            if scores.shape == wanted[which].shape and torch.equal(scores, wanted[which]):
                counts["same"] += 1
            elif knowing and bool(scores.isfinite().all()):
                counts["other"] += 1  # another model, by somebody who can write checksums
            else:
                counts["wrong"].append(f"{scores} {text[:3_000]}"[:3_500])
        if forged is not None:
            for member, file in enumerate(files[saved.index(forged)]):
                (forged / f"trees-{member}.ubj").write_bytes(file)
        counts["slowest"] = max(counts["slowest"], time.monotonic() - began)
    counts["megabytes"] = peak_megabytes()
    events["imported"] = set(sys.modules) - known
    print(json.dumps(counts | {name: sorted(found) for name, found in events.items()}))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
