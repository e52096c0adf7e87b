"""Modules of branches, planned one by one within the memory (A Simple Method)."""
