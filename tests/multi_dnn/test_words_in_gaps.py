"""Why a unit is idle, as far as it fits the gap: whole words from the beginning."""

from onchip.multi_dnn.report.drawing import _begun


def test_a_sentence_is_cut_behind_a_word() -> None:
    assert _begun("gem is changing units", 1000, 10) == "gem is changing units"
    assert _begun("gem is changing units", 90, 10) == "gem is changing\N{HORIZONTAL ELLIPSIS}"
    assert _begun("gem is changing units", 20, 10) == ""
    assert _begun("gem is changing units", -5, 10) == ""
