"""Branches decides, module by module, the order of branches and the regions of memory that they share.

A module is a part of the network that starts at one tensor, divides into branches and joins them in a concat
or a sum: an inception module, a residual block. Source: A Simple Method for Energy-Efficient Processing (Kim
et al.), Algorithms 1 to 6. Modules are found once over the whole network (`detection`); each is then planned
by itself: branches in descending order of the memory that they need, the input kept until the last branch has
read it, every branch writing straight into its part of the output if that fits.
"""
