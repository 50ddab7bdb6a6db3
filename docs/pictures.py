"""Draw the pictures of the README and of the pages into docs/images: `python docs/pictures.py`.

The examples draw their own; the page of `gmlr annotate` is taken from a browser (playwright, and Chromium).
"""

from __future__ import annotations

import io
import json
import re
import runpy
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
from PIL import Image

from gaussianmlr.data import contact_sheet

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs/images"
GUIDE = """What matters most in the picture comes first.

## sky
Anything above the horizon, clouds included.

## plant
Trees, grass and flowers.
"""


def main() -> None:
    """Draw all."""
    for name in ("table", "texts", "annotators", "comparing", "paper_figure"):
        figure = drawn_by(name)
        figure.set_size_inches(
            (0.85 if name == "paper_figure" else 0.7) * figure.get_size_inches()
        )  # shown small
        save(figure, IMAGES / f"task-{name.removeprefix('paper_')}.png", dpi=170)
    scenes = drawn_by("photographs")
    save(scenes, IMAGES / "scenes.png", dpi=140)
    one = scenes.subfigs[4]  # the one with the most labels
    scenes.draw_without_rendering()
    save(scenes, IMAGES / "task-photographs.png", box=one.bbox.transformed(scenes.dpi_scale_trans.inverted()))
    draw_methods(IMAGES / "methods.png")
    write(contact_sheet(["gray-s", "color-b"], columns=5, digits="embedded"), IMAGES / "ranked-mnist.png")
    draw_comparison(IMAGES / "comparison.png")
    take_annotate(IMAGES / "annotate.png")


def draw_methods(file: Path) -> None:
    """Tau-b of the estimators on every table, as `results/estimators` holds it."""
    tables = {"Painting": 224, "emotion6": 1584, "Movie": 1000, "NSID": 1279}
    names = {
        "GaussianMLR": "GaussianMLR",
        "GaussianMLR (network)": "its networks alone",
        "crpc": "CRPC",
        "lsep": "LSEP",
        "CatBoost grades": "boosted grades",
        "CalibratedRanker (forest)": "calibrated forest",
        "br": "binary relevance",
        "DummyRanker": "a constant order",
    }
    figure, axes = plt.subplots(1, 4, figsize=(11, 3.1), sharey=True, layout="constrained")
    for axis, (table, count) in zip(axes, tables.items(), strict=True):
        lines = (ROOT / f"results/estimators/{table.lower()}.jsonl").read_text("utf-8").splitlines()
        runs = [run for run in map(json.loads, lines) if run["seed"] < 5]
        for place, name in enumerate(names):
            found = [100 * run["metrics"]["tau_b"] for run in runs if run["ranker"] == name]
            if found and statistics.mean(found) > 20:
                axis.errorbar(
                    statistics.mean(found),
                    place,
                    xerr=statistics.stdev(found),
                    fmt="o",
                    color="#d55e00" if name == "GaussianMLR" else "#0072b2",
                )
        axis.set_title(f"{'photographs' if table == 'NSID' else table}, {count:,} rows", fontsize=10)
        axis.grid(axis="x", color="#ddd")
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(axis="y", length=0)
    axes[0].set_yticks(range(len(names)), names.values())
    axes[0].invert_yaxis()
    figure.supxlabel("tau-b, percent", fontsize=10)
    save(figure, file, dpi=110)


def drawn_by(example: str):
    """The first figure of an example."""
    plt.close("all")
    runpy.run_path(str(ROOT / f"examples/plot_{example}.py"))
    return plt.figure(1)


def save(figure, file: Path, dpi: int = 120, box=None) -> None:
    """Draw a figure, and write it."""
    whole = io.BytesIO()
    figure.savefig(whole, dpi=dpi, bbox_inches=box)
    write(Image.open(whole), file)


def write(picture: Image.Image, file: Path) -> None:
    """Write a picture with 256 colours, which is a third of the bytes."""
    picture.convert("RGB").quantize(256, kmeans=2).save(file, optimize=True)
    print(file.relative_to(ROOT))


def draw_comparison(file: Path) -> None:
    """What `gmlr compare` draws for the table of the examples."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["compare", ROOT / "examples/hikes.csv", "--out", folder, "--quiet"]
        subprocess.run([sys.executable, "-m", "gaussianmlr", *map(str, command)], check=True)
        write(Image.open(f"{folder}/comparison.png"), file)


def take_annotate(file: Path) -> None:
    """The page on a screen, and on a phone before and after the first answer is saved."""
    from playwright.sync_api import sync_playwright

    folder = Path(tempfile.mkdtemp())
    photos = folder / "photos"
    photos.mkdir()
    for name in ("picos-de-europa.jpg", "sunset.jpg"):
        shutil.copy(ROOT / "examples/photos" / name, photos)
    (folder / "guide.md").write_text(GUIDE)
    command = [sys.executable, "-m", "gaussianmlr", "annotate", photos, "--out", folder / "answers"]
    command += ["--labels", "mountain,sky,plant,snow,cloud,sun", "--guide", folder / "guide.md", "--port", 0]
    server = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True)
    try:
        address = next(found[0] for line in server.stdout if (found := re.search(r"http://\S+", line)))
        with sync_playwright() as playwright:
            executable = shutil.which("chromium")
            chromium = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
            wide = page(chromium, address, "Cy", 1180, "light")
            press(wide, "mountain", "sky")
            phone = page(chromium, address, "Ann", 400, "light")
            press(phone, "mountain", "plant", "snow")
            dark = page(chromium, address, "Bob", 400, "dark")
            press(dark, "mountain", "snow", "sky")
            dark.get_by_role("button", name="Save").click()
            dark.get_by_text("Saved: mountain").wait_for()
            dark.wait_for_timeout(500)
            shots = [Image.open(io.BytesIO(one.screenshot())) for one in (wide, phone, dark)]
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder)
    gap = 24
    both = Image.new("RGB", (sum(one.width + gap for one in shots) - gap, shots[0].height), "#888")
    left = 0
    for one in shots:
        both.paste(one, (left, 0))
        left += one.width + gap
    write(both.resize((1600, 1600 * both.height // both.width)), file)


def page(chromium, address: str, name: str, width: int, scheme: str):
    """The page of a person who just came."""
    tab = chromium.new_context(viewport={"width": width, "height": 820}, color_scheme=scheme).new_page()
    tab.goto(address)
    tab.get_by_role("textbox", name="Your name").fill(name)
    tab.keyboard.press("Enter")
    tab.locator("#work").wait_for()
    return tab


def press(tab, *labels: str) -> None:
    """Add labels to the order."""
    for label in labels:
        tab.locator(f'#labels [data-label="{label}"]').click()
    tab.wait_for_timeout(500)


if __name__ == "__main__":
    main()
