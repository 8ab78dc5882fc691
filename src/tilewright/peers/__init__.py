"""Other libraries computing a named workload or a network, as fast as each can, to measure ours against.

`peers_of` gives the calls for a workload; `library_threads` limits the libraries' threads while they are timed, which
`take_turns` does fairly. `network_peer` makes a whole model ready. The libraries are imported where they are used.
"""

from tilewright.peers.networks import NETWORK_LIBRARIES, NetworkPeer, PeerError, network_peer
from tilewright.peers.peer import LIBRARIES, Peer, library_threads, peers_of
from tilewright.peers.shape import Shape
from tilewright.peers.turns import ONNXRUNTIME_SETTLE_S, OPENBLAS_SETTLE_S, OPENMP_SETTLE_S, settle_s, take_turns

__all__ = [
    "LIBRARIES",
    "NETWORK_LIBRARIES",
    "ONNXRUNTIME_SETTLE_S",
    "OPENBLAS_SETTLE_S",
    "OPENMP_SETTLE_S",
    "NetworkPeer",
    "Peer",
    "PeerError",
    "Shape",
    "library_threads",
    "network_peer",
    "peers_of",
    "settle_s",
    "take_turns",
]
