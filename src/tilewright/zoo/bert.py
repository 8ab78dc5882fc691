"""BERT (Devlin et al., 2019), uncased: the encoder and its pooler, in the small operators that exporters write."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, TensorProto

from tilewright.zoo.builder import Net, Value
from tilewright.zoo.variant import Variant

_VOCABULARY = 30522
LONGEST_SEQUENCE = 512
_EPSILON = 1e-12
_HEAD_WIDTH = 64


def bert_tiny(variant: Variant, seed: int) -> ModelProto:
    """2 layers, 128 wide, 2 heads."""
    return _encoder(Net("bert_tiny", seed), 2, 2, variant)


def bert_base(variant: Variant, seed: int) -> ModelProto:
    """12 layers, 768 wide, 12 heads."""
    return _encoder(Net("bert_base", seed), 12, 12, variant)


def _encoder(net: Net, num_layers: int, num_heads: int, variant: Variant) -> ModelProto:
    num_heads = max(1, round(num_heads * variant.width))
    bert = _Bert(net, width=_HEAD_WIDTH * num_heads, num_heads=num_heads, length=variant.size)
    ids = net.input("input_ids", (variant.batch, variant.size), "int64")
    mask = net.input("attention_mask", (variant.batch, variant.size), "int64")
    types = net.input("token_type_ids", (variant.batch, variant.size), "int64")
    bias = bert.attention_bias(mask)
    x = bert.embed(ids, types)
    for _ in range(num_layers):
        x = bert.layer(x, bias)
    return net.model(last_hidden_state=x, pooler_output=bert.pool(x))


@dataclass(frozen=True, slots=True)
class _Bert:
    """The parts of the network, each of which writes itself to `net`."""

    net: Net
    width: int
    num_heads: int
    length: int

    def attention_bias(self, mask: Value) -> Value:
        """[batch, 1, 1, position]: nothing for a token, the most negative number for padding."""
        net = self.net
        rows = net.op("Unsqueeze", mask, net.constant((1, 2)), shape=(mask.shape[0], 1, 1, self.length))
        is_token = net.op("Cast", rows, to=TensorProto.FLOAT)
        is_padding = net.op("Sub", net.constant(1.0), is_token, shape=rows.shape)
        return net.op("Mul", is_padding, net.constant(float(np.finfo(np.float32).min)))

    def embed(self, ids: Value, types: Value) -> Value:
        """The sum of what a token, its segment and its position mean."""
        net = self.net
        positions = net.parameter("position_ids", np.arange(self.length, dtype=np.int64)[None])
        words = self._look_up("word_embeddings", _VOCABULARY, ids)
        segments = self._look_up("token_type_embeddings", 2, types)
        places = self._look_up("position_embeddings", LONGEST_SEQUENCE, positions)
        return net.layer_norm(net.add(net.add(words, segments), places), _EPSILON)

    def layer(self, x: Value, bias: Value) -> Value:
        """Attention, then two dense layers, each with a shortcut and a norm."""
        net = self.net
        x = net.layer_norm(net.add(self._attend(x, bias), x), _EPSILON)
        hidden = self._gelu(self._dense(x, 4 * self.width))
        return net.layer_norm(net.add(self._dense(hidden, self.width), x), _EPSILON)

    def pool(self, x: Value) -> Value:
        """A dense layer of the first token."""
        net = self.net
        first = net.op("Gather", x, net.constant(0), shape=(x.shape[0], self.width), axis=1)
        return net.op("Tanh", net.linear(first, self.width))

    def _look_up(self, name: str, num_rows: int, indices: Value) -> Value:
        table = self.net.weight(f"{name}.weight", (num_rows, self.width), 0.02)
        return self.net.op("Gather", table, indices, shape=(*indices.shape, self.width), axis=0)

    def _attend(self, x: Value, bias: Value) -> Value:
        net = self.net
        query = self._split_heads(self._dense(x, self.width), (0, 2, 1, 3))
        key = self._split_heads(self._dense(x, self.width), (0, 2, 3, 1))
        value = self._split_heads(self._dense(x, self.width), (0, 2, 1, 3))
        scores = net.op("MatMul", query, key, shape=(*query.shape[:-1], self.length))
        scores = net.op("Div", scores, net.constant(math.sqrt(query.shape[-1])))
        weights = net.op("Softmax", net.op("Add", scores, bias), axis=-1)
        context = self._transpose(net.op("MatMul", weights, value, shape=value.shape), (0, 2, 1, 3))
        return self._dense(self._reshape(context, x.shape), self.width)

    def _split_heads(self, x: Value, order: tuple[int, ...]) -> Value:
        heads = (*x.shape[:-1], self.num_heads, self.width // self.num_heads)
        return self._transpose(self._reshape(x, heads), order)

    def _reshape(self, x: Value, shape: tuple[int, ...]) -> Value:
        return self.net.op("Reshape", x, self.net.constant(shape), shape=shape)

    def _transpose(self, x: Value, order: tuple[int, ...]) -> Value:
        return self.net.op("Transpose", x, shape=tuple(x.shape[axis] for axis in order), perm=order)

    def _dense(self, x: Value, features: int) -> Value:
        """A product with [in, out], and a bias."""
        net = self.net
        depth = x.shape[-1]
        label = net.label("MatMul")
        weight = net.weight(f"{label}.weight", (depth, features), math.sqrt(1 / depth))
        bias = net.weight(f"{label}.bias", (features,), 0.1)
        product = net.op("MatMul", x, weight, shape=(*x.shape[:-1], features))
        return net.op("Add", bias, product, shape=product.shape)

    def _gelu(self, x: Value) -> Value:
        """x/2 * (1 + erf(x / sqrt 2))."""
        net = self.net
        erf = net.op("Erf", net.op("Div", x, net.constant(math.sqrt(2))))
        doubled = net.op("Mul", x, net.op("Add", erf, net.constant(1.0)))
        return net.op("Mul", doubled, net.constant(0.5))
