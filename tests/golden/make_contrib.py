# SPDX-License-Identifier: Apache-2.0
"""Writes contrib.txt: calls of onnxruntime's operators and what onnxruntime makes of them.

    pip install onnx==1.23.2 onnxruntime==1.31.1 numpy
    python tests/golden/make_contrib.py > tests/golden/contrib.txt

Operators that onnxruntime has for other devices only are computed here, with numpy. A case is

    case NAME OPERATOR DOMAIN OPSET
    attribute NAME KIND VALUES..
    input TYPE SHAPE VALUES..     fed; `constant` for an initializer, `omitted` for none
    output TYPE SHAPE VALUES..    `unwanted` for one that the call leaves out
"""
import math
import sys

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

RANDOM = np.random.default_rng(7)
FOUR = np.random.default_rng(8)  # of its own: the numbers of other cases stay
MS = "com.microsoft"
erf = np.vectorize(math.erf)


def real(*shape, low=-2.0, high=2.0, dtype=np.float32):
    return (np.round(RANDOM.uniform(low, high, shape) * 64) / 64).astype(dtype)


def whole(low, high, *shape, dtype=np.int64):
    return RANDOM.integers(low, high, shape).astype(dtype)


def bytes_(*shape, dtype=np.uint8):
    info = np.iinfo(dtype)
    return whole(info.min, info.max + 1, *shape, dtype=dtype)


class Constant:
    def __init__(self, value):
        self.value = np.asarray(value)


def number(value, dtype=np.float32):
    return Constant(np.asarray(value, dtype))


def words(array):
    if array.dtype == np.bool_:
        return ["1" if v else "0" for v in array.ravel()]
    if array.dtype.kind == "f":
        return [f"{float(v):.6g}" for v in array.ravel()]
    return [str(int(v)) for v in array.ravel()]


def row(word, array):
    name = helper.tensor_dtype_to_string(helper.np_dtype_to_tensor_dtype(array.dtype))
    name = name.split(".")[-1].lower()
    shape = "x".join(map(str, array.shape)) or "scalar"
    return " ".join([word, name, shape] + words(array))


def run(op, inputs, attributes, outputs, domain, opset):
    """The results of onnxruntime, its own rewriting switched off."""
    names, feeds, declared, constants = [], {}, [], []
    for i, value in enumerate(inputs):
        names.append("" if value is None else f"x{i}")
        if value is None:
            continue
        if isinstance(value, Constant):
            constants.append(numpy_helper.from_array(value.value, names[-1]))
            continue
        feeds[names[-1]] = value
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        declared.append(helper.make_tensor_value_info(names[-1], kind, value.shape))
    results = [f"y{i}" if wanted else "" for i, wanted in enumerate(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    graph = helper.make_graph(
        [node], "case", declared, [onnx.ValueInfoProto(name=n) for n in results if n], constants
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(MS, 1)],
        ir_version=10,
    )
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)


def case(name, inputs, attributes=None, outputs=(True,), domain=MS, opset=18, by=None):
    attributes = attributes or {}
    op = name.split("_")[0]
    results = by if by is not None else run(op, inputs, attributes, outputs, domain, opset)
    lines = [f"case {name} {op} {domain or 'ai.onnx'} {opset}"]
    for key, value in attributes.items():
        if isinstance(value, (list, tuple)):
            kind = "floats" if isinstance(value[0], float) else "ints"
            lines.append(" ".join(["attribute", key, kind] + [str(v) for v in value]))
        else:
            kind = {int: "int", float: "float", str: "string"}[type(value)]
            lines.append(f"attribute {key} {kind} {value}")
    for value in inputs:
        if value is None:
            lines.append("omitted")
        elif isinstance(value, Constant):
            lines.append(row("constant", value.value))
        else:
            lines.append(row("input", value))
    results = list(results)
    for wanted in outputs:
        lines.append(row("output", np.asarray(results.pop(0))) if wanted else "unwanted")
    print("\n".join(lines))


