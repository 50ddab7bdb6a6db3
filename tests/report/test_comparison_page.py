"""Reports of comparisons: the table against the cells, and what is missing is said."""

import csv
import io
import json

import numpy as np
import pytest
from scipy import stats

from gaussianmlr.errors import DataError
from gaussianmlr.report import write_report
from support.commanding import call
from support.parsing import Page

NAMES = ("gmlr:strong", "lsep:weak", "dummy")


def cells(folder):
    found = (json.loads(file.read_text()) for file in (folder / "cells").iterdir())
    return {(cell["contender"], cell["seed"]): cell for cell in found}


def check_means(page, found, seeds):
    shown = page.table("Contenders by tau-b")
    assert {row[0] for row in shown[1:]} == set(NAMES)
    for place, metric in ((1, "tau_b"), (4, "hamming_loss"), (6, "f1")):
        for row in shown[1:]:
            values = [100 * found[row[0], seed]["metrics"][metric] for seed in seeds]
            mean, _, std = row[place].partition(" ± ")
            assert float(mean) == pytest.approx(np.mean(values), abs=0.006)
            assert float(std) == pytest.approx(np.std(values, ddof=1), abs=0.006)
    return [row[0] for row in shown[1:]]


def test_the_whole_comparison(comparison):
    page = Page(write_report(comparison))
    found = cells(comparison)
    ranking = check_means(page, found, range(3))
    said = json.loads((comparison / "comparison.json").read_text())
    assert [one["name"] for one in said["contenders"]] == ranking
    assert said["verdict"]["text"] in page.text
    assert said["setup"] in page.text
    rows = page.table("Paired tests of tau-b, in percent")[1:]
    against = {one["other"]: one for one in said["verdict"]["against"]}
    assert len(rows) == 2
    for row in rows:
        one = against[row[0].partition(" against ")[2]]
        best = [found[ranking[0], seed]["metrics"]["tau_b"] for seed in range(3)]
        other = [found[one["other"], seed]["metrics"]["tau_b"] for seed in range(3)]
        assert float(row[1]) == pytest.approx(100 * (np.mean(best) - np.mean(other)), abs=0.006)
        assert row[4] == ("beyond noise" if one["adjusted"] < 0.05 else "no clear difference")
    listed = page.table("Cells")[1:]
    assert len(listed) == 9
    for row in listed:
        assert float(row[3]) == pytest.approx(100 * found[row[0], int(row[1])]["metrics"]["tau_b"], abs=0.006)
        assert row[-1] == "yes"
    for name in ("comparison.md", "comparison.tex", "comparison.csv"):
        assert page.download(name) == (comparison / name).read_text()
    whole = json.loads(page.download("comparison.json"))
    assert whole.pop("recipe").items() <= said.pop("recipe").items()  # but for what changes no result
    assert whole == said
    assert len(list(csv.DictReader(io.StringIO(page.download("cells.csv"))))) == 9
    assert "missing" not in page.text
    settings = {row[0]: row[1] for row in page.table("By contender")[1:]}
    assert settings["lsep:weak"] == 'method = lsep, method_settings = {"supervision": "weak"}'
    assert settings["dummy"] == "DummyRanker()"
    own = 'method_settings = {"balance": "comparisons", "gauge": "canonical", "supervision": "strong"}'
    assert settings["gmlr:strong"] == own


def test_cells_that_are_missing_or_broken(comparison, copied):
    folder = copied(comparison)
    (folder / "cells" / "dummy_seed1.json").unlink()
    (folder / "cells" / "lsep-weak_seed1.json").write_text("{cut")
    page = Page(write_report(folder))
    assert "2 cells are missing: lsep:weak, seed1; dummy, seed1." in page.text
    assert "Unreadable and left out: lsep-weak_seed1.json" in page.text
    assert "7 of 9" in page.sections["glance"].text
    check_means(page, cells(comparison), (0, 2))  # over what all of them have
    assert [row[-1] for row in page.table("Cells")[1:] if row[1] == "1"] == ["no"]
    for file in (folder / "cells").glob("*_seed[02].json"):
        if not file.name.startswith("gmlr"):
            file.unlink()
    page = Page(write_report(folder))
    assert "gmlr:strong is the only contender" in page.text
    for file in (folder / "cells").iterdir():
        file.unlink()
    with pytest.raises(DataError, match="no cell of the comparison is finished yet"):
        write_report(folder)


def test_no_run_that_all_have(comparison, copied):
    folder = copied(comparison)
    for name in ("dummy_seed0", "dummy_seed1", "gmlr-strong_seed2"):
        (folder / "cells" / f"{name}.json").unlink()
    page = Page(write_report(folder))
    assert "No run has been finished by every contender yet" in page.text
    assert "methods" not in page.sections
    assert len(page.table("Cells")) == 7


def test_what_was_asked_for_is_kept_when_a_comparison_grows(table, tmp_path):
    out = tmp_path / "who"
    call("compare", table, "--out", out, "--method", "dummy", "--seeds", 1, "--quiet")
    call("compare", table, "--out", out, "--method", "neighbours", "--seeds", 2, "--quiet")
    asked = json.loads((out / "plan.json").read_text())["asked"]
    assert asked["contenders"] == ["dummy", "neighbours"]
    assert asked["runs"] == [[0, None], [1, None]]
    assert asked["own_test"]
    assert asked["name"] == "hikes.csv"
    page = Page(write_report(out))
    assert "1 cell is missing: dummy, seed1." in page.text
    dummy, near = (cells(out)[name, 0]["tau_b"] for name in ("dummy", "neighbours"))
    p = stats.ttest_rel(near, dummy).pvalue  # of one run, over the instances
    shown = page.table("Paired tests of tau-b, in percent")[1][2]
    assert shown == ("<0.001" if p < 0.001 else f"{p:.3f}")


def test_mistakes(comparison, copied, table):
    with pytest.raises(DataError, match="is a comparison, which has been measured already"):
        call("report", comparison, "--data", table)
    folder = copied(comparison)
    plan = json.loads((folder / "plan.json").read_text())
    del plan["asked"]
    (folder / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(DataError, match="the same `gmlr compare` adds them"):
        write_report(folder)
    (folder / "plan.json").write_text("[]")
    with pytest.raises(DataError, match="is not the plan of a comparison"):
        write_report(folder)
