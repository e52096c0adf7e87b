"""The planners: one package for each way to plan a network onto a chip."""
