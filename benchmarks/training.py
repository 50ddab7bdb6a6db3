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
from gaussianmlr.backbones import parameter_groups
from gaussianmlr.network import Network, make_network

BAR = 10.0
PAIRS = {"resnet18": "linear", "fast": "tokens"}
STEPS = {"resnet18": 1, "fast": 10}


def training_step(network: Network, batch: int, size: int) -> float:
    """Seconds of one step; a first step has loaded what torch loads on first use."""
    method = methods.make("gmlr")
    optimizer = torch.optim.AdamW(parameter_groups(network, 1e-4), fused=True)
    images, ranks = torch.rand(batch, 1, size, size), torch.randint(0, 4, (batch, 10))
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    optimizer.zero_grad()
    method.loss(network(images), ranks).backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return clock() - start


def measure(batch: int, size: int, rounds: int) -> dict[str, float]:
    method = methods.make("gmlr")
    networks = {
        name: make_network(method, labels=10, channels=1, backbone=name, head=head).to(
            memory_format=torch.channels_last  # the faster layout for both
        )
        for name, head in PAIRS.items()
    }
    for network in networks.values():
        training_step(network, batch, size)
    best = dict.fromkeys(networks, float("inf"))
    for _ in range(rounds):
        for name, network in networks.items():
            steps = STEPS[name]
            seconds = sum(training_step(network, batch, size) for _ in range(steps)) / steps
            best[name] = min(best[name], seconds)
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
