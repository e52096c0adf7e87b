"""Other methods on a microcontroller, and the RAM that they need."""
