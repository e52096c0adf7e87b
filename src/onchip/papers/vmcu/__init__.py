"""vMCU as published: affine loop nests and the circular segment pool."""
