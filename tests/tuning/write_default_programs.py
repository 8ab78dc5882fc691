"""`python -m tests.tuning.write_default_programs`: pins the programs of zero trials anew, if they are to change."""

from __future__ import annotations

from pathlib import Path

from tilewright.target import Target
from tilewright.tuning.untuned import default_trace
from tilewright.workloads import parse

PATH = Path(__file__).with_name("default_programs.txt")


def pinned() -> list[tuple[str, str, str]]:
    """Workload, target and default program of each block of the file."""
    parts = [block.partition("\n") for block in PATH.read_text().split("# ")[1:]]
    return [(*head.split(" on ", 1), program.strip()) for head, _, program in parts]  # type: ignore[misc]


def main() -> None:
    """Write the same workloads and targets with the programs of today."""
    blocks = [
        f"# {workload} on {target}\n{default_trace(parse(workload), Target.parse(target), threads=2)}\n"
        for workload, target, _ in pinned()
    ]
    PATH.write_text("\n".join(blocks))


if __name__ == "__main__":
    main()
