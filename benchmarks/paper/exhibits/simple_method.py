"""Exhibits of the paper whose page is docs/simple-method.md."""

from __future__ import annotations

from exhibits.record import Exhibit

SCRIPT = "paper/simple_method.py --only"
HOW = "branches.md#how-a-module-is-processed"
BY_HAND = "tests/planners/branches/test_modules_by_hand.py"
PLANNING = "tests/planners/branches/test_planning.py"
SIZES = "tests/planners/branches/test_sizes.py"
PAGE = "tests/documentation/test_simple_method_page.py"

FIGURES = (
    Exhibit(
        "Fig. 1",
        "weights and feature maps by layer, Inception-V3 and ResNet-50",
        f"{SCRIPT} fig1",
        "simple-method.md#fig-1-weights-and-feature-maps-by-layer",
        f"{PAGE}::test_weights_grow_and_maps_shrink",
        "agrees",
        "weights grow and maps shrink with the index on both; the text prints no sizes",
    ),
    Exhibit(
        "Fig. 2",
        "modules with a concat, with a sum, and modules in modules",
        "onchip.planners.branches.modules",
        HOW,
        f"{BY_HAND}::test_an_inception_module_with_two_modules_in_it",
        "agrees",
        "modules of a concat, of a sum, and within others are found as drawn",
    ),
    Exhibit(
        "Fig. 3",
        "the compiler: parse, optimise, allocate, generate",
        "onchip.planners.branches.plan",
        "branches.md#two-commands",
        "tests/test_branches_command.py::test_inception_v3_has_the_paper_s_table_figure_by_figure",
        "agrees",
        "from a file to a program with addresses; what follows for the NPU's own code is not published",
    ),
    Exhibit(
        "Fig. 4",
        "the eleven modules of Inception-V3",
        f"{SCRIPT} claims",
        "simple-method.md#the-papers-claims",
        "tests/planners/branches/test_zoo_modules.py::test_inception_v3_is_as_the_paper_shows_it",
        "agrees",
        "eleven, with their branches",
    ),
    Exhibit(
        "Fig. 5",
        "branches in descending order of what they require",
        f"{SCRIPT} working",
        "simple-method.md#the-working-memory",
        f"{SIZES}::test_orders_are_descending_in_what_the_branches_require",
        "differs",
        "descending on all modules, in an order that leaves out the copy of a layer that reads the module's"
        " input; with it counted, as printed, no module has II as long as the module's input has no part in"
        " what a layer requires (IFM.Partial); with a quarter or an eighth of the input for that part, and"
        " nothing else changed, reduction-a alone has II and the paper's 600 KB move; with an eighth"
        " branches descend on all modules, too",
    ),
    Exhibit(
        "Fig. 6",
        "the modules' inputs held at each layer of nested modules",
        "onchip.planners.branches.memory",
        HOW,
        f"{PLANNING}::test_processing_two_where_and_only_where_one_does_not_fit",
        "agrees",
        "summed over the depths, written down anew by the test",
    ),
    Exhibit(
        "Fig. 7",
        "what earlier branches occupy of the module's output",
        "onchip.planners.branches.memory",
        HOW,
        f"{PLANNING}::test_processing_two_where_and_only_where_one_does_not_fit",
        "agrees",
        "summed over earlier branches, written down anew by the test",
    ),
    Exhibit(
        "Fig. 8",
        "a branch by processing I, layer by layer",
        "onchip.planners.branches.process",
        HOW,
        f"{PLANNING}::test_processing_one_keeps_every_map_on_chip",
        "agrees",
        "with I no map of the module crosses",
    ),
    Exhibit(
        "Fig. 9",
        "all that crosses off chip, naive and proposed, by module",
        f"{SCRIPT} fig9",
        "simple-method.md#fig-9-all-that-crosses-weights-and-feature-maps",
        f"{PAGE}::test_fig_9",
        "agrees",
        "its bars are columns of Table 1, which agree to the last digit",
    ),
    Exhibit(
        "Fig. 10",
        "memory required and available at each layer of the eleven modules",
        f"{SCRIPT} fig10 working",
        "simple-method.md#fig-10-required-against-available",
        f"{PAGE}::test_fig_10",
        "agrees",
        "one module exceeds what is available, reduction-a, with a working memory that the text leaves open:"
        " of eleven rules tried, five give the paper's result",
    ),
    Exhibit(
        "Fig. 10, order",
        "branches re-ordered by what they require",
        f"{SCRIPT} fig10 claims",
        "simple-method.md#fig-10-required-against-available",
        f"{PAGE}::test_claims",
        "differs",
        "by what the hungriest layer of each requires they descend in 9 of 11 modules; in reduction-a and"
        " reduction-b ours leaves copies of the module's input out of the order, which stand in the rows",
    ),
    Exhibit(
        "Fig. 10, available",
        "section 4: what is available decreases from branch to branch",
        f"{SCRIPT} fig10 claims",
        "simple-method.md#the-papers-claims",
        f"{PAGE}::test_claims",
        "agrees",
        "at the first layer of each branch there is less in 11 of 11 modules; layers inside a branch that"
        " forks again have less still",
    ),
)

