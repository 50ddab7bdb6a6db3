"""Counters for Prometheus, of one process or of several that serve together."""

from __future__ import annotations

import mmap
import time
from collections.abc import Iterator

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from gaussianmlr._utils.arrays import FloatArray

__all__ = ["RequestCounts", "exposition"]

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_STATUSES = 600  # one cell per status, of which few are used
_BUCKETS = slice(_STATUSES, _STATUSES + len(BOUNDS))
_SECONDS, _UNDER_WAY, _PROCESSOR, _STARTS = range(_BUCKETS.stop, _BUCKETS.stop + 4)
_MODEL = slice(_STARTS + 1, _STARTS + 3)  # instances and batches


class RequestCounts(Collector):
    """Counters of requests: answers by status, seconds until the answer, requests under way, instances read.

    They are in memory that forked processes share. Each process writes a row of its own, so there are no
    locks, and all read the sums. The successor of a process that died continues its row.

    Parameters
    ----------
    processes : int
        Number of processes.

    Attributes
    ----------
    model : float array [2]
        Instances and batches that went through the model of this process.

    Examples
    --------
    >>> counts = RequestCounts(2)
    >>> counts.add(200, 0.03)
    >>> counts.take(1)
    >>> counts.add(200, 0.03)
    >>> print(exposition(counts).splitlines()[2])
    gmlr_requests_total{status="200"} 2.0
    """

    def __init__(self, processes: int = 1) -> None:
        width = _MODEL.stop
        memory = mmap.mmap(-1, 8 * processes * width)
        self._rows: FloatArray = np.frombuffer(memory, dtype=np.float64).reshape(processes, width)
        self._attach(0)

    def take(self, process: int) -> None:
        """Write the row of this process from now on; for a process that was just forked."""
        self._attach(process)
        self._own[_STARTS] += 1.0

    def _attach(self, process: int) -> None:
        self._own = self._rows[process]
        self.model = self._own[_MODEL]
        self._before = float(self._own[_PROCESSOR]) - time.process_time()

    def died(self, process: int) -> None:
        """Say that the requests under way of a process are lost."""
        self._rows[process, _UNDER_WAY] = 0.0

    def begin(self) -> None:
        """Count a request that begins."""
        self._own[_UNDER_WAY] += 1.0

    def end(self) -> None:
        """Count a request that ends."""
        self._own[_UNDER_WAY] -= 1.0

    @property
    def under_way(self) -> int:
        """Requests under way, in all processes."""
        return int(self._rows[:, _UNDER_WAY].sum())

    def add(self, status: int, seconds: float) -> None:
        """Count an answer."""
        self._own[status] += 1.0
        self._own[_SECONDS] += seconds
        self._own[_BUCKETS] += [seconds <= bound for bound in BOUNDS]
        self._spent()

    def _spent(self) -> None:
        self._own[_PROCESSOR] = self._before + time.process_time()

    def collect(self) -> Iterator[Metric]:
        """The counts as metrics of Prometheus."""
        self._spent()
        total = self._rows.sum(axis=0)
        answers = CounterMetricFamily(
            "gmlr_requests", "Answers to prediction requests, by status.", labels=["status"]
        )
        for status in np.flatnonzero(total[:_STATUSES]).tolist():
            answers.add_metric([str(status)], float(total[status]))
        yield answers
        buckets = [(str(bound), count) for bound, count in zip(BOUNDS, total[_BUCKETS].tolist())]
        buckets.append(("+Inf", float(total[:_STATUSES].sum())))
        yield HistogramMetricFamily(
            "gmlr_request_seconds", "How long prediction requests took.", buckets, float(total[_SECONDS])
        )
        under_way, starts = float(total[_UNDER_WAY]), float(total[_STARTS])
        yield GaugeMetricFamily("gmlr_requests_under_way", "Prediction requests under way.", under_way)
        instances, batches = total[_MODEL].tolist()
        yield CounterMetricFamily("gmlr_instances", "Instances that went through the model.", instances)
        yield CounterMetricFamily("gmlr_batches", "Batches they went in.", batches)
        processor = float(total[_PROCESSOR])
        yield CounterMetricFamily("process_cpu_seconds", "Processor time of all workers.", processor)
        yield GaugeMetricFamily("gmlr_workers", "Worker processes.", len(self._rows))
        yield CounterMetricFamily("gmlr_worker_starts", "Starts of worker processes.", starts)


def exposition(*collectors: Collector) -> str:
    """The metrics of collectors, in the text format of Prometheus.

    Examples
    --------
    >>> counts = RequestCounts()
    >>> counts.add(200, 0.03)
    >>> print(exposition(counts).splitlines()[2])
    gmlr_requests_total{status="200"} 1.0
    """
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    return generate_latest(registry).decode()
