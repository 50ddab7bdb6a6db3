"""Model folders that somebody forged: loaded or refused, and nothing that they name is run."""

import hashlib
import json
import os
import shutil
import sys

import numpy as np

from chaos.children import fuzz
from chaos.mutations import NAMED_CODE, spoil_bytes, spoil_tree
from chaos.rows import Row, random_of

BAITS = ("evilmod", "hubconf")  # modules in the current folder that nothing may import


def configs(plan):
    """Model folders whose config was changed, with checksums that fit; and files that are no files."""
    row = Row("configs", "changed model configs, checksums recomputed", "", plan.count(12_000))
    row.promise = "loaded or refused; nothing imported, called or written"
    return fuzz(plan, row, prepare_configs)


def prepare_configs(folder, seed):
    import torch

    import gaussianmlr
    from apps.serve.test_app import LABELS, TABLE, make_model

    model = make_model(TABLE)
    original = model.save(folder / "original")
    config = json.loads((original / "config.json").read_text())
    inputs = torch.linspace(-1, 1, 6).reshape(2, 3)
    expected = model.predict(inputs).significance
    for bait in BAITS:
        (folder / f"{bait}.py").write_text("class Evil: pass\ndef evil(**_): return Evil()\n")
    os.chdir(folder)
    sys.path.insert(0, str(folder))  # as in a notebook: a stray module would be found
    gaussianmlr.load(original).predict(inputs)
    values = [*LABELS, "mlp", "fast", "resnet18", "gmlr", "lsep", "crpc", "linear", "tokens"]
    values += [
        "image",
        "table",
        "hf:nobody/nothing",
        "timm:resnet18",
        "efficientnet-lite0",
        10**7,
        10**9,
        ["a"] * 10_000,
    ]

    def case(place, escapes):
        random = random_of(seed, "configs", place)
        target = folder / "case"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(original, target)
        if random.random() < 0.03:
            _no_file(random, target / random.choice(("config.json", "model.safetensors")))
        elif random.random() < 0.03:
            _spoil_weights(random, target)
        else:
            text = _spoil_config(random, config, values)
            (target / "config.json").write_text(text, "utf-8", errors="surrogatepass")
            reseal(target)
        with escapes:
            found = gaussianmlr.load(target)
            reading = found.predict(inputs) if found.inputs.get("channels") == 3 else None
        if reading is None or reading.significance.shape != expected.shape:
            return "loaded, other shape"
        return "loaded, same" if np.array_equal(reading.significance, expected) else "loaded, other"

    return case, BAITS


def reseal(folder):
    """Give a model folder the checksums of what it holds now, as somebody who forges one would."""
    file = folder / "config.json"
    try:
        config = json.loads(file.read_text("utf-8"))
        if not isinstance(config, dict):
            return
        config["weights_sha256"] = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
        config.pop("config_sha256", None)
        # Part of the format: keys sorted, no spaces, UTF-8.
        text = json.dumps(config, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        config["config_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    except (ValueError, RecursionError):  # it is no JSON, or no text
        return
    file.write_text(json.dumps(config))


def _spoil_config(random, config, values):
    way = random.random()
    if way < 0.02:
        return random.choice(
            ("", "[" * 100_000, "{}", "null", "1e999", '{"format": "gaussianmlr-model"}', "\0")
        )
    if way < 0.07:
        return spoil_bytes(random, json.dumps(config).encode()).decode("utf-8", errors="replace")
    changed = spoil_tree(random, config, values)
    if way < 0.3 and isinstance(changed, dict):
        recipe = changed.get("recipe")
        where = recipe if isinstance(recipe, dict) and random.random() < 0.7 else changed
        where[random.choice(("method", "backbone", "head"))] = random.choice(NAMED_CODE)
        settings = {"repo_or_dir": ".", "source": "local", "model": "evil", "filename": "written.txt"}
        where[random.choice(("backbone_settings", "method_settings"))] = settings
    return json.dumps(changed)


def _no_file(random, file):
    """Something in the place of a file that would block, never end, or fill the memory."""
    file.unlink()
    way = random.randrange(4)
    if way == 0:
        os.mkfifo(file)
    elif way == 1:
        file.symlink_to("/dev/zero")
    elif way == 2:
        file.mkdir()
    else:
        with file.open("wb") as stream:
            # A hole, which takes no space; weights may be hashed in a second or two, a config must be small.
            stream.truncate(1 << 36 if file.suffix == ".json" else 1 << 30)


def _spoil_weights(random, folder):
    file = folder / "model.safetensors"
    file.write_bytes(spoil_bytes(random, file.read_bytes()))
    reseal(folder)
