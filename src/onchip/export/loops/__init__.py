"""A plan as loops, copies and boxes that a back end can follow, and as a C program that runs them."""
