"""Random inputs for every way into tilewright, for as long as one likes: `python -m tilewright.testing.fuzz KIND`.

A case follows from one seed, and runs in a process of its own beside the one that counts, so that a crash or a hang is
a failure with a seed like any other. `harness` runs the cases; each other module is one kind of them.
"""
