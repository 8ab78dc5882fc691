"""Small networks spelled as tools export them: with their operator sets, shape arithmetic, layouts and oddities.

A body may name values that nothing in the text gives: those are weights, given with their arrays or shapes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto


@dataclass(frozen=True)
class Export:
    """A model, the sizes that its inputs get, and the operators that have to fall back."""

    model: ModelProto
    shapes: dict[str, Any] = field(default_factory=dict)
    fallbacks: tuple[str, ...] = ()


EXPORTS: dict[str, Export] = {}


def export(
    name: str,
    text: str,
    *,
    opset: int,
    ir: int = 8,
    shapes: dict[str, Any] | None = None,
    fallbacks: tuple[str, ...] = (),
    **weights: Any,
) -> None:
    """Add a model. A weight is an array, or a shape: then its elements are small random numbers."""
    proto = onnx.parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}]> net {text}')
    random = np.random.default_rng(len(EXPORTS))
    for weight, value in weights.items():
        array = (random.standard_normal(value) * 0.3).astype(np.float32) if isinstance(value, tuple) else value
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(array), weight))
    EXPORTS[name] = Export(proto, shapes or {}, fallbacks)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def int_scalar(value: int) -> np.ndarray:
    return np.array(value, np.int64)


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def number(value: float) -> np.ndarray:
    return np.array(value, np.float32)


# --- torch.onnx.export, the legacy exporter ---------------------------------------------------------------------------

export(
    "torch classifier, opset 11",
    """(float[batch, 3, 16, 16] input) => (float[batch, 10] output) {
        c = Conv<dilations = [1, 1], group = 1, kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]>(
            input, w, b)
        n = BatchNormalization<epsilon = 0.00001, momentum = 0.9>(c, scale, bias, mean, var)
        r = Clip(n, zero, six)
        p = MaxPool<ceil_mode = 1, kernel_shape = [3, 3], pads = [0, 0, 0, 0], strides = [2, 2]>(r)
        g = GlobalAveragePool(p)
        s = Shape(g)
        z = Constant<value = int64 {0}>()
        n0 = Gather<axis = 0>(s, z)
        u = Unsqueeze<axes = [0]>(n0)
        m = Constant<value = int64[1] {-1}>()
        target = Concat<axis = 0>(u, m)
        f = Reshape(g, target)
        output = Gemm<alpha = 1.0, beta = 1.0, transB = 1>(f, fw, fb)
    }""",
    opset=11, ir=6, shapes={"batch": 2},
    w=(8, 3, 3, 3), b=(8,), scale=(8,), bias=(8,), mean=(8,), var=np.ones(8, np.float32),
    zero=number(0), six=number(6), fw=(10, 8), fb=(10,),
)  # fmt: skip

export(
    "torch upsample, opset 11",
    """(float[1, 4, 5, 7] x) => (float[1, 4, h, w] near, float[1, 4, h2, w2] lin, float[1, 4, h3, w3] cub) {
        near = Resize<coordinate_transformation_mode = "asymmetric", cubic_coeff_a = -0.75, mode = "nearest",
                      nearest_mode = "floor">(x, none, twice)
        s = Shape(x)
        first = Slice(s, zero, two, zero)
        sizes = Concat<axis = 0>(first, size)
        lin = Resize<coordinate_transformation_mode = "pytorch_half_pixel", mode = "linear">(x, none, none, sizes)
        cub = Resize<coordinate_transformation_mode = "align_corners", cubic_coeff_a = -0.75, mode = "cubic">(
            x, none, none, sizes)
    }""",
    opset=11, ir=6, none=np.zeros(0, np.float32), twice=floats(1, 1, 2, 2), zero=ints(0), two=ints(2), size=ints(8, 9),
)  # fmt: skip

export(
    "torch yolov5 head, opset 13",
    """(float[1, 8, 4, 4] x, float[1, 8, 2, 2] deep) => (float[1, 48, 6] output) {
        up = Resize<coordinate_transformation_mode = "asymmetric", mode = "nearest", nearest_mode = "floor">(
            deep, , twice)
        joined = Concat<axis = 1>(x, up)
        c = Conv<kernel_shape = [1, 1]>(joined, w, b)
        gate = Sigmoid(c)
        silu = Mul(c, gate)
        even = Slice(silu, from0, end, axis2, step2)
        odd = Slice(silu, from1, end, axis2, step2)
        focus = Concat<axis = 3>(even, odd)
        r = Reshape(focus, grid)
        t = Transpose<perm = [0, 1, 3, 4, 2]>(r)
        s = Sigmoid(t)
        xy, wh, conf = Split<axis = 4>(s, parts)
        xy2 = Mul(xy, two)
        xy3 = Add(xy2, offsets)
        xy4 = Mul(xy3, stride)
        wh2 = Mul(wh, two)
        wh3 = Pow(wh2, two)
        wh4 = Mul(wh3, anchors)
        all = Concat<axis = 4>(xy4, wh4, conf)
        output = Reshape(all, flat)
    }""",
    opset=13, ir=7, w=(18, 16, 1, 1), b=(18,), twice=floats(1, 1, 2, 2), from0=ints(0), from1=ints(1),
    end=ints(2**63 - 1), axis2=ints(2), step2=ints(2), grid=ints(1, 3, 6, 2, 8), two=number(2), offsets=(1, 1, 2, 8, 2),
    parts=ints(2, 2, 2), stride=number(8), anchors=(1, 3, 1, 1, 2), flat=ints(1, -1, 6),
)  # fmt: skip

export(
    "torch statistics, opset 17",
    """(float[2, 3, 4] x) => (float largest, float least, float sum, float mean, int64 place, float spread) {
        largest = ReduceMax<keepdims = 0>(x)
        least = ReduceMin<keepdims = 0>(x)
        sum = ReduceSum<keepdims = 0>(x)
        mean = ReduceMean<keepdims = 0>(x)
        f = Reshape(x, flat)
        a = ArgMax<axis = 0, keepdims = 1, select_last_index = 0>(f)
        place = Reshape(a, scalar)
        d = Sub(x, mean)
        sq = Mul(d, d)
        var = ReduceMean<keepdims = 1>(sq)
        std = Sqrt(var)
        spread = Reshape(std, scalar)
    }""",
    opset=17, flat=ints(-1), scalar=np.zeros(0, np.int64),
)  # fmt: skip

export(
    "torch statistics of the dynamo exporter, opset 18",
    """(float[2, 3, 4] x) => (float[2, 3] values, int64[2, 3] places, float[2, 1, 4] mean, int64[3] counts) {
        values = ReduceMax<keepdims = 0, noop_with_empty_axes = 0>(x, last)
        places = ArgMax<axis = -1, keepdims = 0>(x)
        mean = ReduceMean<keepdims = 1>(x, middle)
        positive = Greater(x, zero)
        number = Cast<to = 7>(positive)
        counts = ReduceSum<keepdims = 0>(number, outer)
    }""",
    opset=18, ir=10, last=ints(-1), middle=ints(1), outer=ints(0, 2), zero=number(0),
)  # fmt: skip

export(
    "torch mixture of experts, opset 17",
    """(float[3, 8] x) => (float[3, 2] weights, int64[3, 2] experts) {
        logits = MatMul(x, w)
        chosen, experts = TopK<axis = -1, largest = 1, sorted = 1>(logits, two)
        weights = Softmax<axis = -1>(chosen)
    }""",
    opset=17, w=(8, 6), two=ints(2),
)  # fmt: skip

export(
    "torch lstm, opset 14",
    """(float[5, 2, 4] x, float[1, 2, 3] h, float[1, 2, 3] c) => (
        float[5, 2, 3] y, float[1, 2, 3] yh, float[1, 2, 3] yc) {
        all, yh, yc = LSTM<hidden_size = 3>(x, w, r, b, , h, c)
        y = Squeeze(all, one)
    }""",
    opset=14, w=(1, 12, 4), r=(1, 12, 3), b=(1, 24), one=ints(1), fallbacks=("LSTM",),
)  # fmt: skip

export(
    "torch gru in both directions, opset 14",
    """(float[5, 2, 4] x) => (float[5, 2, 6] y) {
        s = Shape(x)
        n = Gather<axis = 0>(s, at1)
        n1 = Unsqueeze(n, zero)
        sizes = Concat<axis = 0>(two, n1, three)
        h = Expand(nothing, sizes)
        all, last = GRU<direction = "bidirectional", hidden_size = 3, linear_before_reset = 1>(x, w, r, b, , h)
        t = Transpose<perm = [0, 2, 1, 3]>(all)
        y = Reshape(t, target)
    }""",
    opset=14, w=(2, 9, 4), r=(2, 9, 3), b=(2, 18), at1=int_scalar(1), zero=ints(0), two=ints(2), three=ints(3),
    nothing=np.zeros((1, 1, 1), np.float32), target=ints(0, 0, -1), fallbacks=("GRU",),
)  # fmt: skip

export(
    "torch group norm as the legacy exporter writes it, opset 14",
    """(float[2, 6, 4, 4] x) => (float[2, 6, 4, 4] y) {
        r = Reshape(x, grouped)
        n = InstanceNormalization<epsilon = 0.00001>(r, one, none)
        s = Shape(x)
        back = Reshape(n, s)
        m = Mul(back, scale)
        y = Add(m, bias)
    }""",
    opset=14, grouped=ints(0, 3, -1), one=np.ones(3, np.float32), none=np.zeros(3, np.float32),
    scale=(6, 1, 1), bias=(6, 1, 1),
)  # fmt: skip

# --- transformers -----------------------------------------------------------------------------------------------------

export(
    "bert of the legacy exporter, opset 14",
    """(int64[batch, length] input_ids, int64[batch, length] attention_mask) => (float[batch, length, 8] hidden) {
        u1 = Unsqueeze(attention_mask, ax1)
        u2 = Unsqueeze(u1, ax2)
        mf = Cast<to = 1>(u2)
        inv = Sub(one, mf)
        bias = Mul(inv, low)
        s = Shape(input_ids)
        len = Gather<axis = 0>(s, at1)
        lens = Unsqueeze(len, ax0)
        ids = Slice(positions, start, lens, ax1)
        we = Gather<axis = 0>(words, input_ids)
        pe = Gather<axis = 0>(places, ids)
        e = Add(we, pe)
        mean = ReduceMean<axes = [-1]>(e)
        d = Sub(e, mean)
        p = Pow(d, two)
        v = ReduceMean<axes = [-1]>(p)
        ve = Add(v, eps)
        sd = Sqrt(ve)
        q0 = Div(d, sd)
        q1 = Mul(q0, gamma)
        x = Add(q1, beta)
        mq = MatMul(x, wq)
        aq = Add(bq, mq)
        mk = MatMul(x, wk)
        mv = MatMul(x, wv)
        xs = Shape(aq)
        b0 = Gather<axis = 0>(xs, at0)
        b1 = Gather<axis = 0>(xs, at1)
        ub0 = Unsqueeze(b0, ax0)
        ub1 = Unsqueeze(b1, ax0)
        heads = Concat<axis = 0>(ub0, ub1, num, width)
        rq = Reshape(aq, heads)
        rk = Reshape(mk, heads)
        rv = Reshape(mv, heads)
        tq = Transpose<perm = [0, 2, 1, 3]>(rq)
        tk = Transpose<perm = [0, 2, 3, 1]>(rk)
        tv = Transpose<perm = [0, 2, 1, 3]>(rv)
        qk = MatMul(tq, tk)
        sc = Div(qk, root)
        ms = Add(sc, bias)
        sm = Softmax<axis = -1>(ms)
        av = MatMul(sm, tv)
        ta = Transpose<perm = [0, 2, 1, 3]>(av)
        flat = Concat<axis = 0>(ub0, ub1, eight)
        ra = Reshape(ta, flat)
        o = MatMul(ra, wo)
        ob = Add(bo, o)
        res = Add(ob, x)
        h = MatMul(res, wi)
        h1 = Div(h, sqrt2)
        h2 = Erf(h1)
        h3 = Add(h2, one)
        h4 = Mul(h, h3)
        h5 = Mul(h4, half)
        h6 = MatMul(h5, wd)
        hidden = Add(h6, res)
    }""",
    opset=14, shapes={"batch": 2, "length": 5},
    ax0=ints(0), ax1=ints(1), ax2=ints(2), start=ints(0), one=number(1), low=number(-3e38), at0=int_scalar(0),
    at1=int_scalar(1), positions=np.arange(16).reshape(1, 16), words=(20, 8), places=(16, 8), two=number(2),
    eps=number(1e-5), gamma=(8,), beta=(8,), wq=(8, 8), wk=(8, 8), wv=(8, 8), bq=(8,), num=ints(2), width=ints(4),
    root=number(2), eight=ints(8), wo=(8, 8), bo=(8,), wi=(8, 16), sqrt2=number(1.4142135), half=number(0.5),
    wd=(16, 8),
)  # fmt: skip

export(
    "gpt2 with past, opset 13",
    """(int64[batch, length] input_ids, float[batch, 2, past, 4] past_key, float[batch, 2, past, 4] past_value,
        int64[batch, total] attention_mask) => (
        float[batch, length, 8] y, float[batch, 2, t, 4] present_key, float[batch, 2, t, 4] present_value) {
        x = Gather(words, input_ids)
        xs = Shape(x)
        rows = Reshape(x, two_dims)
        g = Gemm(rows, w, b)
        last = Slice(xs, zero, two, zero)
        qkv_shape = Concat<axis = 0>(last, n24)
        qkv = Reshape(g, qkv_shape)
        q, k, v = Split<axis = 2>(qkv, thirds)
        heads = Concat<axis = 0>(last, head)
        rq = Reshape(q, heads)
        tq = Transpose<perm = [0, 2, 1, 3]>(rq)
        rk = Reshape(k, heads)
        tk = Transpose<perm = [0, 2, 1, 3]>(rk)
        rv = Reshape(v, heads)
        tv = Transpose<perm = [0, 2, 1, 3]>(rv)
        present_key = Concat<axis = -2>(past_key, tk)
        present_value = Concat<axis = -2>(past_value, tv)
        kt = Transpose<perm = [0, 1, 3, 2]>(present_key)
        qk = MatMul(tq, kt)
        sc = Div(qk, root)
        ps = Shape(present_key)
        nk = Gather(ps, at2)
        qs = Shape(tq)
        nq = Gather(qs, at2)
        before = Sub(nk, nq)
        ub = Unsqueeze(before, zero)
        uk = Unsqueeze(nk, zero)
        rows2 = Slice(causal, ub, uk, two)
        cols = Slice(rows2, zero, uk, three)
        cb = Cast<to = 9>(cols)
        masked = Where(cb, sc, low)
        am = Unsqueeze(attention_mask, ones)
        am2 = Unsqueeze(am, two)
        af = Cast<to = 1>(am2)
        inv = Sub(one, af)
        bias = Mul(inv, ten)
        ms = Add(masked, bias)
        sm = Softmax<axis = 3>(ms)
        a = MatMul(sm, present_value)
        ta = Transpose<perm = [0, 2, 1, 3]>(a)
        y = Reshape(ta, joined)
    }""",
    opset=13, ir=7, shapes={"batch": 1, "length": 2, "past": 3, "total": 5},
    words=(16, 8), two_dims=ints(-1, 8), w=(8, 24), b=(24,), zero=ints(0), two=ints(2), three=ints(3), ones=ints(1),
    n24=ints(24), thirds=ints(8, 8, 8), head=ints(2, 4), root=number(2), at2=int_scalar(2),
    causal=np.tril(np.ones((1, 1, 16, 16), np.uint8)), low=number(-1e4), one=number(1), ten=number(-1e4),
    joined=ints(0, 0, 8),
)  # fmt: skip

export(
    "llama block of the dynamo exporter, opset 18",
    """(int64[batch, length] input_ids, int64[batch, length] attention_mask) => (float[batch, length, 8] y) {
        x = Gather(words, input_ids)
        x2 = Pow(x, two)
        m = ReduceMean<keepdims = 1>(x2, last)
        me = Add(m, eps)
        r = Sqrt(me)
        ri = Reciprocal(r)
        xn = Mul(x, ri)
        n = Mul(norm, xn)
        q = MatMul(n, wq)
        s = Shape(input_ids)
        b = Gather(s, at0)
        l = Gather(s, at1)
        ub = Reshape(b, one_dim)
        ul = Reshape(l, one_dim)
        heads = Concat<axis = 0>(ub, ul, head)
        rq = Reshape(q, heads)
        tq = Transpose<perm = [0, 2, 1, 3]>(rq)
        k = MatMul(n, wk)
        kheads = Concat<axis = 0>(ub, ul, khead)
        rk = Reshape(k, kheads)
        tk = Transpose<perm = [0, 2, 1, 3]>(rk)
        pos = Range(at0, l, at1)
        pf = Cast<to = 1>(pos)
        pc = Unsqueeze(pf, ax1)
        angles = MatMul(pc, freq)
        both = Concat<axis = -1>(angles, angles)
        cos = Cos(both)
        sin = Sin(both)
        q1 = Mul(tq, cos)
        qa = Slice(tq, zero, half, last)
        qb = Slice(tq, half, end, last)
        qn = Neg(qb)
        qr = Concat<axis = -1>(qn, qa)
        q2 = Mul(qr, sin)
        qq = Add(q1, q2)
        ks = Shape(tk)
        kr = Unsqueeze(tk, ax2)
        four = Concat<axis = 0>(ub, khn, groups, ul, hd)
        ke = Expand(kr, four)
        full = Concat<axis = 0>(ub, hn, ul, hd)
        kk = Reshape(ke, full)
        kt = Transpose<perm = [0, 1, 3, 2]>(kk)
        sc = MatMul(qq, kt)
        square = Concat<axis = 0>(ul, ul)
        lowest = ConstantOfShape<value = float[1] {-1000.0}>(square)
        upper = Trilu<upper = 1>(lowest, diag)
        up4 = Unsqueeze(upper, ax01)
        shape4 = Concat<axis = 0>(ub, ones, ul, ul)
        causal = Expand(up4, shape4)
        am = Unsqueeze(attention_mask, ax12)
        amc = Cast<to = 9>(am)
        amn = Not(amc)
        mask = Where(amn, low, causal)
        ms = Add(sc, mask)
        sm = Softmax<axis = -1>(ms)
        av = MatMul(sm, kk)
        ta = Transpose<perm = [0, 2, 1, 3]>(av)
        flat = Concat<axis = 0>(ub, ul, minus)
        a = Reshape(ta, flat)
        o = MatMul(a, wo)
        h = Add(x, o)
        g = MatMul(h, wg)
        gs = Sigmoid(g)
        gg = Mul(g, gs)
        u = MatMul(h, wu)
        gu = Mul(gg, u)
        d = MatMul(gu, wd)
        y = Add(h, d)
    }""",
    opset=18, ir=10, shapes={"batch": 2, "length": 5},
    words=(16, 8), two=number(2), last=ints(-1), eps=number(1e-6), norm=(8,), wq=(8, 8), wk=(8, 4), at0=int_scalar(0),
    at1=int_scalar(1), one_dim=ints(-1), head=ints(2, 4), khead=ints(1, 4), freq=floats(1, 0.1).reshape(1, 2),
    ax1=ints(1), zero=ints(0), half=ints(2), end=ints(2**63 - 1), ax2=ints(2), khn=ints(1), groups=ints(2), hd=ints(4),
    hn=ints(2), diag=int_scalar(1), ax01=ints(0, 1), ones=ints(1), ax12=ints(1, 2), low=number(-1000), minus=ints(-1),
    wo=(8, 8), wg=(8, 12), wu=(8, 12), wd=(12, 8),
)  # fmt: skip

export(
    "attention mask by Where, Expand and Equal, opset 14",
    """(int64[batch, length] mask) => (float[batch, 1, length, length] y) {
        s = Shape(mask)
        b = Gather<axis = 0>(s, at0)
        l = Gather<axis = 0>(s, at1)
        ub = Unsqueeze(b, ax0)
        ul = Unsqueeze(l, ax0)
        sizes = Concat<axis = 0>(ub, one, ul, ul)
        rank = Shape(sizes)
        filled = ConstantOfShape<value = int64[1] {1}>(rank)
        minus = Mul(filled, neg)
        is_open = Equal(sizes, minus)
        chosen = Where(is_open, filled, sizes)
        u = Unsqueeze(mask, ax12)
        e = Expand(u, chosen)
        f = Cast<to = 1>(e)
        inv = Sub(onef, f)
        is_off = Cast<to = 9>(inv)
        y = Where(is_off, low, inv)
    }""",
    opset=14, shapes={"batch": 2, "length": 4}, at0=int_scalar(0), at1=int_scalar(1), ax0=ints(0), one=ints(1),
    neg=int_scalar(-1), ax12=ints(1, 2), onef=number(1), low=number(-3e38),
)  # fmt: skip

# --- tf2onnx and keras ------------------------------------------------------------------------------------------------

export(
    "tf2onnx image network, opset 13",
    """(float[unk__1, 9, 9, 3] input_1) => (float[unk__2, 5] dense) {
        t = Transpose<perm = [0, 3, 1, 2]>(input_1)
        p = Pad(t, pads, zero)
        c = Conv<dilations = [1, 1], group = 1, kernel_shape = [3, 3], strides = [2, 2], auto_pad = "VALID">(p, w, b)
        r = Relu(c)
        m = MaxPool<auto_pad = "SAME_UPPER", kernel_shape = [2, 2], strides = [2, 2]>(r)
        d = Conv<auto_pad = "SAME_UPPER", group = 6, kernel_shape = [3, 3], strides = [1, 1]>(m, dw)
        back = Transpose<perm = [0, 2, 3, 1]>(d)
        s = Sigmoid(back)
        sw = Mul(back, s)
        mean = ReduceMean<axes = [1, 2], keepdims = 0>(sw)
        s0 = Shape(mean)
        sc = Cast<to = 6>(s0)
        n = Slice(sc, at0, at1)
        n2 = Cast<to = 7>(n)
        target = Concat<axis = 0>(n2, minus)
        f = Reshape(mean, target)
        mm = MatMul(f, dense_w)
        ba = Add(mm, dense_b)
        dense = Softmax<axis = 1>(ba)
    }""",
    opset=13, ir=7, shapes={"unk__1": 2}, pads=ints(0, 0, 1, 1, 0, 0, 1, 1), zero=number(0), w=(6, 3, 3, 3), b=(6,),
    dw=(6, 1, 3, 3), at0=ints(0), at1=ints(1), minus=ints(-1), dense_w=(6, 5), dense_b=(5,),
)  # fmt: skip

export(
    "tf2onnx resize with sizes by shape arithmetic, opset 15",
    """(float[1, h, w, 2] x) => (float[1, h2, w2, 2] y) {
        t = Transpose<perm = [0, 3, 1, 2]>(x)
        s = Shape(x)
        hw = Slice(s, at1, at3)
        tw = Mul(hw, two)
        nc = Concat<axis = 0>(one, channels)
        sizes = Concat<axis = 0>(nc, tw)
        r = Resize<coordinate_transformation_mode = "half_pixel", mode = "linear">(t, , , sizes)
        y = Transpose<perm = [0, 2, 3, 1]>(r)
    }""",
    opset=15, shapes={"h": 3, "w": 4}, at1=ints(1), at3=ints(3), two=ints(2), one=ints(1), channels=ints(2),
)  # fmt: skip

export(
    "keras recurrent network as tf2onnx writes it, opset 15",
    """(float[batch, 4, 3] x) => (float[batch, 2] y) {
        t = Transpose<perm = [1, 0, 2]>(x)
        s = Shape(x)
        n = Slice(s, zero, one)
        sizes = Concat<axis = 0>(n, units)
        h = ConstantOfShape<value = float[1] {0.0}>(sizes)
        hu = Unsqueeze(h, zero)
        all, last, cell = LSTM<direction = "forward", hidden_size = 2>(t, w, r, b, , hu, hu)
        y = Squeeze(last, zero)
    }""",
    opset=15, shapes={"batch": 2}, zero=ints(0), one=ints(1), units=ints(2), w=(1, 8, 3), r=(1, 8, 2), b=(1, 16),
    fallbacks=("LSTM",),
)  # fmt: skip

# --- paddle2onnx ------------------------------------------------------------------------------------------------------

export(
    "paddle2onnx text recognition, opset 11",
    """(float[n, 3, h, w] x) => (float[a, b, 7] out) {
        c = Conv<dilations = [1, 1], group = 1, kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2],
                 auto_pad = "NOTSET">(x, w0)
        n = BatchNormalization<epsilon = 0.00001, momentum = 0.9>(c, scale, bias, mean, var)
        h3 = Add(n, three)
        h6 = Clip(h3, zero, six)
        hm = Mul(n, h6)
        hs = Div(hm, six)
        g = GlobalAveragePool(hs)
        e1 = Conv<kernel_shape = [1, 1]>(g, w1)
        er = Relu(e1)
        e2 = Conv<kernel_shape = [1, 1]>(er, w2)
        ex = HardSigmoid<alpha = 0.2, beta = 0.5>(e2)
        se = Mul(hs, ex)
        pooled = MaxPool<kernel_shape = [2, 2], pads = [0, 0, 0, 0], strides = [2, 2], ceil_mode = 0>(se)
        s = Shape(se)
        hw = Slice(s, at2, at4, axis0)
        nc = Slice(s, at0, at2, axis0)
        hwc = Cast<to = 7>(hw)
        sizes = Concat<axis = 0>(nc, hwc)
        up = Resize<coordinate_transformation_mode = "asymmetric", mode = "nearest", nearest_mode = "floor">(
            pooled, none, none, sizes)
        add = Add(up, se)
        avg = AveragePool<kernel_shape = [2, 1], strides = [2, 1], pads = [0, 0, 0, 0], count_include_pad = 0>(add)
        r = Reshape(avg, merged)
        t = Transpose<perm = [0, 2, 1]>(r)
        m = MatMul(t, fw)
        f = Add(m, fb)
        out = Softmax<axis = 2>(f)
    }""",
    opset=11, ir=7, shapes={"x": (1, 3, 8, 12)},
    w0=(4, 3, 3, 3), scale=(4,), bias=(4,), mean=(4,), var=np.ones(4, np.float32), three=floats(3), zero=number(0),
    six=number(6), w1=(2, 4, 1, 1), w2=(4, 2, 1, 1), at0=ints(0), at2=ints(2), at4=ints(4), axis0=ints(0),
    none=np.zeros(0, np.float32), merged=ints(0, 4, -1), fw=(4, 7), fb=(7,),
)  # fmt: skip
for _dim in EXPORTS["paddle2onnx text recognition, opset 11"].model.graph.input[0].type.tensor_type.shape.dim:
    if _dim.dim_param:
        _dim.dim_value = -1

export(
    "paddle2onnx upsampling, opset 10",
    """(float[1, 2, 4, 5] x) => (
        float[1, 2, h, w] near, float[1, 2, h, w] lin, float[1, 2, h2, w2] small, float[1, 2, h2, w2] smooth) {
        near = Resize<mode = "nearest">(x, larger)
        lin = Resize<mode = "linear">(x, larger)
        small = Resize<mode = "nearest">(x, smaller)
        smooth = Resize<mode = "linear">(x, smaller)
    }""",
    opset=10, ir=5, larger=floats(1, 1, 2, 1.5), smaller=floats(1, 1, 0.6, 0.5),
)  # fmt: skip

export(
    "upsampling by an operator that is no more, opset 9",
    """(float[1, 2, 4, 5] x) => (float[1, 2, h, w] near, float[1, 2, h, w] lin) {
        near = Upsample<mode = "nearest">(x, larger)
        lin = Upsample<mode = "linear">(x, larger)
    }""",
    opset=9, ir=4, larger=floats(1, 1, 2, 1.5),
)  # fmt: skip

# --- scikit-learn, quantizers, others ---------------------------------------------------------------------------------

export(
    "skl2onnx multi-layer perceptron, opset 15",
    """(float[n, 4] X) => (int64[n] label, float[n, 3] probabilities) {
        c = Cast<to = 1>(X)
        m = MatMul(c, w0)
        a = Add(m, b0)
        r = Relu(a)
        m1 = MatMul(r, w1)
        a1 = Add(m1, b1)
        probabilities = Softmax<axis = 1>(a1)
        best = ArgMax<axis = 1>(probabilities)
        flat = Reshape(best, minus)
        label = Gather(classes, flat)
    }""",
    opset=15, shapes={"n": 3}, w0=(4, 6), b0=(1, 6), w1=(6, 3), b1=(1, 3), minus=ints(-1), classes=ints(5, 7, 9),
)  # fmt: skip

export(
    "quantizer with QuantizeLinear and DequantizeLinear, opset 13",
    """(float[1, 3, 8, 8] x) => (float[1, 4, 6, 6] y) {
        xq = QuantizeLinear(x, xs, xz)
        xd = DequantizeLinear(xq, xs, xz)
        wd = DequantizeLinear<axis = 0>(wq, ws, wz)
        bd = DequantizeLinear(bq, bs, bz)
        c = Conv<kernel_shape = [3, 3]>(xd, wd, bd)
        r = Relu(c)
        q = QuantizeLinear(r, ys, yz)
        y = DequantizeLinear(q, ys, yz)
    }""",
    opset=13, xs=number(0.05), xz=np.array(128, np.uint8), wq=np.arange(-54, 54, dtype=np.int8).reshape(4, 3, 3, 3),
    ws=floats(0.01, 0.02, 0.01, 0.03), wz=np.zeros(4, np.int8), bq=np.array([1, -2, 3, 4], np.int32),
    bs=number(0.001), bz=np.array(0, np.int32), ys=number(0.1), yz=np.array(0, np.uint8),
)  # fmt: skip

export(
    "quantizer with integer operators, opset 11",
    """(float[1, 3, 6, 6] x, float[2, 8] m) => (float[1, 4, 4, 4] y, float[2, 5] z) {
        xq = QuantizeLinear(x, xs, xz)
        q = QLinearConv<kernel_shape = [3, 3]>(xq, xs, xz, wq, ws, wz, ys, yz, bq)
        y = DequantizeLinear(q, ys, yz)
        mq, ms, mz = DynamicQuantizeLinear(m)
        i = MatMulInteger(mq, vq, mz, vz)
        f = Cast<to = 1>(i)
        scale = Mul(ms, vs)
        z = Mul(f, scale)
    }""",
    opset=11, ir=6, xs=number(0.05), xz=np.array(128, np.uint8),
    wq=np.arange(-54, 54, dtype=np.int8).reshape(4, 3, 3, 3), ws=number(0.02), wz=np.array(0, np.int8),
    ys=number(0.1), yz=np.array(128, np.uint8), bq=np.array([1, -2, 3, 4], np.int32),
    vq=np.arange(-20, 20, dtype=np.int8).reshape(8, 5), vz=np.array(0, np.int8), vs=number(0.03),
)  # fmt: skip

export(
    "group norm with a scale for each group, opset 18",
    "(float[2, 6, 4, 5] x) => (float[2, 6, 4, 5] y) { y = GroupNormalization<num_groups = 3>(x, scale, bias) }",
    opset=18, ir=8, scale=(3,), bias=(3,),
)  # fmt: skip

export(
    "group norm with a scale for each channel, opset 21",
    "(float[2, 6, 4, 5] x) => (float[2, 6, 4, 5] y) { y = GroupNormalization<num_groups = 3>(x, scale, bias) }",
    opset=21, ir=10, scale=(6,), bias=(6,),
)  # fmt: skip

export(
    "weights that are also inputs, IR 3",
    "(float[2, 4] x, float[4, 3] w, float[3] b) => (float[2, 3] y) { m = MatMul(x, w) y = Add(m, b) }",
    opset=8, ir=3, w=(4, 3), b=(3,),
)  # fmt: skip

export(
    "spectrum of a signal, opset 17",
    "(float[1, 16, 1] x) => (float[1, frames, bins, 2] y) { y = STFT(x, step, window) }",
    opset=17, step=int_scalar(4), window=np.hanning(8).astype(np.float32), fallbacks=("STFT",),
)  # fmt: skip

export(
    "places of elements, opset 17",
    """(float[3, 4] x) => (float[4, 3] t, int64[n, 2] places, float[m] chosen) {
        r = Relu(x)
        t = Transpose<perm = [1, 0]>(r)
        nz = NonZero(t)
        places = Transpose<perm = [1, 0]>(nz)
        chosen = GatherND(t, places)
    }""",
    opset=17, fallbacks=("NonZero", "Transpose", "GatherND"),
)  # fmt: skip