ALGORITHMS = (
    Exhibit(
        "Algorithm 1",
        "the optimisation unit: six steps for every module",
        "onchip.planners.branches.plan",
        HOW,
        f"{PLANNING}::test_plans_are_legal_and_never_worse_than_naive",
        "agrees",
        "its step 2, micro-instructions, depends on hardware that is not published: the chip file's order",
    ),
    Exhibit(
        "Algorithm 2",
        "module detection without long skip connections",
        "onchip.planners.branches.detection",
        HOW,
        "tests/planners/branches/test_detection.py::test_on_any_network_it_finds_what_the_definition_says",
        "agrees",
        "against the definition on random networks",
    ),
    Exhibit(
        "Algorithm 3",
        "re-ordering of branches",
        f"{SCRIPT} working",
        "simple-method.md#the-working-memory",
        f"{PAGE}::test_working_memory",
        "differs",
        "as Fig. 5: counted as printed 600 KB move with a quarter or an eighth of the module's input for"
        " IFM.Partial, 0 without that part",
    ),
    Exhibit(
        "Algorithm 4",
        "size and offset of the modules' inputs",
        "onchip.planners.branches.memory",
        HOW,
        f"{PLANNING}::test_processing_two_where_and_only_where_one_does_not_fit",
        "agrees",
        "computed twice, by the planner and by the test",
    ),
    Exhibit(
        "Algorithm 5",
        "what is occupied of the module's output",
        "onchip.planners.branches.memory",
        HOW,
        f"{PLANNING}::test_processing_two_where_and_only_where_one_does_not_fit",
        "agrees",
        "computed twice, by the planner and by the test",
    ),
    Exhibit(
        "Algorithm 6",
        "branch processing I and II with forwarding",
        f"{SCRIPT} working",
        "simple-method.md#the-working-memory",
        f"{PAGE}::test_working_memory",
        "agrees",
        "reduction-a alone is processed with II, as in the text",
    ),
)

FINDINGS = (
    Exhibit(
        "Table 1",
        "KB and accesses of eleven modules",
        f"{SCRIPT} table1",
        "simple-method.md#table-1",
        f"{PAGE}::test_table_1",
        "agrees",
        "132 figures, to the last digit",
    ),
    Exhibit(
        "97.59 %",
        "less feature-map data off chip (abstract, section 4, conclusion)",
        f"{SCRIPT} claims",
        "simple-method.md#the-papers-claims",
        f"{PAGE}::test_claims",
        "agrees",
        "97.59 %",
    ),
    Exhibit(
        "1/50",
        "of the off-chip accesses (abstract, section 4, conclusion)",
        f"{SCRIPT} claims",
        "simple-method.md#the-papers-claims",
        f"{PAGE}::test_claims",
        "agrees",
        "4 of 200",
    ),
    Exhibit(
        "47.14 %",
        "of all that crosses remains (section 4)",
        f"{SCRIPT} claims",
        "simple-method.md#the-papers-claims",
        f"{PAGE}::test_claims",
        "agrees",
        "21,673.5 of 45,977.5 KB",
    ),
)

EXHIBITS: tuple[Exhibit, ...] = FIGURES + ALGORITHMS + FINDINGS
