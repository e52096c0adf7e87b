"""onchip plans a neural network onto a chip's memory, proves the plan, runs it and shows it."""
