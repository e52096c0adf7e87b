"""Windows, held to their definition position by position."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from onchip.network.windows import Window, last_readers

windows = st.builds(
    lambda taps, **sides: Window(span=(taps - 1) * sides["dilation"] + 1, **sides),
    size=st.integers(1, 12),
    outputs=st.integers(1, 12),
    taps=st.integers(1, 4),
    stride=st.integers(0, 4),
    dilation=st.integers(1, 3),
    before=st.integers(-3, 8),
)


def read_by(window: Window, output: int) -> list[int]:
    """The inputs that one output position reads, those that do not exist included."""
    first = output * window.stride - window.before
    return [first + tap * window.dilation for tap in range(window.taps)]


@given(windows, st.integers(0, 12), st.integers(0, 12))
def test_ranges_are_those_from_the_first_tap_to_the_last(window: Window, first: int, count: int) -> None:
    first = min(first, window.outputs)
    end = min(first + count, window.outputs)
    spanned = {
        at
        for output in range(first, end)
        for at in range(read_by(window, output)[0], read_by(window, output)[-1] + 1)
    }
    between = range(min(spanned), max(spanned) + 1) if spanned else range(0)
    inside = [at for at in between if 0 <= at < window.size]
    assert window.reads((first, end)) == ((inside[0], inside[-1] + 1) if inside else (0, 0))
    before, behind = window.missing((first, end))
    assert before == sum(at < 0 for at in between)
    assert behind == sum(at >= window.size for at in between)


@given(windows)
def test_what_is_needed_up_to_an_output_and_from_it_on(window: Window) -> None:
    for outputs in range(1, window.outputs + 1):
        last = max(read_by(window, outputs - 1))
        assert window.end(outputs) == min(max(last + 1, 0), window.size)
        first = min(read_by(window, outputs - 1))
        assert window.start(outputs - 1) == min(max(first, 0), window.size)
    assert window.end(0) == 0


@given(windows)
def test_the_mirrored_window_reads_the_mirrored_inputs(window: Window) -> None:
    mirrored = window.mirrored()
    for output in range(window.outputs):
        turned = [window.size - 1 - at for at in read_by(window, output)]
        assert sorted(read_by(mirrored, window.outputs - 1 - output)) == sorted(turned)
    assert mirrored.mirrored() == window


@given(windows)
def test_it_clips_where_a_tap_of_some_window_does_not_exist(window: Window) -> None:
    ends = [at for output in range(window.outputs) for at in read_by(window, output)]
    if window.before <= 0 and window.stride:
        assert window.clips == any(at >= window.size for at in ends)
    if window.before > 0:
        assert window.clips


@given(windows, st.booleans())
def test_last_readers_are_those_of_every_tap(window: Window, reverse: bool) -> None:
    found = last_readers(window, reverse=reverse)
    for at in range(window.size):
        readers = [output for output in range(window.outputs) if at in read_by(window, output)]
        assert found[at] == ((min if reverse else max)(readers) if readers else -1)
