"""What `onchip corun` answers, and how it is printed."""
