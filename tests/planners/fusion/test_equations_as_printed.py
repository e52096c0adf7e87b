"""Equations 3 and 4 of Optimus as printed, and with the one thing that each leaves out."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from onchip.machines.chip import load_chip
from onchip.network import Geometry, Network, OperatorSpec
from onchip.planners.fusion import FusionProblem
from onchip.planners.fusion.rows import bands_of, buffer_rows, overlaps, walk

sys.path.append(str(Path(__file__).resolve().parents[3] / "benchmarks"))
from fusion_readings import PAPER, alone, problem_of, words


def test_eq_3_as_printed_forgets_rows_of_the_input_that_cross_again() -> None:
    """Every operator of VGG16 alone: its rows overlap, and a streamed input keeps none of them."""
    printed = problem_of("vgg16", PAPER)
    charged = replace(printed, options=replace(PAPER, halo="lines"))
    assert (words(alone(printed)), words(alone(charged))) == ("201.04", "212.16")


@pytest.mark.parametrize("t", [1, 2, 3])
@pytest.mark.parametrize(("stride", "missing"), [(1, 0), (2, 1), (3, 2)])
def test_eq_4_as_printed_counts_fewer_rows_than_pass_below_a_stride(
    t: int, stride: int, missing: int
) -> None:
    """A window of one row that advances by `stride`: t rows need all that pass, not 1 + s (t - 1)."""
    network = thinned(stride)
    problem = FusionProblem.of(network, load_chip("optimus"), PAPER, 1 << 20)
    held = replace(problem, options=replace(PAPER, halo="lines"))
    middle = next(tensor.id for tensor in network.tensors if tensor.name == "a")
    bands = bands_of(problem, 0b11)
    assert bands is not None
    pass_by = max(band[middle][2] - band[middle][1] for band in walk(problem, bands, 0, t))
    as_printed, ours = (buffer_rows(p, bands, overlaps(p, bands, 0), t)[middle] for p in (problem, held))
    assert pass_by == stride * t == ours
    assert as_printed == stride * t - missing


def thinned(stride: int) -> Network:
    """A 1x1 convolution, and another that leaves out rows and columns."""
    whole, small = (1, 4, 12 * stride, 12 * stride), (1, 4, 12, 12)
    same = Geometry("conv", whole, whole, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1))
    thin = Geometry("conv", whole, small, (1, 1), (stride, stride), (0, 0, 0, 0), (1, 1))
    size = 8 * (12 * stride) ** 2
    return Network.build(
        "thinned",
        [("x", size, "input"), ("a", size, "activation"), ("y", 8 * 144, "activation")],
        [
            OperatorSpec("c1", "Conv", ["x"], ["a"], 32, geometry=same),
            OperatorSpec("c2", "Conv", ["a"], ["y"], 32, geometry=thin),
        ],
        ["y"],
        element="int16",
    )
