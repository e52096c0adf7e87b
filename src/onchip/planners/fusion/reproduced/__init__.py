"""Other fusers' own methods, for `--search`, `--space` and the baselines beside a result.

Algorithm 1 of Optimus, the spaces and the cost model of DNNVM and Efficient-S. The product's own search
stands outside.
"""
