"""The first blocks of the embedded networks in rings, by hand: every byte is counted in the comments."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from onchip.base.errors import IllegalPlan
from onchip.check import certify
from onchip.machines.chip import Chip
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.made import made_model
from onchip.microcontroller.network import network_of
from onchip.network import Network, OperatorSpec
from onchip.plans import Alloc, Group, Instruction, Load, Plan, Rings, Run, Scratch, Stage, Store


@dataclass(frozen=True)
class Block:
    """The first operators of a network, cut into stages of so many; what their rings take, and how far the
    output may lie below the input."""

    model: str
    stages: tuple[int, ...]
    rings: int
    least: int | None


BLOCKS = (
    # Three rows of 40 pixels of 16 channels for the depthwise convolution, and one pixel of its output. The
    # output's rows (320 bytes) come slower than the input's go (2 x 240).
    Block("mcunet_vww", (1, 2), 3 * 40 * 16 + 16, None),
    Block("mcunet_320kb", (1, 2), 3 * 88 * 16 + 16, None),
    Block("vww_96", (1, 2), 3 * 48 * 8 + 8, None),
    # Three rows of each map of the residual block, and a pixel of what its second convolution makes. When
    # row 28 of the output is written, 29 x 512 bytes, row 30 of the input (96 bytes each) is still needed.
    Block("resnet8", (1, 1, 2), 3 * 512 + 3 * 512 + 16, 29 * 512 - 30 * 96),
    # When row 22 of the output is written, the last row of the convolution still needs 10 rows from 44 on.
    Block("kws", (1, 2), 3 * 5 * 64 + 64, 23 * 320 - 44 * 10),
)


def block_of(block: Block) -> Network:
    name = f"made:{block.model}"
    network = network_of(model_of(made_model(name), name=name, where=name))
    some = network.operators[: sum(block.stages)]
    names = [t.name for t in network.tensors]
    used = {t for op in some for t in (*op.inputs, *op.outputs)}
    return Network.build(
        block.model,
        [(t.name, t.bytes, t.kind) for t in network.tensors if t.id in used],
        [
            OperatorSpec(
                op.name, op.type, [names[t] for t in op.inputs], [names[t] for t in op.outputs],
                op.weight_bytes, 0, op.geometry, op.macs,
            )
            for op in some
        ],
        [names[some[-1].outputs[0]]],
    )  # fmt: skip


def planned(network: Network, group: Group, by: int, streaming: int | None, budget: int) -> Plan:
    x, y = (network.tensors[t].name for t in (network.operators[0].inputs[0], network.outputs[0]))
    size, made = (network.tensors[network.tensor_id[t]].bytes for t in (x, y))
    top = max(size + by, made) if streaming is None else made
    program: list[Instruction] = [Alloc(y, 0), Scratch("g", made), Run("g", ((x, streaming or 0),)), Store(y)]
    if streaming is None:
        program = [Load(x, by), Alloc(y, 0, x, by), Scratch("g", top), Run("g"), Store(y)]
    return certify(
        network,
        Chip("c", 1),
        budget,
        program,
        status="feasible",
        lower_bound_bytes=0,
        seconds=0,
        groups=[group],
    )


def grouped(network: Network, block: Block, scratch: int) -> Group:
    names = [op.name for op in network.operators]
    stages, at = [], 0
    for size in block.stages:
        stages.append(Stage(tuple(names[at : at + size])))
        at += size
    return Group("g", tuple(names), scratch, tiling=Rings(tuple(stages)))


@pytest.mark.thorough
@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: b.model)
def test_a_first_block_takes_what_can_be_counted_by_hand_and_computes_nothing_twice(block: Block) -> None:
    network = block_of(block)
    group = grouped(network, block, block.rings)
    x, y = (network.tensors[t].bytes for t in (network.operators[0].inputs[0], network.outputs[0]))
    by = max(block.least or 0, y - x, 0)
    plan = planned(network, group, by, None, 200_000)
    assert plan.result.peak_bytes == plan.result.extent_bytes == max(x, y) + block.rings
    assert plan.result.macs == sum(op.work for op in network.operators)
    with pytest.raises(IllegalPlan, match="group-scratch"):
        planned(network, replace(group, scratch_bytes=block.rings - 1), by, None, 200_000)
    with pytest.raises(IllegalPlan, match="outside-budget"):
        planned(network, group, by, None, plan.result.extent_bytes - 1)


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.least is not None], ids=lambda b: b.model)
def test_a_first_block_lies_as_close_to_its_input_as_can_be_counted_by_hand(block: Block) -> None:
    network = block_of(block)
    assert block.least is not None
    group = grouped(network, block, block.rings)
    planned(network, group, block.least, None, 200_000)
    with pytest.raises(IllegalPlan, match="overlap-unsafe"):
        planned(network, group, block.least - 1, None, 200_000)


@pytest.mark.thorough
@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: b.model)
def test_a_streamed_input_needs_the_rows_of_a_window_and_crosses_once(block: Block) -> None:
    network = block_of(block)
    first = network.operators[0].geometry
    assert first is not None
    x, y = (network.tensors[t].bytes for t in (network.operators[0].inputs[0], network.outputs[0]))
    window = first.kernel[0] * first.input[2] * first.input[3]
    group = grouped(network, block, block.rings + window)
    plan = planned(network, group, 0, x, 200_000)
    assert plan.result.peak_bytes == y + block.rings + window
    assert plan.result.dram_bytes == x + y + plan.result.weight_bytes
    with pytest.raises(IllegalPlan, match="group-scratch"):
        planned(network, replace(group, scratch_bytes=group.scratch_bytes - 1), 0, x, 200_000)
