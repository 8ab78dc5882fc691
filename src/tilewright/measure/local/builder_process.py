"""What goes on in a builder process: it compiles one trace after the other."""

from __future__ import annotations

import time
import traceback
from multiprocessing.connection import Connection

from tilewright.codegen.native import compile_object
from tilewright.errors import LoweringError, ScheduleError, TilewrightError, UsageError
from tilewright.measure.compiler import Compiler, find_compiler
from tilewright.measure.local.messages import BuildAnswer, Ready, Setup, SetupFailed
from tilewright.measure.measurement import BUILD_ERROR, INVALID, Measurement
from tilewright.measure.protocols import Built
from tilewright.schedule import Trace
from tilewright.target import Target

_SMALLEST_MODULE = "define i32 @nothing() {\n  ret i32 0\n}\n"


def warm_up(target: Target) -> None:
    """Initialize LLVM for `target`, so that processes forked from this one need not."""
    compile_object(_SMALLEST_MODULE, target)


def serve(connection: Connection, setup: Setup) -> None:
    """Answer each trace, until the other end closes."""
    try:
        compiler = find_compiler(setup.options.compiler)
    except UsageError as error:
        connection.send(SetupFailed(str(error)))
        return
    connection.send(Ready())
    while True:
        try:
            trace = connection.recv()
        except EOFError:
            return
        _answer(connection, compiler, setup, trace)


def _answer(connection: Connection, compiler: Compiler, setup: Setup, trace: Trace) -> None:
    start_s = time.perf_counter()

    def failed(status: str, error: str) -> Measurement:
        return Measurement(status, error=error, build_s=time.perf_counter() - start_s)

    try:
        binary = compiler(setup.task, trace, setup.target, setup.threads)
    except (ScheduleError, LoweringError) as error:
        connection.send(BuildAnswer(failed(INVALID, str(error))))
    except TilewrightError as error:
        connection.send(BuildAnswer(failed(BUILD_ERROR, str(error))))
    except Exception:
        # A mistake in the compiler. It costs this candidate, and the process, whose state nobody knows now.
        connection.send(BuildAnswer(failed(BUILD_ERROR, traceback.format_exc()), ends_worker=True))
        raise
    else:
        connection.send(BuildAnswer(Built(binary, time.perf_counter() - start_s, trace.error_growth)))