def gelu(x):
    return x * 0.5 * (1 + erf(x / math.sqrt(2)))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def f32(*arrays):
    return [np.asarray(a, np.float32) for a in arrays]


def activations():
    x = real(2, 3, 4)
    case("Gelu", [x])
    case("Gelu_old_opset", [x], opset=11)
    case("BiasGelu", [x, real(4)])
    case("FastGelu", [x])
    case("FastGelu_bias", [x, real(4)])
    case("QuickGelu", [x], {"alpha": 1.5})
    case("QuickGelu_default", [x])
    bias, skip = real(4), real(2, 3, 4)
    case("BiasAdd", [x, bias, skip], by=f32(x + bias + skip))
    y = x + bias
    case("BiasSplitGelu", [x, bias], by=f32(y[..., :2] * gelu(y[..., 2:])))
    w = real(4, 2)
    z = (x @ w + real(2)).astype(np.float32)
    inner = real(2, 1, 4)
    case("BiasSoftmax", [x, inner], {"axis": 2, "is_inner_broadcast": 1}, by=f32(softmax(x + inner)))
    flat = softmax((x + inner).reshape(2, 12)).reshape(2, 3, 4)
    case("BiasSoftmax_axes", [x, inner], {"axis": 1, "is_inner_broadcast": 1}, by=f32(flat))
    case("BiasDropout", [x, bias, skip], by=f32(x + bias + skip))
    third = x @ w
    tanh = third * 0.5 * (1 + np.tanh(0.7978845608 * (third + 0.044715 * third**3)))
    case("GemmFastGelu", [x, w], by=f32(tanh))


def convolutions():
    x, w, b = real(1, 2, 5, 5), real(3, 2, 3, 3), real(3)
    for name, extra in {
        "relu": {"activation": "Relu"},
        "leaky": {"activation": "LeakyRelu", "activation_params": [0.2]},
        "clip": {"activation": "Clip", "activation_params": [-1.0, 1.5]},
        "hard": {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]},
        "tanh": {"activation": "Tanh"},
        "sigmoid": {"activation": "Sigmoid"},
    }.items():
        case(f"FusedConv_{name}", [x, w, b], {"pads": [1, 1, 1, 1], "strides": [2, 2], **extra})
    case("FusedConv_sum", [x, w, b, real(1, 3, 5, 5)], {"pads": [1, 1, 1, 1], "activation": "Relu"})
    case("FusedConv_groups", [real(1, 4, 4), real(4, 1, 2)], {"group": 4, "activation": "Relu"})
    half = np.float16
    xl, wl = real(1, 5, 4, 8, dtype=half), real(8, 8, 3, 3, low=-0.5, high=0.5, dtype=half)
    exact = run("Conv", [xl.transpose(0, 3, 1, 2).astype(np.float32), wl.astype(np.float32)],
                {"pads": [1, 1, 1, 1]}, (True,), "", 18)[0]
    exact = np.maximum(exact, 0).transpose(0, 2, 3, 1)
    case("NhwcFusedConv", [xl, wl], {"pads": [1, 1, 1, 1], "activation": "Relu"},
         by=[exact.astype(half)])
    xs, ws = real(1, 4, 3, 2), real(3, 2, 2, 2)
    exact = run("Conv", [np.ascontiguousarray(xs.transpose(0, 3, 1, 2)), ws], {}, (True,), "", 18)[0]
    case("NhwcConv", [xs, ws], by=[np.ascontiguousarray(exact.transpose(0, 2, 3, 1))])
    case("NhwcMaxPool", [bytes_(1, 5, 5, 2)], {"kernel_shape": [2, 2], "strides": [2, 2]})


