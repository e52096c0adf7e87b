"""MiniMalloc's CSV files go in and out unharmed, and a bad one is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.base.errors import InputError
from onchip.planners.packing import Buffer, pack, read_buffers, write_buffers
from planners.packing.instances import featured

names = st.text(st.characters(codec="utf-8"), max_size=12)


@pytest.mark.thorough
@given(st.integers(0, 500), st.lists(names, min_size=7, max_size=7, unique=True))
@settings(max_examples=60, deadline=None)
def test_what_is_written_reads_back(
    tmp_path_factory: pytest.TempPathFactory, seed: int, ids: list[str]
) -> None:
    buffers, _ = featured(seed)
    path = tmp_path_factory.getbasetemp() / "round.csv"
    write_buffers(path, buffers, ids[: len(buffers)])
    back = read_buffers(path)
    assert back.ids == tuple(ids[: len(buffers)])
    assert back.buffers == tuple(buffers)


def test_offsets_come_out_and_hold_when_read_again(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n")
    given = read_buffers(path)
    offsets = pack(given.buffers, 12).offsets
    write_buffers(path, given.buffers, given.ids, offsets)
    assert path.read_text().splitlines()[0] == "id,lower,upper,size,offset"
    placed = read_buffers(path)
    assert placed.ids == ("b1", "b2", "b3", "b4", "b5")
    assert tuple(b.offset for b in placed.buffers) == offsets
    assert pack(placed.buffers, 12).offsets == offsets


def test_every_column_and_the_older_names(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text(
        "size,buffer_id,start,end,gaps,hint,alignment,offset\r\n"
        '64,"a,b",0,9,2-3 5-5,-1,32,96\r\n8,,-4,0,,7,,\r\n'
    )
    found = read_buffers(path)
    assert found.ids == ("a,b", "")
    assert found.buffers == (Buffer(0, 10, 64, 32, 96, ((2, 4), (5, 6))), Buffer(-4, 1, 8))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", "line 1: has no column id, lower, size, upper"),
        ("a,b\n1,2\n", "line 1: has no column"),
        ("id,lower,upper,size\n0,0,1,x\n", "line 2: size is no whole number: 'x'"),
        ("id,lower,upper,size\n0,0,1,4\n1,0,1\n", "line 3: 3 values for 4 columns"),
        ("id,lower,upper,size\n0,0,1,4\n0,0,1,4\n", "line 3: a second buffer '0'"),
        ("id,lower,upper,size\n0,5,5,4\n", "line 2: an empty live range"),
        ("id,lower,upper,size,gaps\n0,0,5,4,1:2\n", "line 2: a gap is not written lower-upper"),
        ("id,lower,upper,size,gaps\n0,0,5,4,1-2@0:2\n", "line 2: a gap in which a part"),
        ("id,lower,upper,size,offset\n0,0,5,4,-1\n", "line 2: an offset"),
        ("id,lower,upper,size,alignment,offset\n0,0,5,4,4,6\n", "line 2: an offset, 6, that is no multiple"),
        ("id,lower,upper,size,end\n0,0,5,4,4\n", "line 1: has a column twice"),
        ("id,lower,upper,size,weight\n0,0,5,4,4\n", "line 1: has a column it should not: 'weight'"),
        ('id,lower,upper,size\n"0,0,5,4\n', "line 2: unexpected end"),
        (f"id,lower,upper,size\n0,0,1,{'9' * 5000}\n", "line 2: size is no whole number"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str, names: str) -> None:
    path = tmp_path / "buffers.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_buffers(path)
    assert str(caught.value).startswith(f"{path}: {names}")
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    path = tmp_path / "buffers.csv"
    path.write_bytes(b"id,lower,upper,size\n\xff,0,1,4\n")
    with pytest.raises(InputError, match="UTF-8"):
        read_buffers(path)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "buffers.csv"
    path.write_text("old")
    with pytest.raises(ValueError, match=r"shorter|longer"):
        write_buffers(path, [Buffer(0, 1, 4)], ["a", "b"])
    assert path.read_text() == "old"
