"""What else would need how much RAM on a microcontroller."""
