"""Files of cost models that are torn, of another version or made to do harm: always a UsageError, and nothing else."""

from __future__ import annotations

import io
import json
import os
import resource
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright import TilewrightError, UsageError
from tilewright.cost_model import BoostedTrees, load
from tilewright.cost_model.array_file import read_members, text_array
from tilewright.testing.cost_model_checks import sum_structured_examples

Arrays = dict[str, NDArray[Any]]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    model = BoostedTrees(num_trees=3, max_depth=2)
    model.fit_examples(sum_structured_examples(60))
    path = tmp_path_factory.mktemp("model") / "model.npz"
    model.save(path)
    return path.read_bytes()


def changed(saved: bytes, path: Path, change: Callable[[Arrays], None]) -> Path:
    with np.load(io.BytesIO(saved)) as file:
        arrays = {name: file[name] for name in file.files}
    change(arrays)
    np.savez(path, allow_pickle=True, **arrays)
    return path


def with_header(**entries: Any) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays["header"] = text_array(json.dumps(json.loads(arrays["header"].tobytes()) | entries))

    return change


def with_trees(edit: Callable[[Any], None]) -> Callable[[Arrays], None]:
    """`edit` gets the learner of xgboost's JSON."""

    def change(arrays: Arrays) -> None:
        content = json.loads(arrays["trees_json"].tobytes())
        edit(content["learner"])
        arrays["trees_json"] = text_array(json.dumps(content))

    return change


def first_tree(learner: Any) -> Any:
    return learner["gradient_booster"]["model"]["trees"][0]


def refuse(path: Path, message: str = "is not the file of a cost model") -> None:
    with pytest.raises(UsageError, match=message):
        load(path)


def test_a_file_that_is_cut_off_anywhere_is_refused(saved: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    for size in range(0, len(saved), max(len(saved) // 40, 1)):
        path.write_bytes(saved[:size])
        refuse(path)


def test_bytes_that_flip_are_an_error_or_no_harm(saved: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(saved), 200).tolist():
        path.write_bytes(saved[:place] + bytes([saved[place] ^ 0x41]) + saved[place + 1 :])
        try:
            model = load(path)
        except UsageError:
            continue
        assert np.isfinite(model.score(np.zeros((2, 3, 12), np.float32))).all()


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"version": 99}, "version 1, got tilewright-cost-model version 99"),
        ({"format": "other"}, "got other"),
        ({"model": ["boosted-trees"]}, "its header has \\['boosted-trees'\\] as model"),
        ({"model": "tlp-9"}, "model.npz holds the cost model 'tlp-9', and a cost model is one of"),
        ({"options": 3}, "its header has 3 as options"),
        ({"options": {"num_tree": 3}}, "model.npz has options that this version does not know: .* got num_tree; save"),
        ({"options": {"num_trees": "many"}}, "the option num_trees .* is like 40, .* got 'many'"),
        ({"options": {"seed": True}}, "got True"),
        ({"options": {"residual": True}}, "what boosted-trees has learned is not in it .a residual is on"),
        ({"tasks": "all"}, "its header has 'all' as tasks"),
    ],
)
def test_wrong_headers_are_refused(saved: bytes, tmp_path: Path, entries: dict[str, Any], message: str) -> None:
    refuse(changed(saved, tmp_path / "model.npz", with_header(**entries)), message)


@pytest.mark.parametrize("header", ["[]", "3", "what", "[" * 100_000, '"format"'])
def test_a_header_that_is_no_object_is_refused(saved: bytes, tmp_path: Path, header: str) -> None:
    def change(arrays: Arrays) -> None:
        arrays["header"] = text_array(header)

    refuse(changed(saved, tmp_path / "model.npz", change))


def test_a_header_that_takes_all_memory_is_refused(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "model.npz", header=np.frombuffer(b"[" + b"[]," * (20 << 20) + b"[]]", np.uint8))
    tracemalloc.start()
    try:
        refuse(tmp_path / "model.npz", "JSON in a file has at most 16777216 bytes, got 62914564")
        assert tracemalloc.get_traced_memory()[1] < 256 << 20
    finally:
        tracemalloc.stop()


