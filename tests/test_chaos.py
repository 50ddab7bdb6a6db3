"""The harness of `make chaos` sees what it is there to see."""

import argparse
from collections import Counter

import pytest

from chaos.__main__ import EXPERIMENTS
from chaos.children import fuzz
from chaos.mutations import spoil_bytes, spoil_tree
from chaos.planted import prepare_planted
from chaos.report import BEGIN, END, facts, markdown, write_page
from chaos.rows import Plan, Row, each, expect, random_of


def test_every_planted_fault_is_seen_and_costs_one_case(tmp_path):
    row = fuzz(Plan(tmp_path), Row("planted", "faults", "", 20), prepare_planted, patience=3)
    found = {int(failure["case"]): failure["kind"] for failure in row.failures}
    assert found == {
        3: "wrong",
        5: "crashed",
        6: "crashed",
        8: "hung",
        10: "memory",
        12: "escaped",
        13: "escaped",
        15: "wrong",
    }
    assert row.done == 20
    assert (row.counts["read"], row.counts["refused"]) == (11, 1)
    assert not row.ok


def test_a_run_that_did_nothing_is_no_success(tmp_path):
    row = Row("none", "", "", 3)
    each(Plan(tmp_path, deadline=0), row, range(3), lambda case: {"answered": 1})
    assert (row.done, row.ok) == (0, False)
    each(Plan(tmp_path), row, range(3), lambda case: expect(case != 1, "lost", "one"))
    assert [failure["kind"] for failure in row.failures] == ["lost"]


def test_cases_follow_from_the_seed_alone():
    data, tree = bytes(range(256)) * 3, {"a": [1, 2, {"b": None}], "c": "d"}
    for spoil, one in ((spoil_bytes, data), (spoil_tree, tree)):
        made = [[repr(spoil(random_of(0, n), one)) for n in range(200)] for _ in range(2)]
        assert made[0] == made[1]
        assert len(set(made[0])) > 100
    assert tree == {"a": [1, 2, {"b": None}], "c": "d"}


def test_the_table_replaces_the_one_before(tmp_path):
    asked = argparse.Namespace(names=[], scale=1.0, seed=0)
    row = Row("train", "kills", "resumed", 4, done=3, counts=Counter(equal=2), seconds=1.4)
    row.failures.append({"kind": "lost", "case": "1", "text": "other weights"})
    table = markdown([row], facts(asked))
    assert "| train | kills | resumed | 3 of 4 | 2 equal | 1 lost | 1 |" in table
    assert "`make chaos` with seed 0" in table
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_page(page, table)
    write_page(page, table)
    assert page.read_text() == f"before\n{BEGIN}\n{table}\n{END}\nafter\n"
    page.write_text("no markers")
    with pytest.raises(ValueError, match="has no"):
        write_page(page, table)


def test_every_experiment_says_what_it_does():
    assert all(attack.__doc__ for attack, _ in EXPERIMENTS.values())
    assert sum(minutes for _, minutes in EXPERIMENTS.values()) <= 30
