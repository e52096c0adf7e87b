"""Table 7 in the model: what a search on a CPU core costs networks on the GPU, as memory traffic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from math import ceil

from hax_conn_cases import ORIN, SETS, pair, profile_of
from hax_conn_figures import stretched, whole

from onchip.machines.contention import ContentionModel
from onchip.multi_dnn.simulate import simulate

__all__ = ["PAPER_7", "Beside", "overhead", "table_7", "traffic_for"]

PAPER_7 = {
    "caffenet": ("CaffeNet", 0.45),
    "densenet121": ("DenseNet", 0.89),
    "googlenet": ("GoogleNet", 1.64),
    "inception_resnet_v2": ("Inc-res-v2", 0.69),
    "inception_v4": ("Inception", 1.64),
    "mobilenet_v1": ("MobileNet", 1.31),
    "resnet18": ("ResNet18", 0.16),
    "resnet50": ("ResNet52", 0.23),
    "resnet101": ("ResNet101", 0.38),
    "resnet152": ("ResNet152", 0.71),
    "vgg16": ("VGG16", 1.12),
    "vgg19": ("VGG19", 1.59),
}
"""% of the time beside AlexNet alone, with the paper's names; there is no ResNet52 elsewhere in it."""
SEARCH_GB = 1.0
"""GB/s that a search is given in the first columns; the last have what would give the paper's figures."""
MOST_GB = 40.0


@dataclass(frozen=True, slots=True)
class Beside:
    """A contention model in which something else, on no unit, has so many GB/s of traffic all the time."""

    model: ContentionModel
    traffic: float

    def slowdown(self, unit: int, requested: float, external: float) -> float:
        return self.model.slowdown(unit, requested, external + self.traffic)


@cache
def overhead(network: str, contention: str, traffic: float) -> float:
    """How much longer a network on Orin's GPU takes for it, beside AlexNet on the DLA, as a fraction."""
    alone = profile_of(network, ORIN).total_ms(0) or 0.0
    other = profile_of("alexnet", ORIN).total_ms(1) or 1.0
    often = pair(ORIN, network, "alexnet", contention, iterations=(1, ceil(4 * alone / other)))
    schedule = whole(often, (0, 1))
    searching = replace(often, model=Beside(often.model, traffic))
    return stretched(simulate(searching, schedule)) / stretched(simulate(often, schedule)) - 1


def traffic_for(network: str, contention: str, share: float) -> float | None:
    """GB/s of a search that cost so much in the model; None where it is more than a core can have."""
    low, high = 0.0, MOST_GB
    if overhead(network, contention, high) < share:
        return None
    for _ in range(30):
        middle = (low + high) / 2
        if overhead(network, contention, middle) < share:
            low = middle
        else:
            high = middle
    return high


def table_7() -> Iterator[str]:
    """The twelve networks."""
    yield (
        "| network | paper, % | "
        + " | ".join(f"{c}: at {SEARCH_GB:g} GB/s, %" for c in SETS)
        + " | light: GB/s for the paper's | medium | heavy |"
    )
    yield "|---|--:|" + "--:|" * 6
    for name, (title, printed) in PAPER_7.items():
        ours = [f"{100 * overhead(name, c, SEARCH_GB):.2f}" for c in SETS]
        needed = [traffic_for(name, c, printed / 100) for c in SETS]
        cells = ["more than 40" if gb is None else f"{gb:.1f}" for gb in needed]
        yield f"| {title} | {printed:.2f} | " + " | ".join((*ours, *cells)) + " |"
