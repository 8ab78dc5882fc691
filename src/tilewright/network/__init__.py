"""The whole way of a network: read and cut into tasks, compiled, run, tuned.

What compiles and tunes is imported when it is needed: a process that only runs a compiled network starts sooner.
"""

from tilewright.network.compiling import (
    CompiledNetwork,
    Records,
    compile_network,
    compile_partition,
    recorded_programs,
)
from tilewright.network.inference_session import InferenceSession
from tilewright.network.reading import ZOO, Source, name_of, partition_network, read_network
from tilewright.network.several_devices import tune_network_for
from tilewright.network.tuning import TunedNetwork, compare_inside, tune_network

__all__ = [
    "ZOO",
    "CompiledNetwork",
    "InferenceSession",
    "Records",
    "Source",
    "TunedNetwork",
    "compare_inside",
    "compile_network",
    "compile_partition",
    "name_of",
    "partition_network",
    "read_network",
    "recorded_programs",
    "tune_network",
    "tune_network_for",
]
