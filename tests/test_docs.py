"""Every Python block of README and docs runs as it stands, in order, one namespace a page."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gaussianmlr.methods import base

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
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


def test_the_pages_build_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q"]
    done = subprocess.run([*command, ROOT / "docs", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    index = (tmp_path / "index.html").read_text("utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "index.md" or f'href="{page.stem}.html"' in index, (
            f"{page.name} is in no contents"
        )
