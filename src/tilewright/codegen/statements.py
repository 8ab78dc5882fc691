"""Statements of a loop nest as code: loops of all kinds, stores, reductions, and parallel closures."""

from __future__ import annotations

from dataclasses import replace

from tilewright.codegen.arithmetic import combine, combine_indexed, reduce_lanes, reduce_lanes_indexed
from tilewright.codegen.broadcasts import Apart, StraightCode, factors, is_uniform
from tilewright.codegen.builder import FunctionBuilder, Value
from tilewright.codegen.collapse import collapse
from tilewright.codegen.convert import compute_dtype
from tilewright.codegen.dot import dot4
from tilewright.codegen.frame import Frame
from tilewright.codegen.module_text import ModuleText, ParallelBody
from tilewright.codegen.transpose import TransposedCopy, find_transposed_copy, transpose
from tilewright.codegen.values import Values
from tilewright.errors import CodegenError
from tilewright.ir import (
    Block,
    Buffer,
    For,
    Load,
    Stmt,
    Store,
    Update,
    Where,
    statements,
    used_buffers,
    used_variables,
    written_buffers,
)
from tilewright.schedule import MAX_STATEMENTS, PARALLEL, UNROLL, VECTORIZE, identity
from tilewright.te import DOT4, DTYPES, Binary, Const, Expr, Select, Var, is_float
from tilewright.te.index import Interval

# Of all statements. Programs of the search space have at most about 3,500 statements and 24,000 instructions.
MAX_INSTRUCTIONS = 40_000
# What sums and their operands leave free for what is used after them, if it is more than one.
_SPARE_REGISTERS = 2
# Pointers to one buffer: each takes a register of its own.
_MOST_POINTERS = 8


def summands(e: Expr) -> tuple[Expr, ...]:
    """The products of floats that an expression is the sum of; none where it is anything else."""
    if not isinstance(e, Binary) or not is_float(e.dtype):
        return ()
    if e.op == "mul":
        return (e,)
    parts = (summands(e.a), summands(e.b)) if e.op == "add" else ((), ())
    return (*parts[0], *parts[1]) if all(parts) else ()


def _is_neutral_otherwise(value: Expr, op: str) -> bool:
    """Whether it is a select that leaves a reduction by `op` as it is where its condition does not hold."""
    if not isinstance(value, Select) or not isinstance(value.b, Const):
        return False
    return bool(value.b.value == identity(op, value.b.dtype).value)


