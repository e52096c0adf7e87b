"""What a tiled group's geometry must say, and what is refused because it does not."""

from __future__ import annotations

from math import prod

import pytest

from onchip.base.errors import IllegalPlan
from onchip.check import certify
from onchip.machines.chip import Chip
from onchip.network import Geometry, Network, OperatorSpec
from onchip.network.access import access_of
from onchip.network.maps import Map, Maps
from onchip.plans import Blocks, Group, Plan, Run, Scratch, Tiling

MAP = (2, 4, 6, 3)
"""Images, channels, rows, columns of most maps here; one byte an element."""
SIZE = 2 * 4 * 6 * 3


def planned(
    network: Network,
    members: tuple[str, ...],
    scratch: int,
    subgroups: int,
    streaming: tuple[tuple[str, int], ...],
    tiling: Tiling | Blocks,
) -> Plan:
    refills = tuple((op.name, subgroups) for op in network.operators if op.weight_bytes)
    group = Group("tiles", members, scratch, subgroups, refills, (), tiling)
    return certify(
        network, Chip("c", 1), 1 << 30, [Scratch("tiles", 0), Run("tiles", streaming)],
        status="feasible", lower_bound_bytes=0, seconds=0, groups=[group],
    )  # fmt: skip


def one(
    geometry: Geometry | None, x: int = SIZE, y: int = SIZE, *, weights: int = 0, workspace: int = 0
) -> Network:
    operator = OperatorSpec("f", "F", ["x"], ["y"], weights, workspace, geometry)
    return Network.build("one", [("x", x, "input"), ("y", y, "activation")], [operator], ["y"])


def two(geometry: Geometry, sizes: tuple[int, int, int]) -> Network:
    operator = OperatorSpec("f", "F", ["x", "z"], ["y"], 0, 0, geometry)
    kinds = ("input", "input", "activation")
    rows = list(zip(("x", "z", "y"), sizes, kinds, strict=True))
    return Network.build("two", rows, [operator], ["y"])  # type: ignore[arg-type]


def viewed() -> Network:
    operator = OperatorSpec("f", "F", ["part"], ["y"], 0, 0, Geometry("elementwise", MAP, MAP))
    tensors = [("x", 2 * SIZE, "input"), ("part", SIZE, "activation"), ("y", SIZE, "activation")]
    return Network.build("n", tensors, [operator], ["y"], views=[("part", "x", 0)])  # type: ignore[arg-type]


def after_nothing_known() -> Network:
    first = OperatorSpec("before", "F", ["x"], ["y"], 0, 0, None)
    then = OperatorSpec("f", "F", ["y"], ["z"], 0, 0, Geometry("elementwise", MAP, MAP))
    tensors = [("x", SIZE, "input"), ("y", SIZE, "activation"), ("z", SIZE, "activation")]
    return Network.build("n", tensors, [first, then], ["z"])  # type: ignore[arg-type]


def convolved_by_another() -> Network:
    first = OperatorSpec("before", "F", ["x"], ["z"], 0, 0, Geometry("elementwise", MAP, MAP))
    then = OperatorSpec("f", "F", ["x", "z"], ["y"], 0, 0, CONV)
    tensors = [("x", SIZE, "input"), ("z", SIZE, "activation"), ("y", SIZE, "activation")]
    return Network.build("n", tensors, [first, then], ["y"])  # type: ignore[arg-type]


def crossed() -> Network:
    """Two ways of different strides between maps of five and three rows."""
    a = Geometry("conv", (1, 1, 5, 1), (1, 1, 3, 1), (1, 1), (2, 1))
    b = Geometry("conv", (1, 1, 5, 1), (1, 1, 3, 1), (3, 1), (1, 1))
    total = Geometry("elementwise", (1, 1, 3, 1), (1, 1, 3, 1))
    specs = [
        OperatorSpec("f", "F", ["x"], ["a"], 0, 0, a),
        OperatorSpec("g", "F", ["x"], ["b"], 0, 0, b),
        OperatorSpec("h", "F", ["a", "b"], ["y"], 0, 0, total),
    ]
    tensors = [("x", 5, "input"), *((name, 3, "activation") for name in "aby")]
    return Network.build("n", tensors, specs, ["y"])  # type: ignore[arg-type]


