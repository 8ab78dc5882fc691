"""Measuring on many machines: `Fleet` is a measurer whose devices are those of a Ray cluster.

`fleet` is what a tuner sees, with `connection` its end of the `link`, the process that talks to Ray for it and has
`dispatch` inside; `station` is what goes on at a device; `cluster`, `keeper` and `enlist` start machines and keep them
in.
"""

from tilewright.measure.fleet.cluster import Address, Node, find_address, running_nodes, start_node, stop_node
from tilewright.measure.fleet.devices import DeviceInfo
from tilewright.measure.fleet.fleet import LOCAL, Fleet, fleet_status, kinds_of
from tilewright.measure.fleet.station import DeviceSpec

__all__ = [
    "LOCAL",
    "Address",
    "DeviceInfo",
    "DeviceSpec",
    "Fleet",
    "Node",
    "find_address",
    "fleet_status",
    "kinds_of",
    "running_nodes",
    "start_node",
    "stop_node",
]
