"""`tune_network_for`: one network, several kinds of devices, in one run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from threading import Barrier, BrokenBarrierError
from typing import TYPE_CHECKING

from tilewright.network.reading import Source, name_of
from tilewright.network.tuning import NetworkTuning, TunedNetwork, check_effort, file_for, finals_s

if TYPE_CHECKING:
    from tilewright.cost_model import CostModel
    from tilewright.deploy.compilation import Progress
    from tilewright.graph.onnx.sizes import Shapes
    from tilewright.measure import Context, Measurer
    from tilewright.search import SearchStrategy
    from tilewright.tuning.task_scheduler import NetworkProgress, NetworksResult

# How long devices that are tuned for together wait for each other before the first trial.
_START_S = 60.0


def tune_network_for(
    network: Source,
    measurers: Mapping[str, Measurer],
    *,
    trials: int | None = None,
    budget_s: float | None = None,
    records: str | os.PathLike[str] | None = None,
    shapes: Shapes | None = None,
    seed: int = 0,
    search: str | os.PathLike[str] | SearchStrategy | type[SearchStrategy] = "evolutionary",
    cost_model: CostModel | str | os.PathLike[str] = "default",
    exact: bool = False,
    context: Context | str | None = None,
    on_progress: Callable[[str, NetworkProgress], None] | None = None,
    on_compile: Progress | None = None,
) -> dict[str, TunedNetwork]:
    """Tune a network for several kinds of devices at once, each of them measured by its own measurer.

    As `tune_network`, with so many trials for each; the records are in one file, by their targets. What one device
    measures of a task, the cost models of the others learn from. `on_progress` is told which device it is of. What
    comes before and after the trials is done for one device after the other.
    """
    from tilewright.measure import Context
    from tilewright.tuning.shared import SharedTrials
    from tilewright.tuning.task_scheduler import Network, TaskScheduler

    check_effort(trials, budget_s)
    chosen_context = None if context is None else Context.of(context)
    jobs = {
        device: NetworkTuning(name_of(network), network, shapes, measurer.target, measurer.threads, exact, on_compile)
        for device, measurer in measurers.items()
    }
    report = on_progress or (lambda device, progress: None)
    shared, start = SharedTrials(), _Start(len(jobs))

    def tune_one(device: str, path: str | os.PathLike[str]) -> NetworksResult:
        job, measurer = jobs[device], measurers[device]
        scheduler = TaskScheduler(
            [Network(job.name, job.partition.tasks, None, job.before_s, chosen_context)],
            target=measurer.target,
            threads=measurer.threads,
            seed=seed,
            search=search,
            cost_model=cost_model,
            exact=exact,
            shared=shared,
        )
        return scheduler.tune(
            trials,
            records=path,
            budget_s=budget_s,
            measurer=measurer,
            on_start=start.wait,
            on_progress=partial(report, device),
        )

    for job in jobs.values():
        job.before_s  # noqa: B018 - measured now, while no device works
    with file_for(records) as path, ThreadPoolExecutor(max(1, len(jobs))) as pool:
        running = {device: pool.submit(tune_one, device, path) for device in jobs}
        try:
            ended, others = wait(running.values(), return_when=FIRST_EXCEPTION)  # one that fails ends the others
            for future in (*ended, *others):
                future.result()
            results = {device: future.result() for device, future in running.items()}
        except BaseException:
            start.abort()
            for measurer in measurers.values():
                measurer.close()  # which ends what waits for it
            raise
        return {
            device: job.finish(results[device], path, chosen_context, finals_s(budget_s))
            for device, job in jobs.items()
        }


class _Start:
    """Has devices begin together: nothing is timed on this machine while it thinks of the first programs of others."""

    def __init__(self, num_devices: int) -> None:
        self._barrier = Barrier(max(1, num_devices), timeout=_START_S)

    def wait(self) -> None:
        """Until all are there, or one is never."""
        with suppress(BrokenBarrierError):
            self._barrier.wait()

    def abort(self) -> None:
        self._barrier.abort()
