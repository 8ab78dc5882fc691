"""`LocalMeasurer`: the measurer of this machine."""

from __future__ import annotations

from types import TracebackType

from tilewright.errors import CodegenError
from tilewright.measure.local.builder import LocalBuilder
from tilewright.measure.local.runner import LocalRunner
from tilewright.measure.local.workers import ForkServer
from tilewright.measure.options import MeasureOptions
from tilewright.measure.sequential import SequentialMeasurer
from tilewright.target import Target, runs_here


class LocalMeasurer(SequentialMeasurer):
    """Compiles candidates in several processes of this machine and times them in one.

    Whatever a candidate does to the process that compiles or runs it costs that candidate alone. The processes start
    with the `with` block, or when they are first needed, and none is left after it.
    """

    def __init__(self, target: Target, threads: int, options: MeasureOptions | None = None) -> None:
        if not runs_here(target):
            raise CodegenError(
                f"candidates are measured on this machine, which cannot run code for {target}; "
                "use target='llvm -mcpu=native'"
            )
        chosen = options or MeasureOptions()
        self._server = ForkServer(target)
        builder = LocalBuilder(self._server, target, threads, chosen)
        super().__init__(builder, LocalRunner(self._server, target, threads, chosen), target, threads)

    def __enter__(self) -> LocalMeasurer:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        super().close()
        self._server.close()
