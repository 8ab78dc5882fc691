"""Named workloads: operators and small subgraphs that are written in one word, such as `gmm:512x512x512`.

`parse` turns such a string into a task, `suite` lists the operators that tuning is measured on. `families.py` says
how each family is written and which function makes it.
"""

from tilewright.workloads.families import FAMILIES, Family, names
from tilewright.workloads.specification import canonical, parse
from tilewright.workloads.suite import suite

__all__ = ["FAMILIES", "Family", "canonical", "names", "parse", "suite"]
