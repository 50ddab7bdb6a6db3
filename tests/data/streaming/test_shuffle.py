"""The order of an epoch over shards: every row once, the same for the same seed, and lanes for processes."""

import numpy as np
import pytest

from gaussianmlr.data.streaming.shuffle import LANES, InOrder, ShardOrder

SIZES = np.array([7, 0, 12, 5, 12, 12, 1, 9, 12, 3])


def naive(sizes, seed, stage, epoch, buffer):
    """The same order by lists: shards, lanes, buffers, turns."""
    starts = np.cumsum([0, *sizes])
    shards = np.random.default_rng((seed, stage, epoch)).permutation(len(sizes))
    rows = [row for shard in shards for row in range(starts[shard], starts[shard + 1])]
    lanes, begin = [], 0
    for lane in range(LANES):
        length = len(range(lane, len(rows), LANES))
        mine, begin = rows[begin : begin + length], begin + length
        mixed = []
        for number in range(0, len(mine), buffer):
            part = mine[number : number + buffer]
            random = np.random.default_rng((seed, stage, epoch, lane, number // buffer))
            mixed += [part[place] for place in random.permutation(len(part))]
        lanes.append(mixed)
    return [lanes[place % LANES][place // LANES] for place in range(len(rows))]


@pytest.mark.parametrize("buffer", [1, 3, 4, 100])
@pytest.mark.parametrize("sizes", [SIZES, np.array([3]), np.array([100, 100]), np.array([8] * 40)])
def test_the_order_is_that_of_a_naive_shuffle(sizes, buffer):
    order = ShardOrder(sizes, 5, 1, 2, buffer)
    assert order[0 : len(order)].tolist() == naive(sizes, 5, 1, 2, buffer)


def test_every_row_is_there_once_and_slices_agree_wherever_they_begin():
    order = ShardOrder(SIZES, 0, 0, 3, 4)
    whole = order[0 : len(order)].tolist()
    assert sorted(whole) == list(range(SIZES.sum()))
    for size in (1, 5, 16, 200):
        cut = [row for start in range(0, len(order), size) for row in order[start : start + size].tolist()]
        assert cut == whole
    again = ShardOrder(SIZES, 0, 0, 3, 4)  # as a run that resumes has it
    assert again[40:56].tolist() == whole[40:56]


def test_orders_of_other_seeds_stages_and_epochs_differ():
    orders = [
        ShardOrder(SIZES, *one, 4)[0:73].tolist() for one in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
    ]
    assert len({tuple(order) for order in orders}) == 4


@pytest.mark.parametrize("world", [2, 4])
def test_processes_read_shards_of_their_own(world):
    sizes = np.full(64, 10)
    order, ends = ShardOrder(sizes, 0, 0, 0, 40), np.cumsum(sizes)
    read = [set() for _ in range(world)]
    for start in range(0, len(order), 32):
        batch = order[start : start + 32].numpy()
        for rank in range(world):
            read[rank] |= set(np.searchsorted(ends, batch[rank::world], side="right").tolist())
    assert set.union(*read) == set(range(64))
    # Only a shard that is cut between two lanes may be read by two processes.
    assert sum(map(len, read)) <= 64 + LANES - 1
    assert all(len(one) <= 64 // world + LANES for one in read)


def test_a_batch_mixes_rows_from_far_apart():
    """Data that is sorted must not give batches of one kind."""
    sizes = np.full(64, 100)
    order = ShardOrder(sizes, 0, 0, 0, 400)
    for start in range(0, len(order), 64):
        assert len(set((order[start : start + 64] // 100).tolist())) >= 16


def test_rows_in_order_need_no_tensor():
    order = InOrder(10**12)
    assert len(order) == 10**12
    assert order[10**11 : 10**11 + 3].tolist() == [10**11, 10**11 + 1, 10**11 + 2]
    assert InOrder(4)[3:9].tolist() == [3]
