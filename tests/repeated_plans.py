"""A plan in which an operator runs again, whole, by hand: the example of docs/plan-program.md."""

from __future__ import annotations

from onchip.plans import from_text

TEXT = """\
onchip.plan/2
network twice
tensor x 4 input
tensor z 2 input
tensor a 12 activation
tensor b 2 activation
tensor c 2 activation
tensor a.again 12 activation
tensor y 3 activation
operator wide Expand in x out a weights 5
operator narrow Conv in a out b
operator busy Conv in b z out c workspace 12
operator wide.again Expand in x out a.again weights 5
operator last Conv in a.again c out y
repeats wide.again wide
output y
chip tiny 1
budget 22
result status feasible
result traffic_bytes 0
result spill_bytes 0
result reload_bytes 0
result compulsory_bytes 9
result weight_bytes 10
result dram_bytes 19
result lower_bound_bytes 0
result peak_bytes 22
result extent_bytes 22
result seconds 0
program
  load x @0
  alloc a @4
  run wide
  alloc b @16
  run narrow
  free a
  load z @20
  alloc c @18
  scratch busy @4
  run busy
  free b
  free z
  alloc a.again @4
  run wide.again        # instead of a spill of a and its reload, 24 bytes
  free x
  alloc y @0
  run last
  free a.again
  free c
  store y
  free y
"""

PLAN = from_text(TEXT)
