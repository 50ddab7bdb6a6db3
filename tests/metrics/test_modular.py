"""The torchmetrics classes: sums of any batches, in one process or two, are the value of the whole."""

import json
import pickle
import socket
import subprocess
import sys

import numpy as np
import pytest
import torch

from gaussianmlr import DataError, metrics

SHELLS = {
    metrics.KendallTauB: metrics.kendall_tau_b,
    metrics.KendallTauA: metrics.kendall_tau_a,
    metrics.SpearmanRho: metrics.spearman_rho,
    metrics.GoodmanKruskalGamma: metrics.gamma,
    metrics.PositivesTau: metrics.positives_tau,
    metrics.ExactMatch: metrics.exact_match,
    metrics.HammingLoss: metrics.hamming_loss,
    metrics.Max1Error: metrics.max1_error,
    metrics.Top1Accuracy: metrics.top1_accuracy,
    metrics.RankingLoss: metrics.ranking_loss,
    metrics.AveragePrecision: metrics.average_precision,
    metrics.Coverage: metrics.coverage,
    metrics.NDCG: metrics.ndcg,
    metrics.F1: metrics.f1,
    metrics.PaperMetrics: metrics.evaluate,
}


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    ranks = rng.integers(-1, 4, (61, 6))
    ranks[:10] = -1  # a first batch in which nothing is known
    scores = np.round(ranks - 1 + rng.normal(0, 2, ranks.shape), 1).astype(np.float32)
    return torch.tensor(scores), torch.tensor(ranks)


def fed(metric, case, sizes=(10, 1, 30, 20)):
    for scores, ranks in zip(case[0].split(sizes), case[1].split(sizes)):
        metric.update(scores, ranks)
    return metric


@pytest.mark.parametrize("shell", SHELLS)
def test_uneven_batches_give_the_value_of_the_whole(shell, case):
    metric = fed(shell(), case)
    expected = SHELLS[shell](*case)
    if shell is metrics.PaperMetrics:
        assert {name: float(value) for name, value in metric.compute().items()} == pytest.approx(expected)
    else:
        assert float(metric.compute()) == pytest.approx(float(expected), abs=1e-12)
    metric.reset()
    assert metric.update_count == 0
    again = pickle.loads(pickle.dumps(fed(metric, case)))
    assert str(again.compute()) == str(metric.compute())


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (metrics.SpearmanRho("untied"), lambda *a: metrics.spearman_rho(*a, formula="untied")),
        (metrics.NDCG(k=2), lambda *a: metrics.ndcg(*a, k=2)),
        (metrics.InstanceF1(), lambda *a: metrics.f1(*a, average="instance")),
        (metrics.InstanceF1(1.0), lambda *a: metrics.f1(*a, average="instance", zero_division=1.0)),
        (metrics.F1("macro", num_labels=6), lambda *a: metrics.f1(*a, average="macro")),
    ],
)
def test_settings(metric, expected, case):
    assert float(fed(metric, case).compute()) == pytest.approx(float(expected(*case)), abs=1e-12)


def test_forward_gives_the_batch_and_keeps_the_sum(case):
    metric = metrics.KendallTauB()
    scores, ranks = case
    assert float(metric(scores[10:20], ranks[10:20])) == pytest.approx(
        float(metrics.kendall_tau_b(scores[10:20], ranks[10:20]))
    )
    metric(scores[20:], ranks[20:])
    assert float(metric.compute()) == pytest.approx(float(metrics.kendall_tau_b(*case)))


def test_bad_settings_are_named(case):
    with pytest.raises(DataError, match="use InstanceF1"):
        metrics.F1("instance")
    with pytest.raises(DataError, match="expected num_labels with average='macro'"):
        metrics.F1("macro")
    with pytest.raises(DataError, match="expected 5 labels, got 6"):
        metrics.F1("macro", num_labels=5).update(*case)
    with pytest.raises(DataError, match="formula is one of"):
        metrics.SpearmanRho("both")
    with pytest.raises(DataError, match="number of places"):
        metrics.NDCG(k=0)


WORKER = """
import gc, json, sys
from datetime import timedelta
import torch
import torch.distributed as dist
from gaussianmlr import metrics

rank, port, data = int(sys.argv[1]), sys.argv[2], sys.argv[3]
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2,
                        timeout=timedelta(seconds=60))
case = torch.load(data, weights_only=True)
# process 0 has two batches of 7 and 1, process 1 three of 40, 12 and 1: no size divides another
sizes, start = ((7, 1), 0) if rank == 0 else ((40, 12, 1), 8)
paper, macro, tau = metrics.PaperMetrics(), metrics.F1("macro", num_labels=6), metrics.PositivesTau()
for size in sizes:
    batch = [part[start:start + size] for part in case]
    start += size
    for metric in (paper, macro, tau):
        metric.update(*batch)
found = {name: float(value) for name, value in paper.compute().items()}
found |= {"macro": float(macro.compute()), "positives_tau": float(tau.compute())}
print(json.dumps(found))
del paper, macro, tau, metric  # gloo aborts at exit where something still holds the group
gc.collect()
dist.destroy_process_group()
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_two_processes_with_uneven_batches(case, tmp_path):
    order = torch.randperm(61, generator=torch.Generator().manual_seed(0))
    shuffled = tuple(part[order].clone() for part in case)
    torch.save(shuffled, tmp_path / "case.pt")
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    port = str(free_port())
    workers = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), port, str(tmp_path / "case.pt")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        outputs = [worker.communicate(timeout=150) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert [worker.returncode for worker in workers] == [0, 0], outputs
    expected = metrics.evaluate(*shuffled)
    expected["macro"] = float(metrics.f1(*shuffled, average="macro"))
    expected["positives_tau"] = float(metrics.positives_tau(*shuffled))
    for text, _ in outputs:
        assert json.loads(text.splitlines()[-1]) == pytest.approx(expected, abs=1e-12)