def products():
    case("FusedMatMul", [real(2, 3, 4), real(2, 4, 2)], {"alpha": 0.5})
    case("FusedMatMul_trans", [real(2, 4, 3), real(2, 2, 4)], {"transA": 1, "transB": 1})
    case("FusedMatMul_batch", [real(3, 2, 4), real(4, 2, 2)], {"transBatchA": 1, "transBatchB": 1})
    case("FusedMatMul_both", [real(4, 2, 3), real(2, 2, 4)],
         {"transA": 1, "transBatchA": 1, "transB": 1, "transBatchB": 1, "alpha": 2.0})
    case("FusedMatMul_vector", [real(4), real(4, 3)], {"transA": 1})
    case("TransposeMatMul", [real(2, 4, 3), real(4, 2)], {"transA": 1, "alpha": 0.25})
    a, b = real(2, 3, 4), real(4, 2)
    y = np.maximum(a @ b, 0)
    case("FusedMatMulActivation", [a, b], {"activation": "Relu"}, by=f32(y))
    y = a @ b
    case("FusedMatMulActivation_elu", [a, b], {"activation": "Elu", "activation_alpha": 0.5},
         by=f32(np.where(y > 0, y, 0.5 * (np.exp(np.minimum(y, 0)) - 1))))
    a, b, c = real(3, 4), real(4, 2), real(2)
    case("FusedGemm_relu", [a, b, c], {"activation": "Relu", "alpha": 0.5})
    case("FusedGemm_leaky", [a, b, c], {"activation": "LeakyRelu", "activation_alpha": 0.3})
    case("FusedGemm_turned", [real(4, 3), real(2, 4)], {"activation": "Tanh", "transA": 1, "transB": 1})
    case("CDist", [real(3, 4), real(2, 4)], {"metric": "euclidean"})
    case("CDist_squares", [real(3, 4), real(2, 4)])
    for kind in (np.uint8, np.int8):
        name = np.dtype(kind).name
        b = Constant(bytes_(4, 3, dtype=kind))
        scale, zero = number([0.01, 0.02, 0.03]), Constant(bytes_(3, dtype=kind))
        case(f"DynamicQuantizeMatMul_{name}", [real(2, 4), b, scale, zero, Constant(real(3))])
        case(f"MatMulIntegerToFloat_{name}",
             [bytes_(2, 4), b, number(0.02), scale, Constant(bytes_(1)[0]), zero, Constant(real(3))])
    case("DynamicQuantizeMatMul_plain", [real(1, 2, 4), Constant(bytes_(4, 2)), number(0.05)])
    a, b = bytes_(2, 4), Constant(bytes_(4, 3, dtype=np.int8))
    c = Constant(whole(-500, 500, 3, dtype=np.int32))
    one = number(3, np.int8)
    case("QGemm", [a, number(0.02), number(120, np.uint8), b, number(0.03), one, c,
                   number(0.2), number(100, np.uint8)])
    case("QGemm_real", [a, number(0.02), number(120, np.uint8), b, number([0.03, 0.02, 0.01]),
                        Constant(np.array([3, 4, 5], np.int8)), c], {"alpha": 0.5})


