"""The number of threads follows the work, is restored, and costs little on small tables."""

import importlib.util
import threading
from pathlib import Path

import pytest
import torch

from gaussianmlr._utils.threads import asked_threads, threads_for, threads_in_use
from gaussianmlr.errors import DataError
from gaussianmlr.nn.work import work_of


@pytest.fixture
def four():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("work", "threads"), [(0, 1), (1.4e10, 1), (2.1e10, 2), (1e15, 4)])
def test_threads_follow_the_work_up_to_what_torch_is_set_to(four, work, threads):
    with threads_for(work):
        assert torch.get_num_threads() == threads
    assert torch.get_num_threads() == 4


def test_what_was_asked_for_wins_also_in_other_threads_and_ends(four):
    seen = []

    def look():
        with threads_for(1.0):
            seen.append(torch.get_num_threads())

    with asked_threads(3):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        look()
        assert threads_in_use() == 3
    look()
    assert seen == [3, 3, 1]
    assert torch.get_num_threads() == 4


def test_the_number_is_restored_after_an_error(four):
    with pytest.raises(RuntimeError), asked_threads(2), threads_for(0):
        raise RuntimeError
    assert torch.get_num_threads() == 4
    with threads_for(0):
        assert torch.get_num_threads() == 1


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_what_is_no_number_of_threads_is_refused(count):
    with pytest.raises(DataError, match="threads is"), asked_threads(count):
        pass


def test_work_of_pictures_is_counted_without_a_trace():
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.Dropout()
    )
    before, state = network[1].running_mean.clone(), torch.get_rng_state()
    # Each of 8 x 8 places of 8 maps: 3 x 3 x 3 multiplications and as many additions.
    assert work_of(network.train(), torch.zeros(5, 3, 8, 8)) == 8 * 8 * 8 * 27 * 2
    assert torch.equal(before, network[1].running_mean)
    assert torch.equal(state, torch.get_rng_state())
    assert network[2].training


@pytest.mark.slow
def test_a_fit_on_a_small_table_costs_what_it_costs_with_one_thread():
    file = Path(__file__).parents[2] / "benchmarks" / "threads.py"
    spec = importlib.util.spec_from_file_location("threads_benchmark", file)
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    best = {}
    for which in ("one", "default"):
        runs = [benchmark.seconds(which, 400) for _ in range(3)]
        assert all(before == after for _, before, after in runs)
        best[which] = min(spent for spent, *_ in runs)
    assert best["default"] <= 1.5 * best["one"]
