"""The methods of other fusers, for `--search`, `--space` and the baselines beside a result.

Algorithm 1 of Optimus, the spaces and the cost model of DNNVM and Efficient-S. The product's own search is
not here.
"""
