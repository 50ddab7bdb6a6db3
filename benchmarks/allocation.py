"""What training costs where the process keeps freed memory, and where it does not.

Two processes of one thread run the same short training, the preset `cpu` on drawn canvases of embedded
digits: one with `keep_freed_memory`, as the commands that train, one with the C library's defaults. Rounds
of the two alternate. What counts is an epoch of a process that has already seen one, in its own CPU
seconds, the system's share among them; the best round of each. Exits with 1 where keeping is not quicker.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys

import torch

from gaussianmlr._utils.memory import keep_freed_memory
from gaussianmlr.data import RankedMNIST
from gaussianmlr.model.presets import preset
from gaussianmlr.training.fit import fit


def measure_here(keep: bool, dataset: str, images: int) -> dict[str, float]:
    """CPU seconds and page faults of an epoch in this process, and the most memory it had."""
    if keep and not keep_freed_memory():
        raise SystemExit("this C library, or the environment, does not let memory be kept")
    torch.set_num_threads(1)
    train = RankedMNIST(dataset, "train", size=images, digits="embedded")
    validation = RankedMNIST(dataset, "validation", size=32, digits="embedded")
    recipe = preset("cpu", "canvas").replace(epochs=1)
    fit(recipe, train, validation)
    before = resource.getrusage(resource.RUSAGE_SELF)
    fit(recipe, train, validation)
    after = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "page_faults": after.ru_minflt - before.ru_minflt,
        "megabytes": after.ru_maxrss / 1024,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="color-s")
    parser.add_argument("--images", type=int, default=640)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--here", choices=["keep", "default"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure_here(options.here == "keep", options.dataset, options.images)))
        return 0
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    best: dict[str, dict[str, float]] = {}
    for _ in range(options.rounds):
        for way in ("default", "keep"):
            words = [sys.executable, __file__, "--here", way]
            words += ["--dataset", options.dataset, "--images", str(options.images)]
            shown = subprocess.run(words, env=plain, stdout=subprocess.PIPE, text=True, check=True)
            found = json.loads(shown.stdout.splitlines()[-1])
            if way not in best or found["seconds"] < best[way]["seconds"]:
                best[way] = found
    ratio = best["keep"]["seconds"] / best["default"]["seconds"]
    if options.json:
        about = {"torch": torch.__version__, "machine": platform.machine(), "libc": platform.libc_ver()}
        print(json.dumps({**about, **best, "ratio": ratio}))
    else:
        for way, found in best.items():
            print(
                f"{way}: {found['seconds']:.1f} CPU seconds, {found['page_faults']:,.0f} page faults, "
                f"{found['megabytes']:,.0f} MB at most"
            )
        print(f"keep / default: {ratio:.2f}x, {options.images} images of {options.dataset}, one thread")
    return 0 if ratio < 1 else 1


if __name__ == "__main__":
    sys.exit(main())
