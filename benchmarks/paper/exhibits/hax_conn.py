"""Exhibits of the paper whose page is docs/hax-conn.md."""

from __future__ import annotations

from exhibits.hax_conn_equations import EQUATIONS
from exhibits.hax_conn_places import PAGE, PAPERS, SETUP, SHOWN, TESTS, printed
from exhibits.hax_conn_sentences import SENTENCES
from exhibits.hax_conn_time import TIMES
from exhibits.record import Exhibit

FIGURES = (
    Exhibit(
        "Fig. 1",
        "three ways to run VGG-19 and ResNet-101 on Xavier",
        printed("fig1"),
        f"{PAGE}#fig-1-three-ways-to-run-two-networks",
        f"{SHOWN}::test_a_section_is_what_the_script_prints",
        "differs",
        "the paper's second case is 10.6 ms and ours 12.21: without contention, all else equal, ours is"
        " 10.60,"
        " which is ResNet-101 alone on the DLA",
    ),
    Exhibit(
        "Fig. 2",
        "the method: groups, profiles, slowdown, solver",
        "onchip.multi_dnn",
        "corun-profiles.md#layer-groups",
        f"{TESTS}/test_grouping.py::test_the_papers_networks_have_groups",
        "agrees",
        "groups, profiles, slowdown and solver are steps of `onchip corun`",
    ),
    Exhibit(
        "Fig. 3",
        "use of the memory controller by 25 convolutions on GPU and DLA",
        printed("fig3"),
        f"{PAGE}#fig-3-the-bandwidth-of-a-black-box-in-four-steps",
        f"{SHOWN}::test_a_section_is_what_the_script_prints",
        "not explained",
        "of many networks the text says that larger filters ask for less, as here, and larger inputs for"
        " more; here larger inputs ask for no more, or less (5x5: 30 against "
        "35 GB/s on the GPU). Tried: 50 us more a layer, with which they ask for more on the GPU, a"
        " 3x3 63 against 38 and a 5x5 29 against 27, and a 3x3 on the DLA, 27 against 22, but a 5x5 on the"
        " DLA for no more; and in Table 2 GoogleNet's 141 layers take 2.32 ms in all on the GPU, 16 us each",
    ),
    Exhibit(
        "Fig. 4",
        "contention intervals of five layers on three accelerators",
        printed("fig4"),
        f"{PAGE}#fig-4-contention-intervals",
        f"{SHOWN}::test_a_section_is_what_the_script_prints",
        "agrees",
        "a sketch without figures; ours is run by the judge",
    ),
    Exhibit(
        "Fig. 5",
        "images per second of two copies of a network on Orin",
        printed("fig5"),
        f"{PAGE}#fig-5-two-copies-of-a-network-on-orin",
        f"{SHOWN}::test_every_other_section_is_what_the_script_prints",
        "not explained",
        "29 % at most there, in five experiments of which the text names one network, and 22.6 here in"
        " ten, under `light`. Tried: half of its contention, 27.1, none, 37.5; other figures need other"
        " strengths",
    ),
    Exhibit(
        "scenario 1, GoogleNet twice",
        "section 5.1: both copies keep their middle layers, 1-95 and 38-149, on the GPU",
        printed("fig5"),
        f"{PAGE}#fig-5-two-copies-of-a-network-on-orin",
        f"{SHOWN}::test_googlenet_twice_on_orin_has_a_middle_on_the_gpu",
        "agrees",
        "read as 1-95 of one copy and 38-149 of the other: one copy begins on the GPU and one ends there, and"
        " both have a middle there, under `light`",
    ),
    Exhibit(
        "Fig. 6",
        "GoogleNet's slowdown beside other networks",
        printed("fig6"),
        f"{PAGE}#fig-6-googlenets-slowdown",
        f"{SHOWN}::test_googlenets_slowdown_is_less_in_none_of_nine_and_by_rates_in_all",
        "not explained",
        "less than naive in all there; here, of its time alone on the GPU, as there, in none of nine under"
        " `light` and `medium`, in all under `heavy`. Tried: planned for the sum of rates (eq. 10), in all,"
        " but then one network runs after the other, but for GoogleNet twice under `light`, and the figure"
        " is of networks that run at once; 2.5 times `light`'s contention, in all, with the other network"
        " beside 25 to 90 % of GoogleNet's time, but other figures need other strengths",
    ),
    Exhibit(
        "Fig. 7",
        "latency while networks change, schedules improving",
        printed("fig7"),
        f"{PAGE}#fig-7-three-changes-of-networks",
        f"{TESTS}/test_dynamic.py::test_three_changes_end_where_the_planner_does",
        "not explained",
        "1.3 to 5.8 s to the optimum there, milliseconds here, by the exact search instead of Z3. Tried: Z3"
        " for the same three experiments, without contention 2 to 3 CPU s each; with it Z3 proves three"
        " groups a network",
        seconds=True,
    ),
)

