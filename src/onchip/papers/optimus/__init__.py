"""Optimus as published: the group that Algorithm 2 grows."""
