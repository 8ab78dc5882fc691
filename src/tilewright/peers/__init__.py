"""Other libraries computing a named workload, each in the ways in which it may be fastest, to measure kernels against.

`peers_of` gives the calls; `library_threads` limits the libraries' threads while they are timed, which `take_turns`
does fairly. The libraries are imported where they are used.
"""

from tilewright.peers.peer import LIBRARIES, Peer, library_threads, peers_of
from tilewright.peers.shape import Shape
from tilewright.peers.turns import OPENBLAS_SETTLE_S, OPENMP_SETTLE_S, take_turns

__all__ = [
    "LIBRARIES",
    "OPENBLAS_SETTLE_S",
    "OPENMP_SETTLE_S",
    "Peer",
    "Shape",
    "library_threads",
    "peers_of",
    "take_turns",
]
