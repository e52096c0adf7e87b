"""What `onchip mcu` answers: the plan, the linked program, the front, how it is printed."""
