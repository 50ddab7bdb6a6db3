"""Every Python block of README and docs runs as it stands, in order, one namespace a page."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gaussianmlr.methods import base

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if BLOCK.search(page.read_text("utf-8"))], ids=lambda p: p.name
)
def test_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(base, "_REGISTRY", dict(base._REGISTRY))  # a page may register a method
    names = {"__name__": "__main__"}
    text = page.read_text("utf-8")
    for block in BLOCK.finditer(text):
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block[1], str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The pages; examples run in tests of their own, so here they are only rendered."""
    folder = tmp_path_factory.mktemp("pages")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("_build", "examples"))
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / "results").symlink_to(ROOT / "results")  # pages link to it
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-b",
        "html",
        "-W",
        "--keep-going",
        "-q",
        "-D",
        "plot_gallery=0",
    ]
    done = subprocess.run([*command, folder / "docs", folder / "html"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_the_pages_build_without_a_warning(built):
    index = (built / "index.html").read_text("utf-8")
    for page in (ROOT / "docs/api").glob("*.md"):
        assert f'href="api/{page.stem}.html"' in (built / "api.html").read_text("utf-8"), page.name
    for script in (ROOT / "examples").glob("plot_*.py"):
        assert (built / f"examples/{script.stem}.html").is_file()
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "index.md" or f'href="{page.stem}.html"' in index, (
            f"{page.name} is in no contents"
        )


def test_search_works_offline(built):
    """From a folder, without a server and without the network."""
    from support.paging import browser

    with browser() as chromium:
        context = chromium.new_context(offline=True)
        tab = context.new_page()
        tab.goto(f"{(built / 'search.html').as_uri()}?q=guarantee")
        tab.wait_for_selector("#search-results li a", timeout=60_000)
        found = tab.locator("#search-results li a").all_inner_texts()
    assert any("Guarantees" in text for text in found)