TABLES = (
    Exhibit(
        "Table 1",
        "features of related work and of HaX-CoNN",
        "onchip.multi_dnn.baselines",
        "corun-search.md#baselines",
        f"{TESTS}/test_solve.py::test_herald_balances_load_and_forgets_transitions",
        "agrees",
        "all six features are there; of the seven others the three that the paper evaluates are rebuilt, each"
        " without what section 2 denies it; the table's marks are not in the text we have",
    ),
    Exhibit(
        "Table 2",
        "GoogleNet's groups: times, transitions, memory throughput",
        printed("table2", "readings"),
        f"{PAGE}#table-2-googlenet-and-twice-at-once",
        f"{PAPERS}::test_hax_conn_table_2",
        "agrees",
        "it is the profile that is planned with; its board is not named, and taken for Xavier",
    ),
    Exhibit(
        "1.40x to 2.02x",
        "section 3.2: how much slower groups of GoogleNet are on the DLA",
        printed("table2"),
        f"{PAGE}#table-2-googlenet-and-twice-at-once",
        f"{SHOWN}::test_ratios_of_table_2_are_1_40_to_2_02",
        "agrees",
        "the printed ratios; of the printed times they are 1.40 to 2.06",
    ),
    Exhibit(
        "Table 3",
        "the notation of the formulation",
        "onchip.multi_dnn.profile",
        "corun.md#what-a-schedule-costs",
        f"{TESTS}/test_simulate.py::test_one_network_alone_takes_its_own_time_and_its_transitions",
        "agrees",
        "what is given is in a profile and a workload, what is looked for in a schedule",
    ),
    Exhibit(
        "Table 4",
        "the three SoCs",
        printed("table4"),
        f"{PAGE}#table-4-the-socs",
        f"{SHOWN}::test_a_section_is_what_the_script_prints",
        "agrees",
    ),
    Exhibit(
        "Table 5",
        "times of ten networks alone on Orin and Xavier",
        printed("table5"),
        f"{PAGE}#table-5-times-alone",
        f"{PAPERS}::test_hax_conn_table_5",
        "agrees",
        "profiles are scaled to it, but for GoogleNet on Xavier, for which Table 2 is taken",
    ),
    Exhibit(
        "Table 6, results",
        "ten experiments against the two naive columns",
        printed("table6", "setup", "totals", "alone"),
        f"{PAGE}#table-6-scenarios-2-3-and-4",
        f"{SHOWN}::test_results_of_table_6_with_the_set_up_fitted_again",
        "not explained",
        "on units scaled so that the naive columns are the paper's, experiments 4, 5, 6, 9 and 10 are 5.3"
        " to 12.9 % off under `light`, and 4 gains 12.9 % where the paper gains nothing. Tried: the units"
        " fitted again without contention and at half, one and a half, two and three times `light`'s, by"
        " which 7, 6, 8, 7 and 7 of ten are more than 5 % off; by Table 5's times 0.7 % is gained in the"
        " middle; experiment 5 with FCN-ResNet18 on the DLA in its *GPU & DSA*, which the text leaves open,"
        " 12.03 ms for the paper's 12.09",
    ),
    Exhibit(
        "Table 6, median gain",
        "what ten experiments save over the two naive columns in the middle",
        printed("table6", "setup", "alone"),
        f"{PAGE}#table-6-scenarios-2-3-and-4",
        f"{SETUP}::test_the_median_gain_under_light_is_the_papers_within_two_points",
        "agrees",
        "17.1 % under `light`, the paper's 17.7, within two points; it hangs on the strength: with the units"
        " fitted again 21.7 without contention, 18.9 at half of `light`'s, 11.5 at one and a half, 5.6 at"
        " twice and 14.1 at three times; by Table 5's times 0.7",
    ),
    Exhibit(
        "Table 6, Herald",
        "the same experiments by Herald",
        printed("rivals", "layers", "alone"),
        f"{PAGE}#herald-and-h2h",
        f"{SETUP}::test_herald_is_slow_where_networks_are_cut_finely_and_h2h_is_not",
        "not explained",
        "slower than the GPU alone in eight of ten there, in three here (5, 6 and 8), in two where"
        " GoogleNet is synthetic, too. Tried: networks cut everywhere instead of in ten groups, in five,"
        " of which the same mappings are slower in one, 5, where transitions cost nothing; four times the"
        " contention, in eight, but then other columns are not the paper's",
    ),
    Exhibit(
        "Table 6, H2H",
        "the same experiments by H2H",
        printed("rivals", "layers", "alone"),
        f"{PAGE}#herald-and-h2h",
        f"{SETUP}::test_h2h_by_its_lists_alone_is_as_slow_as_the_papers",
        "not explained",
        "within 10 % of the paper's time in one of ten; slower than the GPU alone in none, there in six."
        " Tried: its last step, changes while they pay, left out, within 10 % in five; networks cut"
        " everywhere, in two; both, in seven; two and a half times the contention, slower than the GPU"
        " alone in five",
    ),
    Exhibit(
        "experiments 4 and 9",
        "section 5.2: Herald is better than H2H",
        printed("rivals", "layers", "alone"),
        f"{PAGE}#herald-and-h2h",
        f"{SHOWN}::test_who_is_best_in_experiments_4_8_9_and_10",
        "not explained",
        "6.64 and 6.31 ms, 87.15 and 74.84. Tried: H2H's last step left out, 6.74 and 85.96 for it, so that"
        " Herald is ahead in 4, but in 1, 6, 7 and 10, too; with networks cut everywhere as well, GoogleNet"
        " synthetic, 6.84 and 6.95, 96.76 and 97.11, ahead in both, and in 3 and 10; three times the"
        " contention, which the text names: ahead in 4, not in 9, and in 1, 2, 7 and 10",
    ),
    Exhibit(
        "experiment 8",
        "section 5.2: H2H is the best baseline",
        printed("table6"),
        f"{PAGE}#table-6-scenarios-2-3-and-4",
        f"{SHOWN}::test_who_is_best_in_experiments_4_8_9_and_10",
        "agrees",
        "4.48 ms under `light`; the naive columns 5.06 and 4.97, Herald 5.83",
    ),
    Exhibit(
        "experiment 8, the DLA",
        "section 5.2: H2H's schedules over-subscribe it",
        printed("rivals"),
        f"{PAGE}#herald-and-h2h",
        f"{SHOWN}::test_h2h_does_not_over_subscribe_the_dla_in_experiment_8",
        "not explained",
        "H2H's schedule keeps the DLA busy for 3.41 of 4.48 ms, and no group waits for it; the GPU is"
        " busy for 4.48 of 4.48, and waited for. What changes that was not tried",
    ),
    Exhibit(
        "experiment 10",
        "section 5.2: GPU & DSP is the best baseline",
        printed("table6", "layers", "transitions"),
        f"{PAGE}#herald-and-h2h",
        f"{SHOWN}::test_who_is_best_in_experiments_4_8_9_and_10",
        "not explained",
        "178.20 ms, Herald 154.23 and H2H 154.61. Tried: transitions, which are assumed on this board, ten"
        " times as long, 200.70 and 189.08, so that GPU & DSP is the best; but with 9, 11, 14 and 20 times"
        " H2H takes 171.79, 175.92, 168.27 and 168.70, and is the best. With networks cut everywhere 169.50"
        " and 163.05",
    ),
    Exhibit(
        "Table 7",
        "what Z3 on a CPU core costs twelve networks on the GPU",
        printed("table7"),
        f"{PAGE}#table-7-what-the-search-costs-others",
        f"{SHOWN}::test_a_section_is_what_the_script_prints",
        "not explained",
        "0.16 to 1.64 % there; as memory traffic 0.02 to 0.06 % for each GB/s here, whatever the network,"
        " so that traffic alone does not tell the networks apart. Tried: the search's priority on this"
        " machine, which is not the paper's, 1 % at most in idle time, 3 to 88 at ordinary priority",
    ),
    Exhibit(
        "Table 8",
        "all pairs on Orin: the best baseline and the gain over it",
        printed("table8"),
        f"{PAGE}#table-8-all-pairs-on-orin-balanced",
        f"{SHOWN}::test_gains_are_counted_from_the_cells_of_table_8",
        "not explained",
        "46 of 55 pairs gain at least 1.04, rounded, under `light`, the least gain that it prints, and"
        " 45 there; but 42"
        " of 55 cells agree on whether there is one. Tried: 1.7 times the contention, by which VGG19 has"
        " three as there, but then 31 of all 55 gain. A gain is 0.04 off the paper's in the median, 0.18 at"
        " most",
        parts=("table8",),
    ),
    Exhibit(
        "Table 8, best baselines",
        "section 5.4: Herald and H2H are mostly worse than the naive baselines",
        printed("table8_rivals", "transitions"),
        f"{PAGE}#table-8-all-pairs-on-orin-balanced",
        f"{SHOWN}::test_best_baselines_are_counted_from_the_cells_of_table_8",
        "not explained",
        "Herald, H2H or Mensa is best in 32 of 55 here, 5 there. Tried: transitions three times as long,"
        " which are assumed, in 16, ten times, in 9; networks cut everywhere, in 30, with H2H's last step"
        " left out, too, in 19; the best is the paper's in 16, 22, 23, 16 and 24 cells",
    ),
)


