"""What the tables of cost models consist of: which model learns from what, and is rated on what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tilewright.errors import UsageError
from tilewright.records.dataset import Corpus, Device, Split

HOLD_OUT = ("=resnet50", "=mobilenet_v2", "=bert_base", "=bert_tiny", "=inception_v3")
SHARES = (0.0, 0.01, 0.05, 0.07, 1.0)
ALONE, WITH_ONE, WITH_ALL = "alone", "with one more", "with all others"
POOLED, FINE_TUNED, LOCAL = "pooled", "fine-tuned", "local"
"""How a model learns from a new device and others: from all at once; from the others, and then from the device, by
training on, or by a local model on what it gets wrong."""
LOG_PAIRS = (("amd3700x", "i5-1035g1"), ("cortex-a72", "cortex-a7"), ("v100", "k80"))
"""A device whose labels are all there, and one that is new."""
LOG_HOLD_OUT = "20%"

MORE_TREES = "num_trees=200,max_depth=6"
MODELS = {
    1: (
        "random",
        "analytical",
        "boosted-trees",
        f"boosted-trees:{MORE_TREES}",
        f"boosted-trees:objective=rank,{MORE_TREES}",
        f"boosted-trees:residual=true,{MORE_TREES}",
        f"boosted-trees:objective=rank,residual=true,{MORE_TREES}",
        "factor-trees",
        "ensemble",
        "mlp-published",
        "mlp",
        "lstm",
        "tree-gru",
        "tlp-published",
        "tlp",
        "atformer",
        "hierarchical",
    ),
    2: (
        "tlp:loss=rank",
        "tlp:loss=rank-mixed",
        "tlp:loss=mse",
        "lstm:loss=rank",
        "lstm:loss=rank-mixed",
        "lstm:loss=mse",
        "tlp:loss=rank,length=25",
        "tlp-published:loss=rank-mixed",
        "tlp-published:loss=mse",
    ),
    3: ("analytical", "boosted-trees", "factor-trees", "hierarchical", "tlp", "mtl-tlp"),
}
LOG_MODELS = ("tlp-published", "tlp", "mtl-tlp")


@dataclass(frozen=True, slots=True)
class Case:
    """One model, trained once; `row` and `column` say where its numbers stand."""

    table: str
    model: str
    row: tuple[str, ...]
    column: str
    split: Split
    device: str | None
    """That it is rated on; None for all."""
    way: str = POOLED

    @property
    def seed(self) -> int:
        return self.split.seed

    @property
    def prior(self) -> Case:
        """The same model with no label of the device: what is learned first if not all is learned at once."""
        return replace(self, column=f"{0:.0%}", split=replace(self.split, labels=0.0), way=POOLED)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is chosen on the command line."""

    models: tuple[str, ...] | None
    seeds: int
    hold_out: tuple[str, ...]
    device: str | None
    """Of tables 1 and 2; None for the one with most programs, or for all if models learn from all."""
    new_devices: tuple[str, ...] | None
    """Of table 3; None for all but that one."""
    is_pooled: bool
    """Whether tables 1 and 2 learn from all devices."""
    shares: tuple[float, ...]
    programs: int | None
    """Of a task on a device, at most."""
    ways: tuple[str, ...] = (POOLED,)
    """Of table 3, where there are other devices."""


def held_out_networks(corpus: Corpus, plan: Plan, table: int) -> Iterator[Case]:
    """Tables 1 and 2: networks of which nothing was learned."""
    device = plan.device if plan.device or plan.is_pooled else most_measured(corpus)
    for model in plan.models or MODELS[table]:
        for seed in range(plan.seeds):
            split = Split(
                hold_out=plan.hold_out,
                device=device,
                others=None if plan.is_pooled else (),
                programs=plan.programs,
                seed=seed,
            )
            yield Case(str(table), model, (model,), "", split, device)


def new_devices(corpus: Corpus, plan: Plan) -> Iterator[Case]:
    """Table 3: a device with few labels, by itself and with others."""
    first = plan.device or most_measured(corpus)
    names = [device.name for device in corpus.devices if not device.tool]
    for device in plan.new_devices or [name for name in names if name != first]:
        others = [name for name in names if name != device]
        sets = {ALONE: (), WITH_ONE: (first,), WITH_ALL: tuple(others)}
        if len(others) < 2:
            del sets[WITH_ALL]
        yield from _new_device("3", plan, plan.models or MODELS[3], device, sets, plan.hold_out)


def new_devices_of_logs(corpus: Corpus, plan: Plan) -> Iterator[Case]:
    """Table 3 on logs of other tools."""
    known = {device.name for device in corpus.devices}
    for other, device in LOG_PAIRS:
        if {other, device} <= known:
            sets = {ALONE: (), f"with {other}": (other,)}
            yield from _new_device("3 of logs", plan, plan.models or LOG_MODELS, device, sets, (LOG_HOLD_OUT,))


def _new_device(
    table: str,
    plan: Plan,
    models: Sequence[str],
    device: str,
    sets: dict[str, tuple[str, ...]],
    hold_out: tuple[str, ...],
) -> Iterator[Case]:
    for model in models:
        for title, others in sets.items():
            for way in plan.ways if others else (POOLED,):
                row = (device, model, title if way == POOLED else f"{title}, {way}")
                for share in plan.shares:
                    if way != POOLED and share == 0:
                        continue  # there is nothing to go on with
                    for seed in range(plan.seeds):
                        split = Split(
                            hold_out=hold_out,
                            device=device,
                            labels=share,
                            others=others,
                            programs=plan.programs,
                            seed=seed,
                        )
                        yield Case(table, model, row, f"{share:.0%}", split, device, way)


def most_measured(corpus: Corpus) -> str:
    """The device with most tasks, the first among equals, of those that were measured."""
    devices: list[Device] = [device for device in corpus.devices if not device.tool]
    if not devices:
        raise UsageError("these tables are of programs that tilewright measured, and the data has logs alone")
    return max(devices, key=lambda device: sum(s.device.name == device.name for s in corpus.sources)).name