class FunctionWriter:
    """Writes one function: the kernel itself, or the body of a parallel loop."""

    def __init__(self, module: ModuleText, name: str) -> None:
        self.module = module
        self.name = name
        self.declarations: dict[str, str] = {}
        self.builder = FunctionBuilder(self.declarations, module.target.has_fma, module.target.has_rounding)
        self.frame = Frame(self.builder, module.target)
        self.values = Values(self.frame)
        self.memory = self.values.memory
        self.scratch_bytes = 0  # of the parallel bodies inside
        self.num_closures = 0
        self.straight = StraightCode()

    def write(self, stmt: Stmt) -> None:
        if isinstance(stmt, For):
            self._loop(stmt)
        elif isinstance(stmt, Block):
            mark = self.memory.allocate(stmt.buffers)
            for inner in stmt.body:
                self.write(inner)
            self.memory.release(mark)
        elif isinstance(stmt, Where):
            self._where(stmt)
        else:
            self._count()
            if isinstance(stmt, Store):
                self.memory.store(stmt, stmt.buffer, stmt.indices, self.values.emit(stmt.value))
            else:
                self._update(stmt)

    def _count(self) -> None:
        self.module.num_statements += 1
        if self.module.num_statements > MAX_STATEMENTS:
            raise CodegenError(
                f"{self.name} unrolls to more than {MAX_STATEMENTS} statements; unroll fewer loops or smaller ones"
            )
        if self.builder.num_names > MAX_INSTRUCTIONS:
            raise CodegenError(
                f"{self.name} unrolls to more than {MAX_INSTRUCTIONS} instructions; unroll fewer loops or smaller ones"
            )

    # --- loops ------------------------------------------------------------------------------------------------------

    def _loop(self, loop: For) -> None:
        if loop.extent == 1:
            self._iteration(loop, loop.begin)
        elif loop.kind == UNROLL:
            self.straight.unrolled.append(loop)
            for value in range(loop.begin, loop.begin + loop.extent):
                self._iteration(loop, value)
            self.straight.unrolled.pop()
        elif loop.kind == VECTORIZE:
            self._vector_loop(loop)
        elif loop.kind == PARALLEL and self.module.num_threads > 1:
            self._parallel_loop(loop)
        else:
            self._serial_loop(loop)

    def _serial_loop(self, loop: For) -> None:
        copy = find_transposed_copy(loop, self.module.target)
        if copy is not None:
            self._transposed_copy(copy)
            return
        one = collapse(loop)
        if one is None:
            self._counted_loop(loop, str(loop.begin), str(loop.begin + loop.extent))
        else:
            self.frame.bind(loop.var, 0, 0, 0)
            self._serial_loop(one)

    def _iteration(self, loop: For, value: int) -> None:
        self.frame.bind(loop.var, value, value, value)
        self.write(loop.body)

    def _counted_loop(self, loop: For, begin: str, end: str) -> None:
        self.memory.forget_loads()
        counter = self.builder.open_loop(begin)
        self.frame.bind(loop.var, counter, loop.begin, loop.begin + loop.extent - 1)
        outer, self.straight = self.straight, StraightCode(loop.var)
        self.write(loop.body)
        self.straight = outer
        self.builder.close_loop(end)
        self.memory.forget_loads()

    def _transposed_copy(self, copy: TransposedCopy) -> None:
        """Block after block of rows, then the rows that do not fill one."""
        loop = copy.loop
        num_blocks = loop.extent // copy.size
        rest = loop.extent - num_blocks * copy.size
        self.memory.forget_loads()
        counter = self.builder.open_loop("0")
        row = self.builder.binary("mul", counter, self.builder.const(copy.size, "int64"))
        row = self.builder.binary("add", row, self.builder.const(loop.begin, "int64"))
        self.frame.bind(loop.var, row, loop.begin, loop.begin + (num_blocks - 1) * copy.size)
        for first in range(copy.lanes.begin, copy.lanes.begin + copy.lanes.extent, copy.size):
            self._block(copy, first)
        self.builder.close_loop(str(num_blocks))
        self.memory.forget_loads()
        if rest:
            self._loop(replace(loop, begin=loop.begin + num_blocks * copy.size, extent=rest))

    def _block(self, copy: TransposedCopy, first: int) -> None:
        """One block, whose columns begin at `first`."""
        rows = []
        for column in range(first, first + copy.size):
            self.frame.bind(copy.lanes.var, column, column, column)
            rows.append(self.memory.load_run(copy.load, copy.load.buffer, copy.load.indices, copy.size))
        self.frame.bind(copy.lanes.var, first, first, first)
        for n, column_values in enumerate(transpose(self.builder, rows)):
            self._count()
            self.memory.store_run(
                copy.store, copy.store.buffer, copy.store.indices, n * copy.column_step, column_values
            )

    def _vector_loop(self, loop: For) -> None:
        """Write the body once for each vector: as many lanes as a register has, then a rest of powers of two.

        Vectors of other lengths would be legal, but LLVM takes them apart element by element.
        """
        frame = self.frame
        position, end = loop.begin, loop.begin + loop.extent
        lanes = self._register_lanes(loop.body)
        frame.ranges[loop.var] = Interval(position, end - 1)
        if self.straight.num_kept(loop, lanes) > self.module.target.num_vector_registers - _SPARE_REGISTERS:
            self.builder.fill_registers()
        apart = self._read_apart(loop, lanes)
        self.memory.lane_loop = loop
        while position < end:
            while lanes > end - position:
                lanes //= 2
            self.memory.apart = None if apart is None else (apart.buffer, apart.number(position > loop.begin))
            frame.bind(loop.var, position, position, position + lanes - 1)
            frame.lane_var, frame.lanes = (loop.var if lanes > 1 else None), lanes
            self.write(loop.body)
            position += lanes
        frame.lane_var, frame.lanes = None, 1
        self.memory.apart = self.memory.lane_loop = None

    def _read_apart(self, loop: For, lanes: int) -> Apart | None:
        """The factor that is one element for all lanes, if it is to be read from memory each time that it is used."""
        for factor in map(self.values.chosen, factors(loop)):
            if isinstance(factor, Load) and is_uniform(factor, loop) and not self.memory.is_on_stack(factor.buffer):
                return self._apart(loop, factor, lanes)
        return None

    def _apart(self, loop: For, factor: Load, lanes: int) -> Apart | None:
        """For each of two vectors: a multiplication that takes the element from memory itself saves the instruction
        that broadcasts it into a register, and LLVM writes it so where the element has one use only. And in each step
        of the sum, where elements that wait for the next one would take the registers of sums; not where reading one
        is an instruction more for each multiplication.
        """
        target, offset = self.module.target, self.memory.offset(factor)
        is_pair = target.has_broadcast_operands and loop.extent == 2 * lanes
        if is_pair and self.straight.reads_once(offset):
            return Apart(factor.buffer, 0, is_pair)
        assert isinstance(loop.body, Update)
        again = self.straight.reads_again(loop.body, offset)
        num_vectors = -(-loop.extent // lanes)
        is_cheap = target.has_broadcast_operands or num_vectors > 1
        if again is None or not is_cheap or again.num_numbers > _MOST_POINTERS:
            return None
        if (again.num_rows + 1) * num_vectors + again.num_elements <= target.num_vector_registers:
            return None
        bindings = [self.frame.bindings[var] for var in again.vars]
        step = tuple(value for value in bindings if isinstance(value, int))  # all are: these loops are unrolled
        return Apart(factor.buffer, again.numbers[step], is_pair)

    def _register_lanes(self, body: Stmt) -> int:
        """The lanes of a register of the type that the body writes."""
        written = [DTYPES[compute_dtype(buffer.dtype)].bytes for buffer in written_buffers(body)]
        return max(1, self.module.target.vector_bytes // max(written))

    def _where(self, where: Where) -> None:
        counter = self.frame.bindings[where.var]
        if isinstance(counter, int):
            self.write(next(case for begin, end, case in where.cases if begin <= counter < end))
            return
        outer = self.frame.ranges[where.var]
        self._one_of(where.cases, where.var, counter)
        self.memory.forget_loads()
        self.frame.ranges[where.var] = outer

    def _one_of(self, cases: tuple[tuple[int, int, Stmt], ...], var: Var, counter: Value) -> None:
        """The case that holds the counter, found by halves."""
        self.memory.forget_loads()
        if len(cases) == 1:
            begin, end, case = cases[0]
            self.frame.ranges[var] = Interval(begin, end - 1)
            self.write(case)
            return
        middle = len(cases) // 2
        below = self.builder.compare("slt", counter, self.builder.const(cases[middle][0], "int64"))
        self.builder.branch(
            below,
            lambda: self._one_of(cases[:middle], var, counter),
            lambda: self._one_of(cases[middle:], var, counter),
        )

    # --- reductions -------------------------------------------------------------------------------------------------

    def _update(self, stmt: Update) -> None:
        if self._is_beyond(stmt):
            return
        is_dot = stmt.op == "sum" and isinstance(stmt.values[0], Binary) and stmt.values[0].op == DOT4
        if is_dot and self._dot_update(stmt):
            return
        if self._add_products(stmt):
            return
        b, memory = self.builder, self.memory
        new = [self.values.emit(value) for value in stmt.values]
        old = [memory.load(stmt, buffer, stmt.indices, None) for buffer in stmt.buffers]
        lanes = self.frame.lanes
        if lanes > 1 and not memory.varies(stmt, stmt.buffers[0], stmt.indices):
            new = self._across_lanes(stmt.op, [b.broadcast(value, lanes) for value in new])
        lanes = max(value.lanes for value in (*new, *old))
        new, old = ([b.broadcast(value, lanes) for value in values] for values in (new, old))
        if len(new) == 2:
            results = combine_indexed(b, stmt.op, (old[0], old[1]), (new[0], new[1]))
            for buffer, result in zip(stmt.buffers, results, strict=True):
                memory.store(stmt, buffer, stmt.indices, result)
        else:
            memory.store(stmt, stmt.buffers[0], stmt.indices, combine(b, stmt.op, old[0], new[0]))

    def _dot_update(self, stmt: Update) -> bool:
        """Add a `dot4` to the sums of its lanes, by one instruction where there is one; not where lanes share a sum."""
        product, (buffer,) = stmt.values[0], stmt.buffers
        if self.frame.lanes > 1 and not self.memory.varies(stmt, buffer, stmt.indices):
            return False
        assert isinstance(product, Binary)
        x, y = self.values.emit_operands(product)
        total = self.memory.load(stmt, buffer, stmt.indices, None)
        lanes = max(value.lanes for value in (x, y, total))
        words = [self.builder.broadcast(value, lanes) for value in (total, x, y)]
        self.memory.store(stmt, buffer, stmt.indices, dot4(self.builder, self.module.target, *words))
        return True

    def _add_products(self, stmt: Update) -> bool:
        """Add a sum of products to the sums of its lanes one after the other: each is one instruction with FMA."""
        products = summands(stmt.values[0]) if stmt.op == "sum" else ()
        if len(products) < 2 or (self.frame.lanes > 1 and not self.memory.varies(stmt, stmt.buffers[0], stmt.indices)):
            return False
        total = self.memory.load(stmt, stmt.buffers[0], stmt.indices, None)
        for product in products:
            new = self.values.emit(product)
            lanes = max(total.lanes, new.lanes)
            old, new = (self.builder.broadcast(value, lanes) for value in (total, new))
            total = combine(self.builder, stmt.op, old, new)
        self.memory.store(stmt, stmt.buffers[0], stmt.indices, total)
        return True

    def _across_lanes(self, op: str, values: list[Value]) -> list[Value]:
        """A vectorized reduction: the lanes combined into one."""
        if len(values) == 2:
            return list(reduce_lanes_indexed(self.builder, op, values[0], values[1]))
        return [reduce_lanes(self.builder, op, values[0])]

    def _is_beyond(self, stmt: Update) -> bool:
        """Whether this is certainly beyond the reduction's end, where the guard leaves the neutral value.

        An argmax may take the index of a value that is neutral, as of one that the task itself masks: there the index
        has to be neutral, too.
        """
        operators = (stmt.op, "min")  # the first of several indices is the least
        if not all(map(_is_neutral_otherwise, stmt.values, operators)):
            return False
        first = stmt.values[0]
        assert isinstance(first, Select), "it is guarded"
        return self.values.emit(first.cond).text == "false"

    # --- parallel loops ---------------------------------------------------------------------------------------------

    def _parallel_loop(self, loop: For) -> None:
        """Write the body as a function of its own, and hand it to the thread pool with what it uses."""
        self.memory.forget_loads()
        self.num_closures += 1
        closure = FunctionWriter(self.module, f"{self.name}.body{self.num_closures}")
        buffers, variables = used_buffers(loop.body), used_variables(loop.body)
        captured = self._captured(loop, closure, buffers, variables)
        slots = f"[{len(captured) + 1} x i64]"
        context = self.builder.name("context")
        self.memory.stack.append(f"  {context} = alloca {slots}, align 8")
        for position, value in enumerate([Value("%rt", "ptr", 1), *captured]):
            self.builder.effect(
                f"{context}.{self.num_closures}.{position} = getelementptr i64, ptr {context}, i64 {position}"
            )
            self.builder.effect(f"store {value.typed}, ptr {context}.{self.num_closures}.{position}, align 8")
        run = self.builder.fresh("load ptr, ptr %rt, align 8", "ptr", 1)
        self.builder.effect(f'call void {run.text}(ptr %rt, ptr @"{closure.name}", ptr {context}, i64 {loop.extent})')
        body = self._reused_body(loop, closure, captured, buffers, variables)
        self.module.add(body)
        self.scratch_bytes = max(self.scratch_bytes, body.scratch_bytes)

    def _reused_body(
        self, loop: For, closure: FunctionWriter, captured: list[Value], buffers: list[Buffer], variables: list[Var]
    ) -> ParallelBody:
        """The body as it was written for another program, or else anew."""
        shelf = self.module.shelf
        if shelf is None or any(isinstance(inner, For) and inner.kind == PARALLEL for inner in statements(loop.body)):
            return closure._body(loop, captured)
        num_before = self.module.num_statements
        known = [closure.frame.bindings.get(var) for var in variables]
        has_pointer = [buffer in closure.memory.pointers for buffer in buffers]
        is_streamed = [buffer in closure.memory.streamed for buffer in buffers]
        ranges = list(closure.frame.ranges.values())
        surroundings = (closure.name, known, has_pointer, is_streamed, ranges)
        body = shelf.body(loop, surroundings, lambda: closure._body(loop, captured))
        self.module.num_statements = num_before + body.num_statements
        return body

    def _body(self, loop: For, captured: list[Value]) -> ParallelBody:
        """This function, as the body of the loop with the values that it uses."""
        num_before = self.module.num_statements
        self.builder.label("entry")
        self._counted_loop(loop, "%begin", "%end")
        self.memory.finish_streaming()
        header = [f"  %slot{n} = getelementptr i64, ptr %context, i64 {n}" for n in range(len(captured) + 1)]
        header += ["  %rt = load ptr, ptr %slot0, align 8"]
        header += [f"  %in{n} = load {value.type}, ptr %slot{n}, align 8" for n, value in enumerate(captured, 1)]
        if self.memory.arena_bytes:
            header += [
                "  %scratch.slot = getelementptr i64, ptr %rt, i64 1",
                "  %scratch.get = load ptr, ptr %scratch.slot, align 8",
                f"  %scratch = call ptr %scratch.get(i64 {self.memory.arena_bytes})",
            ]
        signature = f'define internal void @"{self.name}"(ptr %context, i64 %begin, i64 %end) nounwind'
        text = self.text(signature, header, "  ret void")
        num_statements = self.module.num_statements - num_before
        return ParallelBody(self.name, text, self.declarations, num_statements, self.memory.arena_bytes)

    def _captured(self, loop: For, closure: FunctionWriter, buffers: list[Buffer], variables: list[Var]) -> list[Value]:
        """The run-time values that the body uses; they arrive in the closure as %in1, %in2, ..."""
        captured: list[Value] = []

        def arrive(value: Value) -> Value:
            captured.append(value)
            return Value(f"%in{len(captured)}", value.dtype, 1)

        for buffer in buffers:
            pointer = self.memory.pointers.get(buffer)
            if pointer is not None:
                closure.memory.pointers[buffer] = arrive(pointer)
        for var in variables:
            if var in self.frame.bindings and var is not loop.var:
                value = self.frame.bindings[var]
                closure.frame.bindings[var] = value if isinstance(value, int) else arrive(value)
                closure.frame.ranges[var] = self.frame.ranges[var]
        closure.memory.arena = Value("%scratch", "ptr", 1)
        closure.memory.streamed = self.memory.streamed
        return captured

    def text(self, signature: str, header: list[str], end: str) -> str:
        """The whole function, once its body is written."""
        label, *body = self.builder.lines
        return "\n".join([signature + " {", label, *self.memory.stack, *header, *body, end, "}"])
