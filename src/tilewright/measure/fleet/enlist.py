"""Makes the actor of a device in the cluster, on the node that has the device, and waits for it; or ends it.

`python -m tilewright.measure.fleet.enlist ADDRESS SPEC`. The actor lives as long as the cluster; when its node comes
back, it starts there again. With a third argument, `leave`, it is ended.
"""

from __future__ import annotations

import json
import sys

from tilewright.measure.fleet.cluster import NAMESPACE
from tilewright.measure.fleet.simulated import SimulatedStation
from tilewright.measure.fleet.station import DeviceSpec, Station

_READY_S = 45.0


def main(address: str, text: str, leaves: bool) -> None:
    """Exits with 0 when the device answers, or is gone."""
    import ray

    spec = DeviceSpec.read(text)
    ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
    if leaves:
        ray.kill(ray.get_actor(spec.name, namespace=NAMESPACE))
        return
    many = 4 * max(1, spec.simulated)
    groups = {"build": 1, "run": 2, "status": 1} if not spec.simulated else {"build": 4, "run": many, "status": 4}
    kind = SimulatedStation if spec.simulated else Station
    actor = ray.remote(concurrency_groups=groups)(kind).options(
        name=spec.name,
        lifetime="detached",
        get_if_exists=True,
        num_cpus=0,
        resources={f"tilewright-{spec.name}": 1},
        max_restarts=-1,
    )
    handle = actor.remote(text)
    if json.loads(ray.get(handle.describe.remote(), timeout=_READY_S)) != spec.describe():
        ray.kill(handle)  # it is of an earlier life of the device; the next try makes another one
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], leaves="leave" in sys.argv[3:])
