"""Measurements of the kernels next to the libraries that a user would call instead. Start with `kernels`."""
