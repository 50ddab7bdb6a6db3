"""Training images a second: the fast backbone against the paper's ResNet18, in one run.

Whole networks as they are used, `fast` + `tokens` and `resnet18` + `linear`, on gray 224 x 224
images: forward, GaussianMLR loss, backward and a step of AdamW. On one thread the process's own CPU
seconds count, so that other work on the machine disturbs little; on more, seconds of the wall clock.
Rounds of the two alternate and last about as long (ten steps of one, one of the other); the best round
of each counts. Exits with 1 where `fast` is not at least 10x as fast.
"""

import argparse
import json
import platform
import sys
import time

import torch

from gaussianmlr import methods
from gaussianmlr.nn.backbones import parameter_groups
from gaussianmlr.nn.network import make_network

BAR = 10.0
PAIRS = {"resnet18": "linear", "fast": "tokens"}
STEPS = {"resnet18": 1, "fast": 10}


class Trained:
    """A network, its optimizer and a batch."""

    def __init__(self, backbone: str, head: str, batch: int, size: int) -> None:
        self.method = methods.make("gmlr")
        self.network = make_network(self.method, labels=10, channels=1, backbone=backbone, head=head)
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # faster for both
        self.optimizer = torch.optim.AdamW(parameter_groups(self.network, 1e-4), fused=True)
        self.images, self.ranks = torch.rand(batch, 1, size, size), torch.randint(0, 4, (batch, 10))

    def step(self) -> None:
        """One step of training."""
        self.optimizer.zero_grad()
        self.method.loss(self.network(self.images), self.ranks).backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()


def measure(batch: int, size: int, rounds: int) -> dict[str, float]:
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    trained = {name: Trained(name, head, batch, size) for name, head in PAIRS.items()}
    for one in trained.values():
        one.step()  # torch loads and chooses on first use
    best = dict.fromkeys(trained, float("inf"))
    for _ in range(rounds):
        for name, one in trained.items():
            start = clock()
            for _ in range(STEPS[name]):
                one.step()
            best[name] = min(best[name], (clock() - start) / STEPS[name])
    return {name: batch / seconds for name, seconds in best.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    rates = measure(options.batch, options.size, options.rounds)
    ratio = rates["fast"] / rates["resnet18"]
    if options.json:
        about = {"torch": torch.__version__, "machine": platform.machine(), "threads": options.threads}
        print(json.dumps({**about, "images_a_second": rates, "ratio": ratio, "bar": BAR}))
    else:
        for name, head in PAIRS.items():
            print(f"{name} + {head}: {rates[name]:.1f} training images/s")
        verdict = "" if ratio >= BAR else ", MISSED"
        print(f"fast / resnet18: {ratio:.1f}x (bar {BAR:.0f}x{verdict}), {options.threads} thread(s)")
    return 0 if ratio >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
