"""What networks run on: chips, microcontroller boards and SoCs, and the files that state them."""
