"""Run all experiments, or those that are named; print their counts and write the table."""

import argparse
import json
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

from chaos import folders, fuzzing, kills, traffic
from chaos.children import Escapes, try_case
from chaos.report import facts, markdown, write_page
from chaos.rows import Plan, Row

# Each with its share of the time, in minutes of a full run on two cores.
EXPERIMENTS = {"train": (kills.train, 5.0), "compare": (kills.compare, 3.0)}
EXPERIMENTS |= {"predict": (kills.predict, 2.0), "annotate": (traffic.annotate, 2.0)}
EXPERIMENTS |= {"disk": (kills.disk, 2.0), "texts": (fuzzing.texts, 1.5)}
EXPERIMENTS |= {"tables": (fuzzing.tables, 3.0), "images": (fuzzing.images, 2.0)}
EXPERIMENTS |= {"configs": (folders.configs, 3.0), "recipes": (fuzzing.recipes, 1.0)}
EXPERIMENTS |= {"http": (traffic.http, 3.0), "slow": (traffic.slow, 1.0)}
EXPERIMENTS |= {"overload": (traffic.overload, 0.5)}
PREPARE = {"texts": fuzzing.prepare_texts, "tables": fuzzing.prepare_tables}
PREPARE |= {"images": fuzzing.prepare_images, "configs": folders.prepare_configs}
PREPARE |= {"recipes": fuzzing.prepare_recipes}
PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"


def main():
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(EXPERIMENTS)}")
    parser.add_argument("--minutes", type=float, default=28.0, help="for all together; cases are cut short")
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--out", type=Path, default=Path("chaos.json"), help="rows and failures, as JSON")
    parser.add_argument("--page", action="store_true", help=f"write the table to docs/{PAGE.name}")
    parser.add_argument("--case", type=int, help="one case of one fuzzed experiment, in this process")
    asked = parser.parse_args()
    unknown = sorted(set(asked.names) - set(EXPERIMENTS))
    if unknown:
        parser.error(f"no experiment {', '.join(unknown)}; there are {', '.join(EXPERIMENTS)}")
    names = asked.names or list(EXPERIMENTS)
    if asked.case is not None:
        return replay(names, asked.seed, asked.case)
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    try:
        rows = run(names, asked, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    table = markdown(rows, facts(asked))
    found = {"facts": facts(asked), "rows": [vars(row) | {"ok": row.ok} for row in rows]}
    asked.out.write_text(json.dumps(found, indent=2) + "\n")
    print(f"\n{table}\n\nrows and failures: {asked.out}")
    if asked.page:
        write_page(PAGE, table)
        print(f"table: docs/{PAGE.name}")
    return 0 if all(row.ok for row in rows) else 1


def run(names, asked, folder):
    """The rows of the experiments; one that breaks fails alone."""
    rows, end = [], time.monotonic() + 60 * asked.minutes
    plan = Plan(folder, asked.seed, asked.scale, asked.jobs)
    plan.say(f"seed {asked.seed}, scale {asked.scale:g}, {asked.minutes:g} minutes, {asked.jobs} jobs")
    for number, name in enumerate(names):
        attack, share = EXPERIMENTS[name]
        left = sum(EXPERIMENTS[one][1] for one in names[number:])
        began = time.monotonic()
        plan.deadline = began + (end - began) * share / left
        plan.say(f"{name}: {attack.__doc__}")
        try:
            row = attack(plan)
        except Exception as error:  # the harness, or a run that must not fail
            row = Row(name, attack.__doc__.split(":")[0], "", 0)
            row.fail(plan, getattr(error, "kind", "crashed"), "the start", traceback.format_exc())
        row.seconds = round(time.monotonic() - began, 1)
        rows.append(row)
        plan.say(f"{name}: {row.done:,} of {row.planned:,}, {dict(row.counts)}, {len(row.failures)} failures")
    return rows


def replay(names, seed, case):
    """One fuzzed case, with its traceback."""
    if len(names) != 1 or names[0] not in PREPARE:
        sys.exit(f"--case needs one experiment of {', '.join(PREPARE)}")
    with tempfile.TemporaryDirectory() as folder:
        attack, baits = PREPARE[names[0]](Path(folder), seed)
        outcome, problem = try_case(attack, case, Escapes(baits))
    print(outcome, problem or "", sep="\n")
    return 0 if problem is None else 1


if __name__ == "__main__":
    sys.exit(main())
