"""`ray start` with the arguments of the command line, for a node that other nodes of the same machine may join.

Ray gives a node the address that other machines reach, even where 127.0.0.1 is asked for, and then listens to all of
them. Its one switch against that (see `cluster.ray_environment`) also forbids nodes that join, which on one machine
are as safe as the first. So it is asked here to let them.
"""

from __future__ import annotations

import sys

from tilewright.measure.fleet.cluster import LOOPBACK


def main() -> None:
    """Never returns if --block is given."""
    from ray._private import ray_constants, services
    from ray.scripts.scripts import main as ray

    if not ray_constants.ENABLE_RAY_CLUSTER:
        ray_constants.ENABLE_RAY_CLUSTER = True
        services.get_node_ip_address = lambda address=None: LOOPBACK
    sys.exit(ray())


if __name__ == "__main__":
    main()
