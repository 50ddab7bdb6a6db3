"""Downloads against a real server that truncates, stalls and lies."""

import hashlib

import numpy as np
import pytest

from gaussianmlr.data.ranked_mnist.download import Patience, fetch
from gaussianmlr.errors import DataError
from support.unreliable import serving

DATA = np.random.default_rng(3).bytes(200_001)
DIGEST = hashlib.md5(DATA).hexdigest()
QUICK = Patience(timeout=0.4, retries=3, backoff=0.01, slowest=1.0)


@pytest.fixture
def part(tmp_path):
    return tmp_path / "file.part"


def get(server, part, patience=QUICK):
    return fetch(server.url + "file", part, size=len(DATA), digest=DIGEST, patience=patience)


def test_an_honest_server_is_believed_after_one_request(part):
    with serving({"/file": DATA}) as server:
        assert get(server, part) == DATA
        assert server.requests == [("/file", None)]
    assert not part.exists()


def test_a_cut_download_is_resumed_where_it_ended(part):
    with serving({"/file": DATA}, ["cut"]) as server:
        assert get(server, part) == DATA
        assert server.requests == [("/file", None), ("/file", f"bytes={len(DATA) // 2}-")]
        assert server.sent == len(DATA)


def test_resume_reaches_into_a_later_process(part):
    part.write_bytes(DATA[:150_000])
    with serving({"/file": DATA}) as server:
        assert get(server, part) == DATA
        assert server.sent == len(DATA) - 150_000


def test_a_server_without_ranges_starts_over(part):
    with serving({"/file": DATA}, ["cut", "cut"], ranges=False) as server:
        assert get(server, part) == DATA
        assert server.sent == 2 * (len(DATA) // 2) + len(DATA)


def test_a_server_that_always_cuts_is_given_up_and_the_piece_kept(part):
    with serving({"/file": DATA}, always="cut", ranges=False) as server:
        with pytest.raises(DataError, match=r"ended after 100,000 of 200,001 bytes"):
            get(server, part)
        assert len(server.requests) == 4
    assert part.read_bytes() == DATA[:100_000]


def test_a_stalled_server_is_left_in_time_and_resumed(part):
    with serving({"/file": DATA}, ["stall"]) as server:
        assert get(server, part) == DATA
        assert server.asleep == 1  # nobody has waited for it to wake up
        assert server.requests[1] == ("/file", f"bytes={len(DATA) // 2}-")


def test_a_server_that_never_wakes_up_is_an_error_that_says_so(part):
    with (
        serving({"/file": DATA}, always="stall", ranges=False) as server,
        pytest.raises(DataError, match="no answer in time"),
    ):
        get(server, part, Patience(timeout=0.2, retries=1, backoff=0.01))


def test_a_dripping_server_counts_as_stalled(part):
    with (
        serving({"/file": DATA}, always="drip") as server,
        pytest.raises(DataError, match=r"stalled: \d+ bytes"),
    ):
        get(server, part, Patience(timeout=0.3, retries=0, slowest=10_000))


def test_a_liar_is_asked_once_and_leaves_nothing(part):
    with serving({"/file": DATA}, always="lie") as server:
        with pytest.raises(DataError, match=f"wrong content: MD5 .*, expected {DIGEST}"):
            get(server, part)
        assert len(server.requests) == 1
    assert not part.exists()


def test_too_many_bytes_are_refused_before_they_fill_the_disk(part):
    with (
        serving({"/file": DATA}, always="endless") as server,
        pytest.raises(DataError, match=r"more than the 200,001 bytes"),
    ):
        get(server, part)
    assert not part.exists()


def test_a_piece_of_something_else_is_thrown_away(part):
    part.write_bytes(b"\x00" * 1000)
    with serving({"/file": DATA}) as server:
        assert get(server, part) == DATA
        assert [asked for _, asked in server.requests] == ["bytes=1000-", None]


def test_another_range_than_asked_for_is_not_glued_on(part):
    with serving({"/file": DATA}, ["cut", "other-range"]) as server:
        assert get(server, part) == DATA
        assert len(server.requests) == 3


@pytest.mark.parametrize(("code", "asked"), [(404, 1), (403, 1), (503, 4), (429, 4)])
def test_only_errors_that_may_pass_are_tried_again(part, code, asked):
    with serving({"/file": DATA}, always=str(code)) as server:
        with pytest.raises(DataError, match=f"answered {code}"):
            get(server, part)
        assert len(server.requests) == asked


def test_a_refused_range_begins_again(part):
    part.write_bytes(DATA[:10])
    with serving({"/file": DATA}, ["416"]) as server:
        assert get(server, part) == DATA
        assert [asked for _, asked in server.requests] == ["bytes=10-", None]