def test_models_over_models_without_end_are_refused(tmp_path: Path) -> None:
    """They could be loaded, and ended in a RecursionError where they were to score."""
    options: dict[str, Any] = {}
    for _ in range(900):
        options = {"global_model": "residual", "global_options": options}
    header = {"format": "tilewright-cost-model", "version": 1, "model": "residual", "options": options}
    arrays = {f"{'global:' * level}shares": np.ones(2) for level in range(901)}
    np.savez(tmp_path / "model.npz", allow_pickle=False, header=text_array(json.dumps(header)), **arrays)
    refuse(tmp_path / "model.npz", "values within 100 others")


@pytest.mark.parametrize("missing", ["base", "counts", "header", "probe", "trees_json"])
def test_missing_arrays_are_refused(saved: bytes, tmp_path: Path, missing: str) -> None:
    def change(arrays: Arrays) -> None:
        del arrays[missing]

    refuse(changed(saved, tmp_path / "model.npz", change))


def put(name: str, value: NDArray[Any]) -> Callable[[Arrays], None]:
    return lambda arrays: arrays.update({name: value})


@pytest.mark.parametrize(
    "change",
    [
        put("columns", np.arange(100, 112)),
        put("counts", np.full(3, np.inf)),
        put("columns", np.arange(-12, 0)),
        put("columns", np.zeros((3, 4), np.int64)),
        put("columns", np.zeros(12)),
        put("columns", np.arange(3)),
        put("counts", np.zeros(2, np.int64)),
        put("base", np.zeros(3)),
        put("base", np.array(np.nan)),
        put("slope", np.array(np.inf)),
        put("base", np.array(["text"])),
        put("base", np.array([object()])),
        put("trees_json", np.zeros(10, np.uint8)),
        put("trees_json", text_array("{}")),
        put("probe", np.zeros(7, np.float32)),
    ],
)
def test_wrong_arrays_are_refused(saved: bytes, tmp_path: Path, change: Callable[[Arrays], None]) -> None:
    refuse(changed(saved, tmp_path / "model.npz", change))


def set_in(name: str, value: Any) -> Callable[[Any], None]:
    def edit(learner: Any) -> None:
        first_tree(learner)[name] = value

    return edit


def set_child(node: int, child: Any) -> Callable[[Any], None]:
    def edit(learner: Any) -> None:
        first_tree(learner)["left_children"][node] = child

    return edit


def set_condition(node: int, number: object) -> Callable[[Any], None]:
    def edit(learner: Any) -> None:
        first_tree(learner)["split_conditions"][node] = number

    return edit


def set_outcome(learner: Any) -> None:
    learner["gradient_booster"]["model"]["tree_info"][0] = 10**6


def set_classes(learner: Any) -> None:
    learner["learner_model_param"]["num_class"] = "1000"


def set_features(learner: Any) -> None:
    learner["learner_model_param"]["num_feature"] = "1000"


def set_rounds(*rounds: Any) -> Callable[[Any], None]:
    def edit(learner: Any) -> None:
        learner["gradient_booster"]["model"]["iteration_indptr"] = list(rounds)

    return edit


@pytest.mark.parametrize(
    "edit",
    [
        set_child(0, 10**6),
        set_child(0, -7),
        set_child(1, 0),
        set_child(0, "1"),
        set_child(0, 2),
        set_in("left_children", [1]),
        set_in("left_children", "what"),
        set_in("split_indices", [10**6] * 7),
        set_in("split_type", [1] * 7),
        set_in("tree_param", {"num_nodes": "0", "size_leaf_vector": "1"}),
        set_in("tree_param", {"num_nodes": "7", "size_leaf_vector": "-1"}),
        set_in("parents", [10**15] * 7),
        set_in("parents", [-(10**9)] * 7),
        set_in("parents", [0.5] * 7),
        set_in("parents", []),
        set_in("id", 1),
        set_in("categories_nodes", [1]),
        set_in("categories_sizes", [1]),
        set_outcome,
        set_classes,
        set_features,
        set_rounds(2**31, 1, 2, 3),
        set_rounds(0, 1, 2, 4),
        set_rounds(0, 2, 1, 3),
        set_rounds(-1, 0, 3),
        set_rounds(0, "1", 2, 3),
        set_rounds(),
    ],
)
def test_trees_that_point_elsewhere_are_refused(saved: bytes, tmp_path: Path, edit: Callable[[Any], None]) -> None:
    refuse(changed(saved, tmp_path / "model.npz", with_trees(edit)), "what boosted-trees has learned is not in it")


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e39, "1", True])
def test_trees_with_numbers_that_are_none_are_refused(saved: bytes, tmp_path: Path, number: object) -> None:
    """In any node: most programs do not come by it."""
    for node in range(5):
        path = changed(saved, tmp_path / "model.npz", with_trees(set_condition(node, number)))
        refuse(path, "what boosted-trees has learned is not in it .trees compare with numbers")