def packed_weights():
    for bits in (4, 8, 2):
        n, k, size = 3, 40, 16
        blocks = (k + size - 1) // size
        b = Constant(bytes_(n, blocks, size * bits // 8))
        scales = Constant(real(n, blocks, low=0.01, high=0.1) + np.float32(0.02))
        zeros = Constant(bytes_(n, (blocks * bits + 7) // 8))
        at = {"N": n, "K": k, "bits": bits, "block_size": size}
        case(f"MatMulNBits_{bits}bits", [real(2, 1, k), b, scales], at)
        case(f"MatMulNBits_{bits}bits_zeros", [real(2, k), b, scales, zeros], at)
    at = {"N": 3, "K": 32, "bits": 4, "block_size": 32}
    b, scales = Constant(bytes_(3, 1, 16)), Constant(real(3, 1, low=0.01, high=0.1))
    case("MatMulNBits_bias", [real(2, 32), b, scales, None, None, Constant(real(3))], at)
    case("MatMulNBits_real_zeros", [real(2, 32), b, scales, Constant(real(3, 1, low=0, high=15))], at)
    for kind in (0, 1):
        at = {"N": 3, "K": 32, "block_size": 16, "quant_type": kind}
        case(f"MatMulBnb4_{kind}", [real(2, 32), Constant(bytes_(48)), Constant(real(6, low=0.1, high=1))], at)
    data, scales = Constant(bytes_(5, 20)), Constant(real(5, 3, low=0.01, high=0.1))
    at = {"bits": 4, "block_size": 16, "quantize_axis": 1}
    case("GatherBlockQuantized", [data, whole(0, 5, 2, 2), scales], at)
    case("GatherBlockQuantized_zeros", [data, whole(0, 5, 3), scales, Constant(bytes_(5, 2))], at)
    at = {"block_size": 16, "quantize_axis": 1}
    for kind, low in (("int4", -8), ("uint4", 0)):
        table = Constant(FOUR.integers(low, low + 16, (5, 16)).astype(getattr(ml_dtypes, kind)))
        scales = Constant(np.full((5, 1), 0.25, np.float32))
        case(f"GatherBlockQuantized_{kind}", [table, np.array([4, 1]), scales], at)


def normalizations():
    x, g, b = real(2, 3, 4), real(4), real(4)
    case("LayerNormalization_opset11", [x, g, b], {"epsilon": 1e-3}, domain="", opset=11)
    case("LayerNormalization_axis", [x, real(3, 4)], {"axis": 1}, (True, True, True), domain="", opset=13)
    case("SimplifiedLayerNormalization", [x, g], {"epsilon": 1e-3}, domain="", opset=13)
    case("SimplifiedLayerNormalization_axis", [x, real(3, 4)], {"axis": 1}, (True, True), domain="", opset=20)
    case("SkipLayerNormalization", [x, real(2, 3, 4), g, b, real(4)], {"epsilon": 1e-5},
         (True, False, False, True))
    case("SkipLayerNormalization_broadcast", [x, real(3, 4), g], {"epsilon": 1e-5})
    case("SkipSimplifiedLayerNormalization", [x, real(1, 3, 4), g, real(4)], {"epsilon": 1e-5},
         (True, False, False, True))
    ids, segments = whole(0, 6, 2, 3, dtype=np.int32), whole(0, 2, 2, 3, dtype=np.int32)
    tables = [real(6, 4), real(5, 4), real(2, 4)]
    mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    case("EmbedLayerNormalization", [ids, segments, *tables, g, b, mask], {"epsilon": 1e-5},
         (True, True, True))
    case("EmbedLayerNormalization_positions",
         [ids, None, tables[0], tables[1], None, g, b, None, whole(0, 5, 2, 3, dtype=np.int32)],
         {"epsilon": 1e-5}, (True, True))
    small = [Constant(bytes_(*shape)) for shape in ((6, 4), (5, 4), (2, 4), (4,), (4,))]
    scales = [number(v) for v in (0.01, 0.02, 0.03, 0.01, 0.02)]
    zeros = [number(v, np.uint8) for v in (120, 130, 128, 10, 90)]
    case("QEmbedLayerNormalization", [ids, segments, *small, mask, *scales, *zeros], {"epsilon": 1e-5},
         (True, True))
    x, g, b = real(2, 3, 2, 4), real(4), real(4)
    t = x.reshape(2, 6, 2, 2)
    n = (t - t.mean((1, 3), keepdims=True)) / np.sqrt(t.var((1, 3), keepdims=True) + 1e-5)
    y = n.reshape(x.shape) * g + b
    at = {"groups": 2, "epsilon": 1e-5}
    case("GroupNorm", [x, g, b], {"activation": 0, **at}, by=f32(y))
    case("GroupNorm_silu", [x, g, b], {"activation": 1, **at}, by=f32(y / (1 + np.exp(-y))))
    skip, shift = real(2, 3, 2, 4), real(4)
    before = x - skip - shift
    case("SkipGroupNorm", [before, g, b, skip, shift], {"activation": 0, **at}, (True, True),
         by=f32(y, before + skip + shift))


def attentions():
    x, w, b = real(2, 3, 4), real(4, 12, low=-1, high=1), real(12)
    two = {"num_heads": 2}
    case("Attention", [x, w, b], two)
    case("Attention_scale", [x, w, b], {"scale": 0.3, **two})
    case("Attention_causal", [x, w, b], {"unidirectional": 1, **two})
    flags = np.array([[1, 1, 0], [1, 0, 1]], np.int32)
    case("Attention_mask2", [x, w, b, flags], two)
    case("Attention_mask2_causal", [x, w, b, flags[:, ::-1].copy()], {"unidirectional": 1, **two})
    case("Attention_mask3", [x, w, b, whole(0, 2, 2, 3, 3, dtype=np.int32)], two)
    case("Attention_ends", [x, w, b, np.array([2, 3], np.int32)], two)
    case("Attention_ends_starts", [x, w, b, np.array([2, 3, 0, 1], np.int32)], two)
    case("Attention_bias", [x, w, b, None, None, real(1, 2, 3, 3)], two)
    case("Attention_sizes", [x, real(4, 10), real(10)], {"qkv_hidden_sizes": [4, 4, 2], **two})
    past = real(2, 2, 2, 2, 2)
    case("Attention_past", [x, w, b, None, past], {"unidirectional": 1, **two}, (True, True))
    q, k, v = real(2, 3, 4), real(2, 5, 4), real(2, 5, 6)
    case("MultiHeadAttention", [q, k, v], two)
    case("MultiHeadAttention_bias", [q, k, v, real(14)], two)
    case("MultiHeadAttention_mask1", [q, k, v, None, np.array([3, 5], np.int32)], two)
    case("MultiHeadAttention_mask2", [q, k, v, None, whole(0, 2, 2, 5, dtype=np.int32)], two)
    case("MultiHeadAttention_mask3", [q, k, v, None, whole(0, 2, 2, 3, 5, dtype=np.int32)], two)
    case("MultiHeadAttention_added", [q, k, v, None, None, real(2, 1, 3, 5)], {"scale": 0.5, **two})
    packed = real(2, 3, 2, 3, 2)
    apart = [packed[:, :, :, i].reshape(2, 3, 4).copy() for i in range(3)]
    case("MultiHeadAttention_packed", [packed], two,
         by=run("MultiHeadAttention", apart, two, (True,), MS, 18))
    packed = real(2, 5, 2, 2, 2)
    apart = [q] + [packed[:, :, :, i].reshape(2, 5, 4).copy() for i in range(2)]
    case("MultiHeadAttention_packed_keys", [q, packed], two,
         by=run("MultiHeadAttention", apart, two, (True,), MS, 18))
    case("MultiHeadAttention_heads", [q, real(2, 2, 5, 2), real(2, 2, 5, 2)], two)
    same = [q, real(2, 3, 4), real(2, 3, 4), None, None, None, real(2, 2, 2, 2), real(2, 2, 2, 2)]
    case("MultiHeadAttention_past", same, {"unidirectional": 1, **two}, (True, True, True))
    cos, sin = Constant(real(8, 2, low=-1, high=1)), Constant(real(8, 2, low=-1, high=1))
    ids = whole(0, 8, 2, 3)
    case("RotaryEmbedding", [real(2, 3, 8), ids, cos, sin])
    case("RotaryEmbedding_interleaved", [real(2, 3, 8), ids, cos, sin], {"interleaved": 1})
    case("RotaryEmbedding_offset", [real(2, 3, 8), np.array([2]), cos, sin])
    case("RotaryEmbedding_heads", [real(2, 2, 3, 4), ids, cos, sin])
    case("RotaryEmbedding_part", [real(2, 3, 12), ids, cos, sin],
         {"rotary_embedding_dim": 4, "num_heads": 2})
    wide = [Constant(real(8, 8, low=-1, high=1)), Constant(real(8, 8, low=-1, high=1))]
    lengths, total = np.array([2, 2], np.int32), number(3, np.int32)
    none = [None, None, lengths, total]
    grouped = {"num_heads": 2, "kv_num_heads": 1}
    qkv = [real(2, 3, 16), real(2, 3, 8), real(2, 3, 8)]
    all_three = (True, True, True)
    case("GroupQueryAttention", qkv + none, grouped, all_three)
    case("GroupQueryAttention_window", qkv + none, {"local_window_size": 2, **grouped}, all_three)
    case("GroupQueryAttention_softcap", qkv + none, {"softcap": 2.0, **grouped}, all_three)
    ragged = [None, None, np.array([2, 1], np.int32), total]
    case("GroupQueryAttention_ragged", qkv + ragged, grouped, all_three)
    case("GroupQueryAttention_both_ways", qkv + ragged, {"causal": 0, **grouped}, all_three)
    grouped = {"num_heads": 2, "kv_num_heads": 1, "do_rotary": 1}
    qkv, one = [real(1, 3, 32), real(1, 3, 16), real(1, 3, 16)], np.array([2], np.int32)
    none = [None, None, one, total]
    case("GroupQueryAttention_rotary", qkv + none + wide, grouped, all_three)
    case("GroupQueryAttention_packed", [real(1, 3, 64), None, None] + none + wide,
         {"rotary_interleaved": 1, **grouped}, all_three)
    past = [real(1, 1, 2, 16), real(1, 1, 2, 16), one, total]
    new = [real(1, 1, 32), real(1, 1, 16), real(1, 1, 16)]
    case("GroupQueryAttention_past", new + past + wide, grouped, all_three)
    case("QAttention", [bytes_(2, 3, 4), Constant(bytes_(4, 12, dtype=np.int8)), Constant(real(12)),
                        number(0.01), number(0.02), flags, number(110, np.uint8), number(4, np.int8)], two)


def quantized():
    for kind in (np.uint8, np.int8):
        name = np.dtype(kind).name
        zero = lambda v: number(v, kind)
        a, b = bytes_(2, 3, 4, dtype=kind), bytes_(4, dtype=kind)
        pair = [a, number(0.02), zero(10), b, number(0.03), zero(20), number(0.06), zero(30)]
        case(f"QLinearAdd_{name}", pair)
        case(f"QLinearMul_{name}", pair)
        one = [a, number(0.02), zero(10), number(0.01), zero(5)]
        case(f"QLinearSigmoid_{name}", one)
        case(f"QLinearLeakyRelu_{name}", one, {"alpha": 0.2})
        case(f"QLinearSoftmax_{name}", one, {"axis": 1, "opset": 13})
        case(f"QLinearConcat_{name}", [number(0.05), zero(7), a, number(0.02), zero(10),
                                       bytes_(2, 1, 4, dtype=kind), number(0.03), zero(20)], {"axis": 1})
        x = bytes_(1, 2, 5, 5, dtype=kind)
        pooled = [x, number(0.02), zero(10), number(0.03), zero(5)]
        case(f"QLinearAveragePool_{name}", pooled, {"kernel_shape": [2, 2], "strides": [2, 2]})
        case(f"QLinearGlobalAveragePool_{name}", pooled)
        flags = RANDOM.integers(0, 2, (2, 3, 4)).astype(bool)
        case(f"QLinearWhere_{name}", [flags, a, number(0.02), zero(10), b, number(0.03), zero(20),
                                      number(0.06), zero(30)])
        case(f"QuantizeLinear_{name}", [real(2, 3), number(0.05), zero(3)])
        case(f"DequantizeLinear_{name}", [bytes_(2, 3, dtype=kind), number(0.05), zero(3)])
    case("QLinearSoftmax_old", [bytes_(2, 3, 4), number(0.02), number(10, np.uint8), number(0.01),
                                number(5, np.uint8)], {"axis": 1, "opset": 12})
    last = [bytes_(1, 4, 4, 2), number(0.02), number(10, np.uint8), number(0.03), number(5, np.uint8)]
    case("QLinearAveragePool_last", last, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "channels_last": 1})
    case("QLinearGlobalAveragePool_last", last, {"channels_last": 1})
    mean = (last[0].astype(np.float32) - 10) * 0.02
    mean = np.clip(np.rint(mean.mean((1, 2), keepdims=True) / 0.03) + 5, 0, 255).astype(np.uint8)
    case("QLinearReduceMean", last, {"axes": [1, 2], "keepdims": 1}, by=[mean])
    # One step, whose inputs eight bits hold exactly: then onnxruntime rounds nothing.
    x = whole(-128, 128, 1, 2, 3).astype(np.float32) / 128
    x[0, 0, :2] = -1, 127 / 128
    weights = [Constant(bytes_(1, n, 8)) for n in (3, 2)]
    case("DynamicQuantizeLSTM", [x, *weights, Constant(real(1, 16)), None, None, None, None,
                                 number([0.01]), number([120], np.uint8), number([0.02]),
                                 number([130], np.uint8)], {"hidden_size": 2}, (True, True, True))
    conv = [bytes_(1, 4, 4, 2), number(0.02), number(10, np.uint8),
            Constant(bytes_(3, 2, 2, 2, dtype=np.int8)), number([0.01, 0.02, 0.03]),
            Constant(np.zeros(3, np.int8)), number(0.5), number(100, np.uint8),
            Constant(whole(-900, 900, 3, dtype=np.int32))]
    case("QLinearConv_last", conv, {"channels_last": 1})


def shapes():
    x = real(2, 3, 4)
    case("ExpandDims", [x, number(-2, np.int32)])
    case("Trilu", [x, number(1, np.int64)], {"upper": 0})
    case("Unique", [np.array([3, 1, 3, 2, 1], np.float32)], outputs=(True, True, True))
    case("GatherND", [x, np.array([[0, 1], [1, 2]], np.int32)])
    case("Pad", [real(2, 3), Constant(np.array([0, 1, 1, 0])), number(0.5)])
    case("Range", [number(1), number(7), number(2.5)])
    case("Range_default", [number(1, np.int64), number(5, np.int64)])
    table, rows = real(5, 3), whole(0, 5, 2, 2)
    case("TorchEmbedding", [table, rows], by=[table[rows]])
    case("GridSample", [real(1, 1, 4, 4), real(1, 2, 3, 2, low=-1.2, high=1.2)], {"align_corners": 1})
    a, b = real(2, 3, 2), real(2, 3, 2)
    c = (a[..., 0] + 1j * a[..., 1]) * (b[..., 0] + 1j * b[..., 1])
    case("ComplexMul", [a, b], by=f32(np.stack([c.real, c.imag], -1)))
    c = (a[..., 0] + 1j * a[..., 1]) * (b[..., 0] - 1j * b[..., 1])
    case("ComplexMulConj", [a, b], by=f32(np.stack([c.real, c.imag], -1)))


def crops():
    x = real(2, 2, 4, 5)
    rois = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [-0.3, 0.5, 1.2, 0.25]], np.float32)
    batch = np.array([0, 1, 1], np.int32)
    for mode in ("bilinear", "nearest"):
        case(f"CropAndResize_{mode}", [x, rois, batch, Constant(np.array([3, 2], np.int32))],
             {"mode": mode, "extrapolation_value": 0.5})
    case("CropAndResize_one", [x, rois, batch, Constant(np.array([1, 3], np.int32))])


def legacy():
    x = real(1, 2, 4, 5)
    old = {"domain": "", "opset": 8}
    case("Affine", [x], {"alpha": 0.5, "beta": 1.5}, **old)
    case("ScaledTanh", [x], {"alpha": 0.5, "beta": 1.5}, **old)
    case("ParametricSoftplus", [x], {"alpha": 0.5, "beta": 1.5}, **old)
    case("Scale", [x], {"scale": 0.25}, **old)
    case("ImageScaler", [x], {"scale": 0.5, "bias": [0.25, -0.5]}, **old)
    case("Crop", [x], {"border": [1, 1, 2, 1]}, **old)
    case("Crop_size", [x], {"border": [1, 1, 2, 1], "scale": [2, 3]}, **old)


def main():
    print(f"# Written by make_contrib.py with onnxruntime {onnxruntime.__version__}.")
    for family in (activations, convolutions, products, packed_weights, normalizations, attentions,
                   quantized, shapes, crops, legacy):
        family()


if __name__ == "__main__":
    sys.exit(main())
