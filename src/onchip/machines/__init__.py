"""The machines of networks: chips, microcontroller boards and SoCs, and the files that state them."""