CONV = Geometry("conv", MAP, MAP, (1, 1))


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        (one(None), "f states no geometry"),
        (one(CONV, workspace=1), "f has a workspace"),
        (viewed(), "f reads part, a view"),
        (after_nothing_known(), "nothing says the shape of y"),
        (crossed(), "do not fit together"),
        (one(Geometry("conv", MAP, MAP, (1, 1)), SIZE + 1), "the shape of x"),
        (one(Geometry("conv", MAP, (2, 4, 6, 0), (1, 1))), "the shape of y"),
        (one(Geometry("conv", MAP, MAP, (1,))), "not two-dimensional"),
        (one(Geometry("conv", MAP, MAP, (0, 1))), "not complete"),
        (one(Geometry("conv", MAP, MAP, (1, 1), groups=3)), "groups"),
        (one(Geometry("conv", MAP, MAP, (1, 1), groups=0)), "groups"),
        (one(Geometry("pool", MAP, (2, 8, 6, 3), (1, 1)), y=2 * SIZE), "number of channels"),
        (one(Geometry("pad", MAP, MAP)), "does not say how it pads"),
        (one(Geometry("pad", MAP, MAP, padding=(1, 0, 0, 0))), "does not pad"),
        (one(Geometry("pad", MAP, (2, 8, 6, 3), padding=(0, 0, 0, 0)), y=2 * SIZE), "number of channels"),
        (one(Geometry("rowwise", MAP, (2, 4, 3, 6))), "different rows"),
        (one(Geometry("transpose", MAP, MAP)), "kind transpose, of which nothing is known"),
        (one(Geometry("elementwise", MAP, (2, 4, 6, 3)), x=SIZE // 2), "the shape of x"),
        (two(CONV, (SIZE, SIZE, SIZE)), "the shape of z"),
        (convolved_by_another(), "has several inputs"),
        (two(Geometry("concat", MAP, (2, 7, 6, 3)), (SIZE, SIZE // 2, SIZE // 4 * 7)), "does not join"),
        (two(Geometry("concat", MAP, (2, 6, 6, 3)), (2 * SIZE, SIZE // 2, SIZE // 4 * 6)), "different rows"),
        (one(Geometry("fully_connected", (2, 72), (3, 8)), y=24), "another shape"),
    ],
)  # fmt: skip
def test_what_is_not_certain_is_refused_with_a_name_and_a_reason(network: Network, reason: str) -> None:
    members = tuple(op.name for op in network.operators if op.name != "before")
    for tiling in (Tiling(1), Blocks(1, 1, 1, 1))[: 2 if len(members) == 1 else 1]:
        with pytest.raises(IllegalPlan, match="group-unproved") as refusal:
            planned(network, members, 1 << 20, 1, (), tiling)
        assert reason in str(refusal.value)


def test_images_of_another_number_are_no_images() -> None:
    # A head on seven regions of each of two images: its maps have fourteen images where all others have two.
    specs = [
        OperatorSpec("c", "Conv", ["x"], ["a"], 0, 0, CONV),
        OperatorSpec("d", "Conv", ["a"], ["b"], 0, 0, CONV),
    ]
    head = (14, 4, 6, 3)
    specs.append(OperatorSpec("f", "F", ["b"], ["y"], 0, 0, Geometry("conv", head, head, (1, 1))))
    tensors = [
        ("x", SIZE, "input"),
        ("a", SIZE, "activation"),
        ("b", SIZE, "activation"),
        ("y", 7 * SIZE, "activation"),
    ]
    network = Network.build("n", tensors, specs, ["y"])  # type: ignore[arg-type]
    with pytest.raises(IllegalPlan, match=r"group-unproved: .*the shape of y"):
        planned(network, ("c", "d", "f"), 1 << 20, 1, (), Tiling(1))


def test_a_split_of_the_channels_makes_maps_of_its_parts() -> None:
    split = Geometry("rowwise", MAP, MAP)
    specs = [OperatorSpec("f", "Split", ["x"], ["y", "z"], 0, 0, split)]
    tensors = [("x", SIZE, "input"), ("y", SIZE // 4, "activation"), ("z", SIZE // 4 * 3, "activation")]
    network = Network.build("n", tensors, specs, ["y", "z"])  # type: ignore[arg-type]
    streaming = (("x", SIZE), ("y", SIZE // 4), ("z", SIZE // 4 * 3))
    held = 2 * 4 * 2 * 3  # two rows of x, and as much of y and z together
    planned(network, ("f",), held, 2 * 3, streaming, Tiling(2))
    with pytest.raises(IllegalPlan, match="group-scratch"):
        planned(network, ("f",), held - 1, 2 * 3, streaming, Tiling(2))
    # One channel of z at a time.
    planned(network, ("f",), held - 2 * 2 * 3, 2 * 3, streaming, Tiling(2, ("z",), 1))
    with pytest.raises(IllegalPlan, match="tiling-passes"):
        planned(network, ("f",), held, 2 * 3, streaming, Tiling(2, ("x",), 1))


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [
        ((SIZE, SIZE // 4, SIZE // 4 * 3), (1, 3)),
        ((SIZE, SIZE // 2, SIZE // 4), None),  # not all channels
        ((SIZE, SIZE, SIZE), None),  # or indices beside values: two bytes would be half as many channels
        ((SIZE, SIZE, 2 * SIZE), None),
        ((2 * SIZE, SIZE // 4, SIZE // 4 * 3), None),  # elements of another width than the input's
        ((2 * SIZE, SIZE // 2, SIZE // 2 * 3), (1, 3)),
        ((SIZE, SIZE // 4 + 1, SIZE // 4 * 3 - 1), None),
    ],
)
def test_the_parts_of_a_split_have_maps_where_its_bytes_are_channels(
    sizes: tuple[int, int, int], parts: tuple[int, int] | None
) -> None:
    specs = [OperatorSpec("f", "Split", ["x"], ["y", "z"], 0, 0, Geometry("rowwise", MAP, MAP))]
    kinds = ("input", "activation", "activation")
    rows = list(zip("xyz", sizes, kinds, strict=True))
    network = Network.build("n", rows, specs, ["y", "z"])  # type: ignore[arg-type]
    maps = Maps(network)
    for t, channels in zip((1, 2), parts or (None, None), strict=True):
        found = maps.of(t)
        assert (found and found.channels) == channels
        assert found is None or found.element == sizes[0] // SIZE


def test_a_matrix_over_a_map_reads_all_of_it_and_fetches_its_weights_by_channels() -> None:
    network = one(Geometry("fully_connected", (1, 4 * 6 * 3), (1, 5)), 72, 5, weights=725)
    # Without a map in the network it is a matrix of one row: features, no map.
    planned(network, ("f",), 72 + 5 + 2 * 2 * 2 + 2, 1, (("x", 72), ("y", 5)), Tiling(1, (), 2))
    specs = [
        OperatorSpec("c", "Conv", ["x"], ["a"], 0, 0, Geometry("conv", (1, 4, 6, 3), (1, 4, 6, 3), (1, 1))),
        OperatorSpec(
            "f", "Gemm", ["a"], ["y"], 72 * 5 * 2 + 5, 0, Geometry("fully_connected", (1, 72), (1, 5))
        ),
    ]
    tensors = [("x", 72, "input"), ("a", 72, "activation"), ("y", 5, "activation")]
    network = Network.build("n", tensors, specs, ["y"])  # type: ignore[arg-type]
    # Of the weights two output channels, each with all rows and columns of two input channels.
    need = 72 + 72 + 5 + 2 * (2 * 2 * 6 * 3) + 2
    streaming = (("x", 72), ("y", 5))
    planned(network, ("c", "f"), need, 1, streaming, Tiling(1, (), 2))
    with pytest.raises(IllegalPlan, match="group-scratch"):
        planned(network, ("c", "f"), need - 1, 1, streaming, Tiling(1, (), 2))


def test_matrices_without_maps_run_in_bands_of_their_rows() -> None:
    network = one(Geometry("fully_connected", (7, 3), (7, 5)), 21, 35, weights=15)
    streaming = (("x", 21), ("y", 35))
    planned(network, ("f",), 2 * 3 + 2 * 5 + 4, 4, streaming, Tiling(2, (), 2))
    with pytest.raises(IllegalPlan, match="group-scratch"):
        planned(network, ("f",), 2 * 3 + 2 * 5 + 3, 4, streaming, Tiling(2, (), 2))
    with pytest.raises(IllegalPlan, match="tiling-subgroups"):
        planned(network, ("f",), 99, 3, streaming, Tiling(2, (), 2))


@pytest.mark.parametrize(
    ("geometry", "blocks", "need", "subgroups", "crossing"),
    [
        # A pool's block of one channel reads that channel, however many may come at a time: 2 x 3 of 4 x 6.
        (Geometry("pool", MAP, MAP, (1, 1)), Blocks(2, 3, 1, 3), 2 * 3 + 2 * 3, 2 * 3, SIZE),
        # Windows of 3 x 1 on tiles of two rows: 3, 4 and 3 rows of six.
        (Geometry("pool", MAP, MAP, (3, 1), padding=(1, 0, 1, 0)), Blocks(2, 3, 4, 1), 4 * 3 + 4 * 6, 6, 240),
        # A convolution reads all channels for each of its two blocks, one channel at a time.
        (Geometry("conv", MAP, MAP, (1, 1)), Blocks(6, 3, 2, 1), 18 + 2 * 18 + 2, 2, 2 * SIZE),
        # In two groups every block has channels of its own.
        (Geometry("conv", MAP, MAP, (1, 1), groups=2), Blocks(6, 3, 2, 9), 2 * 18 + 2 * 18 + 4, 2, SIZE),
    ],
)
def test_blocks_hold_a_window_a_block_and_the_weights_between(
    geometry: Geometry, blocks: Blocks, need: int, subgroups: int, crossing: int
) -> None:
    weights = {"conv": 16 // geometry.groups, "pool": 0}[geometry.kind]
    network = one(geometry, weights=weights)
    streaming = (("x", crossing), ("y", SIZE))
    planned(network, ("f",), need, subgroups, streaming, blocks)
    with pytest.raises(IllegalPlan, match="group-scratch"):
        planned(network, ("f",), need - 1, subgroups, streaming, blocks)
    with pytest.raises(IllegalPlan, match="streaming-bytes"):
        planned(network, ("f",), need, subgroups, (("x", crossing - 1), ("y", SIZE)), blocks)


CHANNELS_LAST = (1, 8, 8, 4)
FOUR = Geometry("conv", (1, 8, 8, 1), (1, 8, 8, 1), (3, 1), (1, 1), (1, 0, 1, 0), (1, 1))


@pytest.mark.parametrize(
    ("geometry", "shape"),
    [
        (Geometry("elementwise", CHANNELS_LAST, CHANNELS_LAST, layout="NHWC"), (1, 8, 4)),  # along columns
        (Geometry("elementwise", (1, 8, 6, 8), (1, 8, 6, 8)), (1, 6, 8)),  # along rows and columns
        (Geometry("elementwise", (1, 8, 6, 8), (1, 8, 6, 8)), (1, 8)),  # along columns
    ],
)
def test_a_matrix_is_repeated_over_maps_along_the_axes_that_operators_match(
    geometry: Geometry, shape: tuple[int, ...]
) -> None:
    """The last dimensions are matched, whatever rows and features the matrix has by itself."""
    whole = geometry.output
    sizes = {"c": whole, "z": shape, "y": whole}
    made = OperatorSpec("f", "F", ["c", "z"], ["y"], 0, 0, geometry)
    rows = [(name, prod(n), "activation" if name == "y" else "input") for name, n in sizes.items()]
    network = Network.build("n", rows, [made], ["y"], shapes=sizes)  # type: ignore[arg-type]
    assert "f may read z along other axes" in str(access_of(Maps(network), 0))


FLAT = Geometry("fully_connected", (1, 64), (1, 64))


@pytest.mark.parametrize("geometry", [FOUR, FLAT])
def test_a_matrix_read_as_a_map_is_no_map_of_its_rows(geometry: Geometry) -> None:
    """[1, 8, 8] read as [1, 8, 8, 1], or in one row, has its rows as channels."""
    rows = [(name, 64, "input" if name in "xw" else "activation") for name in "xzywv"]
    operators = [
        OperatorSpec("before", "F", ["x"], ["z"], 0, 0, None),
        OperatorSpec("f", "F", ["z"], ["y"], 0, 0, geometry),
        OperatorSpec("maps", "F", ["w"], ["v"], 0, 0, FOUR),
    ]
    network = Network.build("n", rows, operators, ["y", "v"], shapes={"z": (1, 8, 8)})  # type: ignore[arg-type]
    assert Maps(network).of(1) == Map(1, 8, 8, 1, 1)
    assert "f may read z along other axes" in str(access_of(Maps(network), 1))
