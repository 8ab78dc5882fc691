"""`InferenceSession`: a network to run, compiled when it is not."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.deploy.artifact import MAGIC, SUFFIX, is_artifact, load
from tilewright.deploy.compiled import CompiledModel
from tilewright.deploy.program import FallbackFactory
from tilewright.deploy.providers import Provider, check_providers, threads_of
from tilewright.deploy.session import Session
from tilewright.errors import ArtifactError, UsageError
from tilewright.network.compiling import Records, compile_network
from tilewright.network.reading import Source
from tilewright.target import Target, checked_threads

if TYPE_CHECKING:
    from tilewright.deploy.compilation import Progress
    from tilewright.graph.onnx.sizes import Shapes


class InferenceSession(Session):
    """A network to run, with the names and the behaviour of onnxruntime's.

    session = tw.InferenceSession("model.onnx", records="model.jsonl")   # or a compiled "model.tw"
    outputs = session.run(None, {"input": x})
    """

    def __init__(
        self,
        model: Source | CompiledModel,
        records: Records | None = None,
        *,
        threads: int | None = None,
        target: Target | str | None = None,
        shapes: Shapes | None = None,
        exact: bool = False,
        on_progress: Progress | None = None,
        fallback: FallbackFactory | None = None,
        sess_options: object = None,
        providers: Sequence[Provider] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Compile `model`: the path, the bytes or the message of an ONNX model, or a network such as "zoo:resnet18".

        A path to a compiled model, or a `CompiledModel`, is taken as it is. `records` hold tuned programs; tasks that
        they do not know get the default ones. `shapes` gives what the model leaves open: shapes by the names of inputs,
        as {"image": (1, 3, 224, 224)}, and sizes by the names of dimensions, as {"batch": 4}. `threads` are the most to
        use, all processors by default. With `exact`, no algorithm is used that rounds more than the sums of the network
        do, such as Winograd's. `on_progress` is called with how many kernels are compiled, and of how many. `fallback`
        replaces the reference evaluator of ONNX for operators that have no kernel.

        The last three are what callers of onnxruntime give: of the session options the number of threads counts if
        `threads` does not say it, and of the providers that the processor is among them.
        """
        check_providers(providers, provider_options)
        threads = threads_of(sess_options) if threads is None else threads
        checked_threads(threads)
        compiled = _compiled_model(model)
        if compiled is None:
            assert not isinstance(model, CompiledModel)
            compiled = compile_network(
                model, records, target=target, threads=threads, shapes=shapes, exact=exact, on_progress=on_progress
            )
        else:
            _check_compiled(compiled, threads, records=records, target=target, shapes=shapes)
            if exact and not compiled.is_exact:
                raise UsageError(
                    f"exact was given for {compiled.name}, which is compiled with algorithms that round more; compile "
                    "it again with exact=True"
                )
        super().__init__(compiled, threads=threads, fallback=fallback)


def _compiled_model(model: Source | CompiledModel) -> CompiledModel | None:
    """The model if it is compiled already."""
    if isinstance(model, CompiledModel):
        return model
    if isinstance(model, bytes | bytearray | memoryview) and bytes(model[: len(MAGIC)]) == MAGIC:
        raise UsageError("the bytes are those of a compiled model, which is mapped from its file; give its path")
    if not isinstance(model, str | os.PathLike):
        return None
    path = os.fspath(model)
    is_compiled = path.endswith(SUFFIX) or (os.path.isfile(path) and is_artifact(path))
    return load(path) if is_compiled else None


def _check_compiled(model: CompiledModel, threads: int | None, **options: object) -> None:
    """Nothing that compiling decides can be asked of a model that is compiled."""
    for name, value in options.items():
        if value is not None:
            raise UsageError(
                f"{name} was given for {model.name}, which is compiled already; give it when the model is compiled"
            )
    if threads is not None and threads > model.threads:
        raise ArtifactError(
            f"{model.name} was compiled for up to {model.threads} threads, and {threads} were asked for; "
            f"compile it again with threads={threads}"
        )
