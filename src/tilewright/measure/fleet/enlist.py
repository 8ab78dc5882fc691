"""Makes the actor of a device in the cluster, on the node that has the device, and waits for it.

`python -m tilewright.measure.fleet.enlist ADDRESS SPEC`. The actor lives as long as the cluster; when its node comes
back, it starts there again.
"""

from __future__ import annotations

import sys
from typing import Any

from tilewright.measure.fleet.cluster import NAMESPACE
from tilewright.measure.fleet.simulated import SimulatedStation
from tilewright.measure.fleet.station import DeviceSpec, Station

_READY_S = 45.0


def main(address: str, text: str) -> None:
    """Exits with 0 when the device answers."""
    import ray

    spec = DeviceSpec.read(text)
    ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
    options: dict[str, Any] = {
        "name": spec.name,
        "lifetime": "detached",
        "get_if_exists": True,
        "num_cpus": 0,
        "resources": {f"tilewright-{spec.name}": 1},
        "max_restarts": -1,
    }
    if spec.simulated:
        actor = ray.remote(SimulatedStation).options(max_concurrency=4 * spec.simulated + 16, **options)
    else:
        groups = {"build": 1, "run": 1, "status": 1}
        actor = ray.remote(concurrency_groups=groups)(Station).options(**options)
    handle = actor.remote(text)
    ray.get(handle.describe.remote(), timeout=_READY_S)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