def test_an_archive_that_unpacks_to_more_than_it_should_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", bytes(300 << 20))
    assert path.stat().st_size < 1 << 20
    refuse(path, "at most 268435456 are read")


def test_an_archive_that_says_it_is_small_unpacks_to_no_more() -> None:
    size, said = 64 << 20, 1000
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", bytes(size))
    content = packed.getvalue().replace(size.to_bytes(4, "little"), said.to_bytes(4, "little"))
    tracemalloc.start()
    try:
        with pytest.raises(zipfile.BadZipFile, match="Bad CRC-32"):
            read_members(content, 2 * said)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_an_archive_that_is_encrypted_is_refused(saved: bytes, tmp_path: Path) -> None:
    content = bytearray(saved)
    for start, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(start) + place] |= 1
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    refuse(path, "is encrypted")


def test_an_array_that_claims_to_be_larger_than_it_is_is_refused(tmp_path: Path) -> None:
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    path = tmp_path / "model.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", b"\x93NUMPY\x01\x00" + content.getvalue())
    refuse(path)


@pytest.mark.parametrize("text", ["{'descr': (", "{'descr': (), 'fortran_order': False, 'shape': (1,), }", "-" * 9000])
def test_an_array_whose_header_is_no_header_is_refused(saved: bytes, text: str, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(saved)
    line = f"{text}\n".encode()
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("more.npy", b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line)
    refuse(path, "an array says its type, order and shape")


@pytest.mark.parametrize("packed", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_an_archive_that_numpy_would_not_write_is_refused(packed: int, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    with zipfile.ZipFile(path, "w", packed) as archive:
        archive.writestr("header.npy", bytes(100))
    refuse(path, f"'header.npy' is packed by the unknown method {packed}")


def test_two_writers_at_once_leave_a_whole_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second begins and ends while the first is in the middle of its file."""
    path = tmp_path / "model.npz"
    savez = np.savez

    def interrupted_by_another(file: Any, **arrays: Any) -> None:
        monkeypatch.setattr(np, "savez", savez)
        file.write(b"a beginning")
        BoostedTrees(seed=2).save(path)
        file.seek(0)
        savez(file, **arrays)

    monkeypatch.setattr(np, "savez", interrupted_by_another)
    BoostedTrees(seed=1).save(path)
    assert load(path).options["seed"] == 1
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupt_leaves_nothing_beside_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.npz.partial").write_text("of somebody else")

    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupt)
    with pytest.raises(KeyboardInterrupt):
        BoostedTrees().save(tmp_path / "model.npz")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["of somebody else"]


def test_a_folder_is_refused(tmp_path: Path) -> None:
    refuse(tmp_path, "cannot be read: Is a directory")


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.npz")
    refuse(tmp_path / "model.npz", "model.npz is a device or a pipe; name a file")


def test_what_a_model_learned_from_is_in_its_file(tmp_path: Path) -> None:
    model = BoostedTrees()
    model.tasks_ = ("2f", "77")
    model.save(tmp_path / "model.npz")
    assert load(tmp_path / "model.npz").tasks_ == ("2f", "77")


def test_a_place_that_cannot_be_written_is_named_and_keeps_what_it_had(tmp_path: Path) -> None:
    with pytest.raises(TilewrightError, match="missing/model.npz: No such file or directory; what was there before"):
        BoostedTrees().save(tmp_path / "missing" / "model.npz")
    path = tmp_path / "model.npz"
    path.write_bytes(b"before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(TilewrightError, match="model.npz: File too large; what was there before is unchanged"):
            BoostedTrees().save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_reached_by_a_link_is_written_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "model.npz"
    link.symlink_to("folder/model.npz")
    BoostedTrees().save(link)
    assert link.is_symlink()
    assert isinstance(load(tmp_path / "folder" / "model.npz"), BoostedTrees)