METHODS = (
    Exhibit(
        "Layer groups",
        "section 3.1: where a network may change its accelerator",
        "corun_profiles.py",
        "corun-profiles.md#layer-groups",
        f"{TESTS}/test_grouping.py::test_groups_are_the_network_cut_where_one_tensor_crosses",
        "not explained",
        "two of the three rules: fused layers stay together, and what a unit lacks stays apart. The second,"
        " on reformatting, is not rebuilt: when a unit reformats its framework knows, and the text does not"
        " say. In its place a pooling stays with what it makes smaller",
    ),
    Exhibit(
        "Table 2's cuts",
        "the groups that it cuts GoogleNet into",
        "corun_profiles.py",
        "corun-profiles.md#table-2s-groups",
        "tests/multi_dnn/test_profiles_page.py",
        "agrees",
        "all but one cut fall on the end of a module or of the pooling behind it",
    ),
    Exhibit(
        "D-HaX-CoNN",
        "section 3.5: schedules that improve while networks run, and sets known beforehand",
        "onchip.multi_dnn.dynamic",
        "corun-dynamic.md#sets-that-nobody-knows-beforehand",
        f"{TESTS}/test_dynamic.py::test_better_schedules_take_effect_at_the_next_frame_only",
        "agrees",
        "the three steps of section 5.3, with a search of our own",
    ),
    Exhibit(
        "Z3",
        "section 3.5: the formulation given to a solver",
        printed("z3"),
        "corun-dynamic.md#a-second-opinion",
        f"{TESTS}/test_z3_check.py::test_z3_proves_what_the_exact_search_proves",
        "agrees",
        "with waiting and true overlaps in it, which the printed equations lack",
    ),
)

