"""Networks that the package writes itself, with random weights and no download: `zoo:resnet18`.

`networks.py` lists them, each family has a file, and `builder.py` is what they are written with. `inputs` makes random
inputs for any model.
"""

from tilewright.zoo.networks import NETWORKS, ZooNetwork, build, names
from tilewright.zoo.sample import inputs, inputs_for

__all__ = ["NETWORKS", "ZooNetwork", "build", "inputs", "inputs_for", "names"]
