"""Kernels written by hand in LLVM IR, in the form that the code generator emits."""

from __future__ import annotations

ADD_KERNEL = """
; out = a * b + c over 64 floats, in vectors of 16
define i32 @kernel(ptr %rt, ptr %args, ptr %workspace) nounwind {
entry:
  %a = load ptr, ptr %args
  %args1 = getelementptr ptr, ptr %args, i64 1
  %b = load ptr, ptr %args1
  %args2 = getelementptr ptr, ptr %args, i64 2
  %c = load ptr, ptr %args2
  %args3 = getelementptr ptr, ptr %args, i64 3
  %out = load ptr, ptr %args3
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %pa = getelementptr float, ptr %a, i64 %i
  %pb = getelementptr float, ptr %b, i64 %i
  %pc = getelementptr float, ptr %c, i64 %i
  %po = getelementptr float, ptr %out, i64 %i
  %va = load <16 x float>, ptr %pa, align 4
  %vb = load <16 x float>, ptr %pb, align 4
  %vc = load <16 x float>, ptr %pc, align 4
  %product = fmul contract <16 x float> %va, %vb
  %sum = fadd contract <16 x float> %product, %vc
  store <16 x float> %sum, ptr %po, align 4
  %next = add nuw nsw i64 %i, 16
  %more = icmp slt i64 %next, 64
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}
"""

SCALE_KERNEL = """
; out = x * 2.5 over 1000 doubles, in parallel; the factor goes through the thread's scratch memory
define internal void @body(ptr %context, i64 %begin, i64 %end) nounwind {
entry:
  %x = load ptr, ptr %context
  %pout = getelementptr ptr, ptr %context, i64 1
  %out = load ptr, ptr %pout
  %prt = getelementptr ptr, ptr %context, i64 2
  %rt = load ptr, ptr %prt
  %pscratch = getelementptr ptr, ptr %rt, i64 1
  %scratch = load ptr, ptr %pscratch
  %memory = call ptr %scratch(i64 8)
  store double 2.5, ptr %memory
  br label %loop
loop:
  %i = phi i64 [%begin, %entry], [%next, %loop]
  %px = getelementptr double, ptr %x, i64 %i
  %vx = load double, ptr %px
  %factor = load double, ptr %memory
  %scaled = fmul double %vx, %factor
  %po = getelementptr double, ptr %out, i64 %i
  store double %scaled, ptr %po
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}

define i32 @kernel(ptr %rt, ptr %args, ptr %workspace) nounwind {
  %context = alloca [3 x ptr]
  %x = load ptr, ptr %args
  store ptr %x, ptr %context
  %args1 = getelementptr ptr, ptr %args, i64 1
  %out = load ptr, ptr %args1
  %pout = getelementptr ptr, ptr %context, i64 1
  store ptr %out, ptr %pout
  %prt = getelementptr ptr, ptr %context, i64 2
  store ptr %rt, ptr %prt
  %parallel_for = load ptr, ptr %rt
  call void %parallel_for(ptr %rt, ptr @body, ptr %context, i64 1000)
  ret i32 0
}
"""


def gemm_tile(num_rows: int, num_vectors: int, lanes: int) -> str:
    """`gemm(A, B, C, K)`: a register tile of num_rows x (num_vectors * lanes) over packed panels.

    A is [K][num_rows], B is [K][num_vectors * lanes], C the tile. The accumulators are one alloca that is addressed by
    constants, as a local stage of a schedule is.
    """
    vector = f"<{lanes} x float>"
    num_cells = num_rows * num_vectors
    width = num_vectors * lanes
    lines = [
        "define void @gemm(ptr noalias %A, ptr noalias %B, ptr noalias %C, i64 %K) nounwind {",
        "entry:",
        f"  %acc = alloca [{num_cells} x {vector}], align 64",
        *(f"  %cell{n} = getelementptr {vector}, ptr %acc, i64 {n}" for n in range(num_cells)),
        *(f"  store {vector} zeroinitializer, ptr %cell{n}, align 64" for n in range(num_cells)),
        "  br label %loop",
        "loop:",
        "  %k = phi i64 [0, %entry], [%next, %loop]",
        f"  %a.base = mul i64 %k, {num_rows}",
        f"  %b.base = mul i64 %k, {width}",
    ]
    for j in range(num_vectors):
        lines += [
            f"  %b.index{j} = add i64 %b.base, {j * lanes}",
            f"  %b.at{j} = getelementptr float, ptr %B, i64 %b.index{j}",
            f"  %b{j} = load {vector}, ptr %b.at{j}, align 4",
        ]
    for i in range(num_rows):
        lines += [
            f"  %a.index{i} = add i64 %a.base, {i}",
            f"  %a.at{i} = getelementptr float, ptr %A, i64 %a.index{i}",
            f"  %a.one{i} = load float, ptr %a.at{i}, align 4",
            f"  %a.first{i} = insertelement {vector} poison, float %a.one{i}, i64 0",
            f"  %a{i} = shufflevector {vector} %a.first{i}, {vector} poison, <{lanes} x i32> zeroinitializer",
        ]
        for j in range(num_vectors):
            n = i * num_vectors + j
            lines += [
                f"  %old{n} = load {vector}, ptr %cell{n}, align 64",
                f"  %product{n} = fmul contract {vector} %a{i}, %b{j}",
                f"  %new{n} = fadd contract {vector} %old{n}, %product{n}",
                f"  store {vector} %new{n}, ptr %cell{n}, align 64",
            ]
    lines += [
        "  %next = add nuw nsw i64 %k, 1",
        "  %more = icmp slt i64 %next, %K",
        "  br i1 %more, label %loop, label %done",
        "done:",
    ]
    for n in range(num_cells):
        lines += [
            f"  %result{n} = load {vector}, ptr %cell{n}, align 64",
            f"  %c.at{n} = getelementptr float, ptr %C, i64 {n * lanes}",
            f"  store {vector} %result{n}, ptr %c.at{n}, align 4",
        ]
    return "\n".join([*lines, "  ret void", "}"])
