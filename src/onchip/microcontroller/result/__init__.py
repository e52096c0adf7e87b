"""The answer of `onchip mcu`: the plan, the linked program, the front, and their printing."""
