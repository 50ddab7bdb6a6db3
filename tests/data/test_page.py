"""What the page on Ranked MNIST shows runs as it stands."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "ranked-mnist.md"


def test_the_code_on_the_page_runs(capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 6
    names = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    said = capsys.readouterr().out
    assert "6 > 4 > 7 > 0" in said
    assert "(50, 1, 224, 224)" in said
