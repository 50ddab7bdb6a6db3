"""Cases with known faults, by which the harness itself is tested."""

import os
import subprocess
import time

from chaos.rows import expect
from gaussianmlr.errors import DataError


def prepare_planted(folder, seed):
    """Case n has fault n of `FAULTS`; other cases are fine."""

    def case(place, escapes):
        fault = FAULTS.get(place)
        with escapes:
            return "read" if fault is None else fault(folder)

    return case, ("evilmod",)


def refused(_):
    raise DataError("row 3 is bad")


def talkative(_):
    raise DataError("bad " * 5000)


def crashed(_):
    return {}["missing"]


def died(_):
    os._exit(11)


def hung(_):
    time.sleep(60)


def large(_):
    return bytearray(3 << 30)


def started(_):
    try:
        subprocess.run(["true"], check=True)
    except RuntimeError:
        raise DataError("a program that was started counts, whatever came of it") from None


def wrote(folder):
    (folder / "new.txt").write_text("x")


def wrong(_):
    expect(2 + 2 == 5, "wrong", "four")


FAULTS = {
    2: refused,
    3: talkative,
    5: crashed,
    6: died,
    8: hung,
    10: large,
    12: started,
    13: wrote,
    15: wrong,
}
