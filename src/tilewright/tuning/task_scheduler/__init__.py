"""Tuning whole networks: which task gets the next round of trials. `scheduler` is where to start."""

from tilewright.tuning.task_scheduler.gradient import Gradient, RoundRobin, Standing, Strategy
from tilewright.tuning.task_scheduler.jobs import TaskTuner
from tilewright.tuning.task_scheduler.network import Network, WeightedTask, deployed_context
from tilewright.tuning.task_scheduler.objectives import OBJECTIVES, Objective
from tilewright.tuning.task_scheduler.scheduler import (
    STRATEGIES,
    NetworkProgress,
    NetworksResult,
    TaskScheduler,
    TunedTask,
)

__all__ = [
    "OBJECTIVES",
    "STRATEGIES",
    "Gradient",
    "Network",
    "NetworkProgress",
    "NetworksResult",
    "Objective",
    "RoundRobin",
    "Standing",
    "Strategy",
    "TaskScheduler",
    "TaskTuner",
    "TunedTask",
    "WeightedTask",
    "deployed_context",
]
