"""MTL-TLP: one TLP for several devices, so that a device with few labels learns from those with many."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tilewright.cost_model.array_file import text_array
from tilewright.cost_model.examples import Examples
from tilewright.cost_model.neural.model import check_sizes
from tilewright.cost_model.neural.tlp import TlpOptions
from tilewright.errors import UsageError
from tilewright.features import PrimitiveEncoder

if TYPE_CHECKING:
    from tilewright.cost_model.neural.batches import Batch
    from tilewright.cost_model.neural.modules.program_module import ProgramModule, Tensor
    from tilewright.cost_model.neural.training import Objective

_DEVICES = "devices"


@dataclass(kw_only=True, eq=False)
class MtlTlp(TlpOptions):
    """TLP with a head for each device of the data; what is minimised is the sum of the losses of all heads.

    A program counts for the head of the device that it was measured on, and for no other. Programs of a device without
    a name, as those of a task that is being tuned, count for the head of the `target`, or for all if there is none.
    """

    name: ClassVar[str] = "mtl-tlp"
    reads_named_columns: ClassVar[bool] = True

    target: str = ""
    """The device whose head gives the scores; empty for the mean of all heads, which suits a device that has none."""
    length: int | None = None
    """At which sequences are cut; None for whole ones."""
    token_width: int = 8

    devices_: tuple[str, ...] = field(default=(), init=False, repr=False)
    """Those that have a head, in their order."""

    @property
    def encoder(self) -> PrimitiveEncoder:
        return PrimitiveEncoder(length=self.length)

    def on_device(self, device: str) -> MtlTlp:
        """The same with the head of the device, if it has one and no target is set."""
        if self.target or device not in self.devices_:
            return self
        own = copy.copy(self)
        own.target = device
        return own

    def _check_options(self) -> None:
        super()._check_options()
        check_sizes(self, "token_width", *(() if self.length is None else ("length",)))
        if not isinstance(self.target, str):
            raise UsageError(f"the target of the cost model {self.name} is the name of a device, got {self.target!r}")

    def _module(self, num_columns: int) -> ProgramModule:
        from tilewright.cost_model.neural.modules.mtl_tlp import MtlTlpModule

        return MtlTlpModule(
            self.encoder, self.token_width, self.width, self.num_heads, self.num_blocks, len(self.devices_)
        )

    def fit_examples(self, examples: Examples, **options: Any) -> None:
        before = self.network_, self.devices_
        self.network_ = None  # it belongs to other heads
        self.devices_ = tuple(sorted(_devices(examples))) or ("",)
        try:
            super().fit_examples(examples, **options)
        finally:
            if self.network_ is None:  # nothing was learned: what was known before still holds
                self.network_, self.devices_ = before

    def _check_training(self, examples: Examples) -> None:
        super()._check_training(examples)
        self._check_target()
        unknown = _devices(examples) - set(self.devices_)
        if unknown:
            raise UsageError(
                f"the cost model {self.name} is updated with programs of devices that have a head, "
                f"{_named(self.devices_)}; got some of {_named(sorted(unknown))}; fit it anew with those of all devices"
            )

    def _check_target(self) -> None:
        if self.target and self.target not in self.devices_:
            raise UsageError(
                f"the target of the cost model {self.name} is a device that it learns from, {_named(self.devices_)}, "
                f"got {self.target!r}; choose one of them, or an empty target for the mean of all"
            )

    def _train(self, module: ProgramModule, examples: Examples, *options: Any) -> None:
        # Without it, weight decay alone would move the heads of devices that an update has no programs of.
        for device, head in zip(self.devices_, module.heads, strict=True):
            head.requires_grad_(bool(self._is_of(device, examples).any()))
        super()._train(module, examples, *options)

    def _objective(self, examples: Examples) -> Objective:
        from tilewright.cost_model.neural.training import objective_of

        objective = objective_of(self.loss)
        is_of_head = np.stack([self._is_of(device, examples) for device in self.devices_])

        def of_all_heads(outputs: Tensor, batch: Batch) -> Tensor:
            return sum(
                objective(outputs[np.flatnonzero(is_own), number], batch.chosen(is_own))
                for number, is_own in enumerate(is_of_head[:, batch.programs])
                if is_own.any()
            )

        return of_all_heads

    def _is_of(self, device: str, examples: Examples) -> NDArray[np.bool_]:
        """Which programs count for the head of a device."""
        is_unnamed_own = not self.target or device == self.target
        counts = [name == device or (not name and is_unnamed_own) for name in examples.device_names]
        return np.array(counts)[examples.devices]

    def _scores(self, outputs: NDArray[np.float32]) -> NDArray[np.float64]:
        self._check_target()
        if outputs.shape[1:] != (len(self.devices_),):
            raise UsageError(
                f"the network of the cost model {self.name} has a head for each of {_named(self.devices_)}, got "
                f"outputs of shape {outputs.shape[1:]}; train the model again"
            )
        heads = outputs.astype(np.float64)
        of_all: NDArray[np.float64] = heads.mean(axis=1)
        return heads[:, self.devices_.index(self.target)] if self.target else of_all

    def _state(self) -> dict[str, NDArray[Any]]:
        state = super()._state()
        return {**state, _DEVICES: text_array(json.dumps(self.devices_))} if state else {}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        if not arrays:
            return
        self.devices_ = _read_devices(arrays)
        super()._restore({name: array for name, array in arrays.items() if name != _DEVICES})


def _devices(examples: Examples) -> set[str]:
    """The named devices that programs are of."""
    return {examples.device_names[number] for number in np.unique(examples.devices)} - {""}


def _named(devices: tuple[str, ...] | list[str]) -> str:
    return ", ".join(device or "one without a name" for device in devices)


def _read_devices(arrays: Mapping[str, NDArray[Any]]) -> tuple[str, ...]:
    try:
        devices = json.loads(arrays[_DEVICES].tobytes())
    except (KeyError, ValueError) as error:
        raise UsageError(f"the file of a model for several devices names them, but {error}; train it again") from error
    if not isinstance(devices, list) or not all(isinstance(device, str) for device in devices):
        raise UsageError(f"the devices of a model are names, got {devices!r}; train the model again")
    return tuple(devices)