CLAIMS = (
    Exhibit(
        "32 % and 29 %",
        "abstract: latency and throughput improve up to so much",
        printed("claims", "strength"),
        f"{PAGE}#how-strong-contention-is",
        f"{SHOWN}::test_every_other_section_is_what_the_script_prints",
        "not explained",
        "the 32 is taken for Table 8's 1.32, which experiment 3's H2H over the result is, too: under"
        " `light` 24 (Table 8) and 22.6 %. Tried: half of its contention, 31 and 27.1; other figures need"
        " other strengths",
    ),
    Exhibit(
        "45 %",
        "abstract: memory contention is reduced up to so much",
        printed("claims", "fig6"),
        f"{PAGE}#fig-6-googlenets-slowdown",
        f"{SHOWN}::test_the_abstracts_45_is_passed_by_stronger_contention",
        "not explained",
        "the text ties it to no figure; Fig. 6's GoogleNet is slowed down less in none of nine pairs under"
        " `light`. Tried: 1.75 and 2 times its contention, 2.1 and 68.6; the sum of rates, all of it, but"
        " that is no co-run",
    ),
    Exhibit(
        "70 %",
        "section 2: not knowing contention costs up to so much",
        printed("claims", "strength"),
        f"{PAGE}#how-strong-contention-is",
        f"{SHOWN}::test_every_other_section_is_what_the_script_prints",
        "not explained",
        "3.6 % at most over 55 pairs under `light`. Tried: three and four times its contention, 63.8 and"
        " 199.9, as a share of the longer time 66.7 at four; other figures need other strengths. As"
        " Herald and H2H in Table 6, for the text points to its section, 34.6; by the paper's own table"
        " 95.9 and 72.9",
    ),
    Exhibit(
        "75 %",
        "scenario 2: Herald's and H2H's estimates of latency are wrong by up to so much",
        printed("claims", "strength"),
        f"{PAGE}#how-strong-contention-is",
        f"{SHOWN}::test_rivals_take_longer_than_they_expect_by_the_most_of_their_own_table",
        "not explained",
        "the text blames contention, by which estimates are too low; here they take longer than estimated,"
        " by 24.6 % at most under `light`,"
        " in experiment 6 of its four, 1, 2, 6 and 10. Tried:"
        " 2 and 2.5 times its contention, 53.5 and 79.3, as a share of"
        " the time that they take 74.9 at four; other figures need other strengths",
    ),
    Exhibit(
        "23 %",
        "scenario 2: up to so much better",
        printed("claims", "table6"),
        f"{PAGE}#the-papers-claims",
        f"{SHOWN}::test_scenarios_2_and_4_are_counted_from_table_6",
        "not explained",
        "over the best of four baselines, as in the table, 8.4 under `light`, and nothing in experiment 1,"
        " where H2H has the result itself. Over the naive columns alone, which are the best there in three"
        " of the four, 23.4, in experiment 10, and 21.8 and 15.6 in 1 and 6, where the paper has its 23."
        " Tried: Herald's and H2H's networks cut everywhere, 21.7, but their own times are not the paper's"
        " then",
    ),
    Exhibit(
        "22 %",
        "scenario 4: up to so much better",
        printed("claims", "setup"),
        f"{PAGE}#the-papers-set-up",
        f"{SHOWN}::test_scenarios_2_and_4_are_counted_from_table_6",
        "not explained",
        "over the best of four baselines 6.8 under `light`, over the naive columns alone 19.3, or 16.2"
        " saved; by the paper's own times experiment 5, whose 22 it is, has 27.5, or 21.5 saved. Tried:"
        " FCN-ResNet18 on the DLA in its *GPU & DSA*, which the text leaves open: a result of 12.03 ms for"
        " the paper's 12.09, and 28.1 over the naive columns, or 21.9 saved; but Herald, H2H and another"
        " way to place whole networks take less than both columns then",
    ),
    Exhibit(
        "never worse",
        "no result is worse than a naive baseline",
        printed("claims", "pairs"),
        f"{PAGE}#all-pairs-objectives-and-sets-of-constants",
        f"{SETUP}::test_nothing_planned_is_worse_than_a_baseline",
        "agrees",
    ),
    Exhibit(
        "35 of 45 pairs",
        "section 5.4: so many improve",
        printed("claims", "table8"),
        f"{PAGE}#the-papers-claims",
        f"{SHOWN}::test_gains_are_counted_from_the_cells_of_table_8",
        "not explained",
        "its table has 36 of 45 pairs of two different networks, ours 40 from 1.04 on, rounded, under"
        " `light`, 32 under"
        " `medium`; of all 55 with a network beside itself 45, 46 and 37, but only 42 and 35 cells agree."
        " Tried: 1.7 times `light`'s contention, with which VGG19 has three as there, but then 31 of all 55"
        " gain",
    ),
    Exhibit(
        "GoogleNet's pairs",
        "section 5.4: any pair with it improves",
        printed("claims", "table8"),
        f"{PAGE}#the-papers-claims",
        f"{SHOWN}::test_gains_are_counted_from_the_cells_of_table_8",
        "agrees",
        "ten of ten under `light`",
    ),
    Exhibit(
        "CaffeNet's pairs",
        "section 5.4: it is still able to improve, though slower on the DLA",
        printed("claims", "table8"),
        f"{PAGE}#the-papers-claims",
        f"{SHOWN}::test_gains_are_counted_from_the_cells_of_table_8",
        "agrees",
        "in number: 7 of 10 in its table and 7 of 10 here under `light`; five of them are the same",
    ),
    Exhibit(
        "three pairs of VGG19",
        "section 5.4: so few improve",
        printed("vgg19"),
        f"{PAGE}#vgg19s-pairs",
        f"{SETUP}::test_vgg19_gains_with_three_networks_where_contention_is_stronger",
        "not explained",
        "eight here under `light`. The text names VGG19's time on the DLA and contention. Tried: all of it"
        " 1.5 and 3 x as slow on the DLA, eight and six; 1.7 times the contention, three: DenseNet and"
        " GoogleNet, which it names, and ResNet101 for its ResNet18, but then 31 of all 55 gain; fully"
        " connected layers 4 or 8 x as slow on the DLA, three, but not the paper's",
    ),
    Exhibit(
        "contention's constants",
        "section 3.3: slowdown by PCCS, decoupled from profiles",
        printed("sensitivity"),
        f"{PAGE}#sensitivity-to-the-contention-model",
        f"{TESTS}/test_contention.py::test_the_regions_by_hand",
        "not explained",
        "the text has neither constants nor the formula of PCCS, which it cites. Tried: a reconstruction with"
        " three sets of constants; what hangs on each is measured, and none gives all of the figures",
    ),
)

EXHIBITS: tuple[Exhibit, ...] = (*FIGURES, *TABLES, *EQUATIONS, *METHODS, *CLAIMS, *TIMES, *SENTENCES)
