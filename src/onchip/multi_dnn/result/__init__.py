"""The answer of `onchip corun`, and its printing."""
