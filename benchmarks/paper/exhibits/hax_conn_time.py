"""Exhibits of HaX-CoNN that are sentences on how long searches take, and what they cost the networks."""

from __future__ import annotations

from exhibits.hax_conn_places import PAGE, PAPERS, SETUP, SHOWN, TESTS, printed
from exhibits.record import Exhibit

__all__ = ["TIMES"]

TIMES = (
    Exhibit(
        "under 3 s",
        "section 4: Z3's time to the optimum, in most experiments",
        printed("planning", "z3"),
        f"{PAGE}#planning-time-beside-z3",
        f"{TESTS}/test_hax_conn_page.py::test_z3_proves_most_experiments_in_under_three_seconds",
        "not explained",
        "by a search over events milliseconds. Z3 takes 0.2 to 5 CPU s on nine experiments, all but 8,"
        " without contention, which the paper's formulation has; with true overlaps in it 3 + 3 groups take"
        " as long. The averages that the paper prints were not given to Z3",
        seconds=True,
    ),
    Exhibit(
        "10 s for 985 layers",
        "section 4: time to the optimum for Inception-ResNet-v2",
        printed("planning", "z3_long"),
        f"{PAGE}#planning-time-beside-z3",
        f"{TESTS}/test_hax_conn_page.py::test_the_long_network_has_fifty_groups_and_a_proof",
        "not explained",
        "milliseconds with its proof, for the 50 groups that the network has here, beside GoogleNet's"
        " ten, by a search over events. Tried: Z3 for the same without contention, a minute; with it Z3"
        " proves three groups a network",
        seconds=True,
    ),
    Exhibit(
        "over 10 s",
        "section 5.2: how long Herald and H2H search",
        printed("searched"),
        f"{PAGE}#planning-time-beside-z3",
        f"{SETUP}::test_h2h_in_python_finds_what_h2h_finds",
        "not explained",
        "milliseconds in C++. Tried: every change judged in Python, about 10 ms for ten groups; each of"
        " 985 layers a group, too, over 10 s: two changes",
        seconds=True,
    ),
    Exhibit(
        "no more than 2 %",
        "section 5.3: what the search costs the networks",
        printed("table7"),
        f"{PAGE}#table-7-what-the-search-costs-others",
        f"{SHOWN}::test_a_section_is_what_the_script_prints",
        "not explained",
        "by the model less than a tenth of a percent for each GB/s of the search, but 1 GB/s is assumed, and"
        " under `light` the paper's figures need 8.6 to more than 40. Tried: measured for three networks,"
        " which share their two cores with it here, 1 % at most with idle priority, 3 to 88 % at ordinary"
        " priority",
    ),
    Exhibit(
        "5.8, 1.9 and 1.3 s",
        "section 5.3: time to the optimum after a change",
        printed("fig7"),
        f"{PAGE}#fig-7-three-changes-of-networks",
        f"{PAPERS}::test_hax_conn_figures_1_and_7",
        "not explained",
        "milliseconds, by the exact search instead of Z3. Tried: Z3 for the same three experiments, without"
        " contention 2 to 3 CPU s each; with it Z3 proves three groups a network",
        seconds=True,
    ),
)
