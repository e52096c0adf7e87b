from onchip.report.wording import exact, short_size, shorten, visible


def test_what_could_mislead_an_eye_is_an_escape() -> None:
    assert visible("a\nb\x1b\u202e\ud800\0") == r"a\nb\x1b\u202e\ud800\x00"
    assert visible("é 中 layer/0") == "é 中 layer/0"
    assert visible("") == "(unnamed)"
    assert len(visible("x" * 10_000)) <= 240


def test_a_long_name_keeps_both_ends() -> None:
    assert shorten("encoder/layer_11/output", 30) == "encoder/layer_11/output"
    short = shorten("encoder/layer_11/attention/output/dense", 20)
    assert len(short) == 20
    assert short.startswith("encode")
    assert short.endswith("put/dense")


def test_sizes_have_three_digits_and_binary_units() -> None:
    assert [short_size(n) for n in (0, 1023, 1024, 15_360, 2_496_960, 3 << 30)] == [
        "0 B",
        "1,023 B",
        "1.00 KiB",
        "15.0 KiB",
        "2.38 MiB",
        "3.00 GiB",
    ]
    assert short_size((1 << 20) - 1) == "1.00 MiB"
    assert exact(2_496_960) == "2,496,960 B (2.38 MiB)"
    assert exact(999) == "999 B"
