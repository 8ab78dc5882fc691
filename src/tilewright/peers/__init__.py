"""Other libraries computing a named workload, each in the ways in which it may be fastest, to measure kernels against.

`peers_of` gives the calls; `library_threads` limits the libraries' threads while they are timed. The libraries are
imported where they are used.
"""

from tilewright.peers.peer import LIBRARIES, Peer, library_threads, peers_of
from tilewright.peers.shape import Shape

__all__ = ["LIBRARIES", "Peer", "Shape", "library_threads", "peers_of"]
