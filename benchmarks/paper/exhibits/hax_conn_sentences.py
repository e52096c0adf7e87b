"""Exhibits of HaX-CoNN's section 5 that are sentences on single experiments and networks."""

from __future__ import annotations

from exhibits.record import Exhibit, Outcome

__all__ = ["SENTENCES"]

PAGE = "hax-conn.md#the-papers-claims"
TEST = "tests/multi_dnn/test_hax_conn_page.py::test_sentences_on_experiments_and_networks"


def sentence(
    name: str, shows: str, outcome: Outcome, reason: str, also: str = "", *, test: str = TEST
) -> Exhibit:
    """A row of the page's first table."""
    command = f"paper/hax_conn.py --only claims{also and ' ' + also}"
    return Exhibit(name, shows, command, PAGE, test, outcome, reason)


SENTENCES = (
    sentence(
        "profiling",
        "section 4: up to 3, 10 and 15 minutes for a network; for times, transitions and contention,"
        " or for the"
        " three boards: the text can be read both ways",
        "not explained",
        "not tried: a profile is computed here, in under 1 s, from shapes and scaled to Table 5's times;"
        " nothing is run on a board",
        "table5",
    ),
    Exhibit(
        "transitions after pools",
        "section 3.2: transitions get shorter towards the end, and much less after groups 39-53 and 95-109",
        "paper/hax_conn.py --only table2",
        "hax-conn.md#table-2-googlenet-and-twice-at-once",
        "tests/multi_dnn/test_hax_conn_page.py::test_transitions_of_table_2_against_the_text",
        "differs",
        "its own table is against the second half: 0.011 ms to the DLA after 39-52, which ends in no pool by"
        " its layers, 0.030 after 95-109, but 0.024 after 67-80 and 110-123, 0.007 at the end, without one,"
        " and 0.062 after 25-38, with one; from the first half of the groups to the"
        " second the mean falls from 0.052 to 0.029 ms, to the GPU from 0.084 to 0.054",
    ),
    sentence(
        "experiment 4, the DLA",
        "section 5.2: no layer on the DLA",
        "not explained",
        "6.11 ms with the DLA under `light` for 7.02 without. Tried: three times its contention, the"
        " paper's own reason, the DLA saves 0.2 %, four times, nothing; but that rests on units fitted under"
        " `light`, and *GPU & DSA* is slower than 7.37 then: fitted again at three times the result is"
        " 5.39, all of it on the DLA",
        "alone",
        test="tests/multi_dnn/test_hax_conn_page.py"
        "::test_stronger_contention_leaves_experiment_4_on_the_gpu_and_makes_rivals_slow",
    ),
    sentence(
        "experiments 1 and 6",
        "section 5.2: other schedules for the same networks on another SoC",
        "agrees",
        "under all three sets",
    ),
    sentence(
        "experiment 5, both units",
        "section 5.2: baselines on both units are slower than the GPU alone",
        "not explained",
        "Herald takes 15.66 ms for the GPU's 15.41, and H2H 13.80. Tried: H2H's last step left out, and"
        " nothing else changed, 15.66 for it, so that both are slower, as there, where they take 23.68 and"
        " 20.90; networks cut everywhere, GoogleNet synthetic, 20.65 and 14.31; both changes, 19.22 for H2H",
        "layers",
    ),
    sentence(
        "VGG19's and CaffeNet's baselines",
        "section 5.4: the fastest are all on the GPU alone",
        "not explained",
        "in 0 and 2 of ten pairs under `light`. Tried: 1.7 times its contention, in 7 and 8",
    ),
    sentence(
        "GPU & DLA",
        "section 5.1: two copies are not always faster on both units",
        "agrees",
        "slower than the GPU alone on some of ten networks under every set",
    ),
    sentence(
        "Mensa",
        "section 5.1: limited or no improvement",
        "agrees",
        "less than 5 % over the GPU alone",
    ),
)
