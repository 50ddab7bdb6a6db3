"""The page on people's own data runs as it stands, and says what it prints."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "own-data.md"


def test_every_block_runs_in_order(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 7
    names = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    printed = capsys.readouterr().out
    for expected in (
        "['mountain > cloud = sky', 'sea > sky']",
        "row 0: 'mountain > sky = cloud': label 'cloud' is not one of ['mountain', 'sea', 'sky']",
        "['jazz > rock', 'rock', 'folk > rock > jazz']",
        "['jazz > rock', 'rock', 'folk > jazz = rock']",
        "['joy > fear', 'awe > fear > joy']",
        "['mountain > sky', 'sea > sky'] ('ann', 'bob', 'cy') (2, 3, 3)",
        "torch.Size([3, 224, 224]) tensor([0, 2, 0, 1])",
        "error: fog.jpg: does not exist",
        "'sky >': empty bucket at the end",
        "False 2",
    ):
        assert expected in printed, expected
