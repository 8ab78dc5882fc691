"""Memory of one function: where buffers lie, and loads and stores by lanes.

A vector access is one instruction where its lanes are neighbours, a broadcast where they are one element, and
element by element otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

from tilewright.codegen.builder import LLVM_TYPE, Value, llvm_type
from tilewright.codegen.convert import HALF_TYPES, compute_dtype, convert, narrow, widen
from tilewright.codegen.frame import Frame
from tilewright.codegen.indices import Indices
from tilewright.codegen.module_text import NONTEMPORAL
from tilewright.codegen.streaming import STORE_BYTES
from tilewright.ir import INPUT, PACKED, Buffer, For, Load
from tilewright.te import DTYPES, Var
from tilewright.te.index import Linear, bounds

ALIGNMENT = 64
# Buffers up to this size live on the stack, where accumulators become registers.
MAX_STACK_BYTES = 8192

_STORAGE = {"bool": "int8", "float16": "int16", "bfloat16": "int16"}


class FunctionMemory:
    """Pointers of the buffers, and typed access to them. `arena` is the large memory of this function."""

    def __init__(self, frame: Frame, indices: Indices) -> None:
        self.frame = frame
        self.indices = indices
        self.pointers: dict[Buffer, Value] = {}
        self.stack: list[str] = []
        self.apart: tuple[Buffer, int] | None = None  # reads of it with different numbers are not merged
        self.streamed: tuple[Buffer, ...] = ()  # outputs that are aligned to lines, and written past the caches
        self.lane_loop: For | None = None
        self.has_streamed = False
        self.arena: Value | None = None
        self.arena_bytes = 0
        self._used = 0
        self._loaded: dict[tuple[Buffer, str], Value] = {}
        self._offsets: dict[int, tuple[object, Linear]] = {}

    # --- buffers ----------------------------------------------------------------------------------------------------

    def allocate(self, buffers: tuple[Buffer, ...]) -> int:
        """Give local buffers memory; returns the mark to release them with."""
        mark = self._used
        for buffer in buffers:
            if buffer.num_bytes <= MAX_STACK_BYTES:
                self._on_stack(buffer)
            else:
                self._in_arena(buffer)
        return mark

    def release(self, mark: int) -> None:
        self._used = mark

    def _on_stack(self, buffer: Buffer) -> None:
        if buffer in self.pointers:
            return
        pointer = Value(self.frame.builder.name("stack"), "ptr", 1)
        self.stack.append(f"  {pointer.text} = alloca [{buffer.num_bytes} x i8], align {ALIGNMENT}")
        self.pointers[buffer] = pointer

    def _in_arena(self, buffer: Buffer) -> None:
        assert self.arena is not None
        offset = self._used
        self._used += -(-buffer.num_bytes // ALIGNMENT) * ALIGNMENT
        self.arena_bytes = max(self.arena_bytes, self._used)
        self.pointers[buffer] = self._step(self.arena, offset, "int8")

    def is_on_stack(self, buffer: Buffer) -> bool:
        return self.pointers[buffer].text.startswith("%stack")

    def forget_loads(self) -> None:
        """Call where control flow joins: what was loaded before may be stale."""
        self._loaded.clear()

    # --- addresses --------------------------------------------------------------------------------------------------

    def _offset(self, owner: object, buffer: Buffer, indices: tuple[Linear, ...]) -> Linear:
        known = self._offsets.get(id(owner))
        if known is not None:
            return known[1]
        offset = Linear({}, 0)
        for index, stride in zip(indices, buffer.strides, strict=True):
            offset += index * stride
        self._offsets[id(owner)] = (owner, offset)
        return offset

    def offset(self, load: Load) -> Linear:
        """The distance of an element from the begin of its buffer, in elements."""
        return self._offset(load, load.buffer, load.indices)

    def _step(self, pointer: Value, elements: int | Value, dtype: str) -> Value:
        if isinstance(elements, int):
            if elements == 0:
                return pointer
            elements = Value(str(elements), "int64", 1)
        rhs = f"getelementptr inbounds {LLVM_TYPE[dtype]}, {pointer.typed}, {elements.typed}"
        return self.frame.builder.op(rhs, "ptr", 1, max(pointer.depth, elements.depth))

    def _address(self, buffer: Buffer, offset: Linear) -> Value:
        """The address of a uniform offset; the constant part comes last and folds into the instruction."""
        dynamic, constant = self.indices.evaluate(offset)
        dtype = _STORAGE.get(buffer.dtype, buffer.dtype)
        pointer = self.pointers[buffer]
        if dynamic is not None:
            pointer = self._step(pointer, dynamic, dtype)
        if self.apart is not None and buffer is self.apart[0]:
            pointer = self._disguised(pointer, self.apart[1])
        return self._step(pointer, constant, dtype)

    def _disguised(self, pointer: Value, number: int) -> Value:
        """The same pointer, of which LLVM does not know that it is, nor that those of other numbers are."""
        rhs = f'call ptr asm "", "=r,0,i"({pointer.typed}, i32 {number})'
        return self.frame.builder.op(rhs, "ptr", 1, pointer.depth)

    def _lane_addresses(self, buffer: Buffer, offset: Linear, split: tuple[Linear, int] | None) -> list[Value]:
        dtype = _STORAGE.get(buffer.dtype, buffer.dtype)
        if split is not None:
            first = self._address(buffer, split[0])
            return [self._step(first, split[1] * lane, dtype) for lane in range(self.frame.lanes)]
        b = self.frame.builder
        offsets = self.indices.vector(offset)
        return [self._step(self.pointers[buffer], b.extract(offsets, n), dtype) for n in range(self.frame.lanes)]

    # --- loads ------------------------------------------------------------------------------------------------------

    def load(self, owner: object, buffer: Buffer, indices: tuple[Linear, ...], guard: Value | None) -> Value:
        """The element, or a vector of elements where the index varies over the lanes.

        With a `guard`, lanes where it does not hold may be out of bounds: they read the buffer's first element.
        """
        offset = self._offset(owner, buffer, indices)
        split = self.frame.split_lane(offset)
        if guard is not None and self.is_inside(buffer, indices):
            guard = None
        if split is not None and split[1] == 0:
            raw = self._read(
                buffer, self._guarded(buffer, self._address(buffer, split[0]), self._in_any_lane(guard)), 1
            )
        elif split is not None and split[1] == 1 and self._is_block(buffer, guard):
            raw = self._read(buffer, self._guarded(buffer, self._address(buffer, split[0]), guard), self.frame.lanes)
        else:
            raw = self._gather(buffer, self._lane_addresses(buffer, offset, split), guard)
        return self._from_storage(raw, buffer.dtype)

    def load_word(self, loads: Sequence[Load], guard: Value | None) -> Value | None:
        """Four bytes as one int32, or as a vector of those; None where they are not side by side, or not all there."""
        first = loads[0]
        offset = self.offset(first)
        if any(load.buffer is not first.buffer or self.offset(load) != offset + n for n, load in enumerate(loads)):
            return None
        if guard is not None and not all(self.is_inside(load.buffer, load.indices) for load in loads):
            return None
        split = self.frame.split_lane(offset)
        if split is not None and split[1] in (0, len(loads)):
            lanes = self.frame.lanes if split[1] else 1
            return self._read(first.buffer, self._address(first.buffer, split[0]), lanes, "int32")
        b = self.frame.builder
        words = Value("poison", "int32", self.frame.lanes)
        for lane, address in enumerate(self._lane_addresses(first.buffer, offset, split)):
            words = b.insert(words, self._read(first.buffer, address, 1, "int32"), lane)
        return words

    def load_run(self, owner: object, buffer: Buffer, indices: tuple[Linear, ...], length: int) -> Value:
        """The element and those that follow it in memory, as one vector."""
        return self._read(buffer, self._address(buffer, self._offset(owner, buffer, indices)), length)

    def is_inside(self, buffer: Buffer, indices: tuple[Linear, ...]) -> bool:
        """Whether the indices are certainly those of an element."""
        for index, extent in zip(indices, buffer.shape, strict=True):
            low, high = bounds(index, self.frame.ranges)
            if low < 0 or high >= extent:
                return False
        return True

    def _is_block(self, buffer: Buffer, guard: Value | None) -> bool:
        """Whether a whole vector may be read: unguarded, or guarded as a whole and not longer than the buffer."""
        return guard is None or (guard.lanes == 1 and buffer.num_elements >= self.frame.lanes)

    def _in_any_lane(self, guard: Value | None) -> Value | None:
        """Whether an element that all lanes share is one: it is if it is for some lane."""
        if guard is None or guard.lanes == 1:
            return guard
        b = self.frame.builder
        return reduce(partial(b.binary, "or"), (b.extract(guard, lane) for lane in range(guard.lanes)))

    def _guarded(self, buffer: Buffer, address: Value, guard: Value | None) -> Value:
        if guard is None:
            return address
        return self.frame.builder.select(guard, address, self.pointers[buffer])

    def _gather(self, buffer: Buffer, addresses: list[Value], guard: Value | None) -> Value:
        b = self.frame.builder
        dtype = _STORAGE.get(buffer.dtype, buffer.dtype)
        result = Value("poison", dtype, len(addresses))
        for lane, address in enumerate(addresses):
            holds = b.extract(guard, lane) if guard is not None and guard.lanes > 1 else guard
            result = b.insert(result, self._read(buffer, self._guarded(buffer, address, holds), 1), lane)
        return result

    def _read(self, buffer: Buffer, address: Value, lanes: int, dtype: str = "") -> Value:
        """What lies at the address, as elements of the buffer or of another type."""
        b = self.frame.builder
        dtype = dtype or _STORAGE.get(buffer.dtype, buffer.dtype)
        rhs = f"load {llvm_type(dtype, lanes)}, {address.typed}, align {DTYPES[buffer.dtype].bytes}"
        if buffer.scope in (INPUT, PACKED):
            return b.op(rhs, dtype, lanes, max(address.depth, b.safe_depth, b.spare_depth))
        known = self._loaded.get((buffer, rhs))
        if known is None:
            known = self._loaded[buffer, rhs] = b.fresh(rhs, dtype, lanes)
        return known

    def _from_storage(self, raw: Value, dtype: str) -> Value:
        b = self.frame.builder
        if dtype == "bool":
            return b.compare("ne", raw, b.const(0, "int8", raw.lanes))
        if dtype in HALF_TYPES:
            return widen(b, self.frame.target, raw, dtype)
        return raw._replace(dtype=dtype)

    # --- stores -----------------------------------------------------------------------------------------------------

    def store(self, owner: object, buffer: Buffer, indices: tuple[Linear, ...], value: Value) -> None:
        """Write the element, or one element a lane where the index varies over the lanes."""
        b = self.frame.builder
        raw = self._to_storage(value, buffer.dtype)
        offset = self._offset(owner, buffer, indices)
        split = self.frame.split_lane(offset)
        if split is not None and split[1] == 0:
            element = raw if raw.lanes == 1 else b.extract(raw, raw.lanes - 1)
            self._write(buffer, self._address(buffer, split[0]), element)
        elif split is not None and split[1] == 1:
            vector = b.broadcast(raw, self.frame.lanes)
            if buffer in self.streamed and self._fills_lines(buffer, split[0]):
                self._stream(buffer, self._address(buffer, split[0]), vector)
            else:
                self._write(buffer, self._address(buffer, split[0]), vector)
        else:
            for lane, address in enumerate(self._lane_addresses(buffer, offset, split)):
                self._write(buffer, address, raw if raw.lanes == 1 else b.extract(raw, lane))
        for key in [key for key in self._loaded if key[0] is buffer]:
            del self._loaded[key]

    def store_run(
        self, owner: object, buffer: Buffer, indices: tuple[Linear, ...], distance: int, values: Value
    ) -> None:
        """Write a vector to that distance from the element."""
        offset = self._offset(owner, buffer, indices) + distance
        write = self._write
        if buffer in self.streamed and self._is_line(buffer, offset, values.lanes):
            write = self._stream
        write(buffer, self._address(buffer, offset), values)

    def _write(self, buffer: Buffer, address: Value, raw: Value) -> None:
        self.frame.builder.effect(f"store {raw.typed}, {address.typed}, align {DTYPES[buffer.dtype].bytes}")

    # --- stores past the caches ---------------------------------------------------------------------------------------

    def _fills_lines(self, buffer: Buffer, offset: Linear) -> bool:
        """Whether the loop of the lanes writes whole lines, in vectors that there is such a store for.

        A line of which only a part is written that way costs more than it saves.
        """
        loop, frame = self.lane_loop, self.frame
        num_bytes = DTYPES[buffer.dtype].bytes
        if loop is None or loop.var is not frame.lane_var or frame.lanes * num_bytes not in STORE_BYTES:
            return False
        first = frame.bindings[loop.var]
        assert isinstance(first, int), "lanes are bound to the first of them"
        before = first - loop.begin
        return before % frame.lanes == 0 and self._is_line(buffer, offset + -before, loop.extent)

    def _is_line(self, buffer: Buffer, offset: Linear, num_elements: int) -> bool:
        """Whether so many elements are lines, as many as they are, in a buffer that begins with one."""
        per_line = self.frame.target.cache_line_bytes // DTYPES[buffer.dtype].bytes
        start = offset.const
        for atom, step in offset.terms.items():
            value = self.frame.bindings.get(atom) if isinstance(atom, Var) else None
            if isinstance(value, int):
                start += step * value
            elif step % per_line:
                return False
        return start % per_line == 0 and num_elements % per_line == 0

    def _stream(self, buffer: Buffer, address: Value, raw: Value) -> None:
        b = self.frame.builder
        self.has_streamed = True
        b.declarations[NONTEMPORAL] = f"{NONTEMPORAL} = !{{i32 1}}"
        alignment = raw.lanes * DTYPES[buffer.dtype].bytes
        b.effect(f"store {raw.typed}, {address.typed}, align {alignment}, !nontemporal {NONTEMPORAL}")

    def finish_streaming(self) -> None:
        """Such stores are seen by other threads in any order; after this, all are."""
        if self.has_streamed:
            b = self.frame.builder
            b.declarations["@llvm.x86.sse.sfence"] = "declare void @llvm.x86.sse.sfence()"
            b.effect("call void @llvm.x86.sse.sfence()")

    def _to_storage(self, value: Value, dtype: str) -> Value:
        b, target = self.frame.builder, self.frame.target
        if dtype in HALF_TYPES:
            return narrow(b, target, convert(b, target, value, "float32"), dtype)
        exact = convert(b, target, value, compute_dtype(dtype))
        return b.convert("zext", exact, "int8") if dtype == "bool" else exact

    def varies(self, owner: object, buffer: Buffer, indices: tuple[Linear, ...]) -> bool:
        """Whether the address differs from lane to lane."""
        split = self.frame.split_lane(self._offset(owner, buffer, indices))
        return split is None or split[1] != 0
