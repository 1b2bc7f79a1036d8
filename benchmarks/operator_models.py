"""The operators that models use most, as models of one operator: what operators.py times.

ROWS: operator -> how to call it for a size, "small" or "large". Each call is (inputs, constants, attributes, outputs): shapes of
float inputs by name, constant arrays, attributes of the node, the number of its outputs.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 20
SMALL, LARGE = "small", "large"
FLOATS = {SMALL: [4, 64], LARGE: [64, 65536]}
IMAGES = {SMALL: [1, 8, 8, 8], LARGE: [8, 64, 56, 56]}
TOKENS = {SMALL: [1, 8, 32], LARGE: [8, 256, 768]}


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def one(shapes, **attributes):
    return lambda size: ({"x": shapes[size]}, {}, attributes, 1)


def two(shapes, right=None, **attributes):
    return lambda size: ({"x": shapes[size], "y": (right or shapes)[size]}, {}, attributes, 1)


def with_constants(shapes, constants, outputs=1, **attributes):
    """constants: a function of the input's shape."""
    return lambda size: ({"x": shapes[size]}, constants(shapes[size]), attributes, outputs)


def conv(channels, kernel, stride=1, group=1, transpose=False):
    def call(size):
        n, c, h, w = {SMALL: [1, 8, 8, 8], LARGE: [8, channels, 56, 56]}[size]
        g = c if group == "depthwise" else group
        weight = floats(c, c // g, kernel, kernel)
        pads = [kernel // 2] * 4
        return ({"x": [n, c, h, w]}, {"w": weight, "b": floats(c)},
                dict(kernel_shape=[kernel, kernel], strides=[stride, stride], pads=pads, group=g), 1)
    return call


def recurrent(gates):
    def call(size):
        steps, batch, width, hidden = {SMALL: (4, 1, 16, 16), LARGE: (32, 16, 256, 256)}[size]
        constants = {"w": 0.1 * floats(1, gates * hidden, width), "r": 0.1 * floats(1, gates * hidden, hidden),
                     "b": floats(1, 2 * gates * hidden)}
        return {"x": [steps, batch, width]}, constants, dict(hidden_size=hidden), 1
    return call


def gather(size):
    rows, count = {SMALL: (16, 8), LARGE: (4096, 4096)}[size]
    indices = np.random.default_rng(1).integers(0, rows, [count])
    return {"x": [rows, 512]}, {"i": indices}, {}, 1


def halves(shape):
    return {"s": ints(0), "e": ints(shape[-1] // 2), "a": ints(len(shape) - 1)}


def scatter_nd(size):
    rows, count = {SMALL: (16, 4), LARGE: (4096, 1024)}[size]
    indices = np.arange(count).reshape(-1, 1)
    return {"x": [rows, 256]}, {"i": indices, "u": floats(count, 256)}, {}, 1


def scatter_elements(size):
    rows, count = {SMALL: (16, 4), LARGE: (4096, 1024)}[size]
    return {"x": [rows, 256]}, {"i": np.tile(np.arange(count)[:, None], (1, 256)), "u": floats(count, 256)}, {}, 1


def gather_elements(size):
    rows = {SMALL: 16, LARGE: 4096}[size]
    indices = np.random.default_rng(2).integers(0, rows, [rows, 256])
    return {"x": [rows, 256]}, {"i": indices}, {}, 1


def norm(names):
    return lambda shape: {name: np.abs(floats(shape[1], seed=k)) + 0.5 for k, name in enumerate(names)}


PRODUCTS = {SMALL: [8, 32], LARGE: [512, 1024]}
ROWS = {
    # element-wise
    "Add": two(FLOATS), "Sub": two(FLOATS), "Mul": two(FLOATS), "Div": two(FLOATS), "Max": two(FLOATS), "Min": two(FLOATS),
    "Pow": with_constants(FLOATS, lambda s: {"e": np.float32(2)}),
    "Abs": one(FLOATS), "Neg": one(FLOATS), "Exp": one(FLOATS), "Log": one(FLOATS), "Sqrt": one(FLOATS), "Reciprocal": one(FLOATS),
    "Floor": one(FLOATS), "Ceil": one(FLOATS), "Round": one(FLOATS), "Sin": one(FLOATS), "Cos": one(FLOATS), "Erf": one(FLOATS),
    "Sign": one(FLOATS), "Sum": two(FLOATS), "Identity": one(FLOATS),
    "Equal": two(FLOATS), "Less": two(FLOATS), "Greater": two(FLOATS), "Not": "Not", "And": "And",
    "Where": with_constants(FLOATS, lambda s: {"z": floats(*s)}),
    "Cast": one(FLOATS, to=TensorProto.INT64), "Clip": with_constants(FLOATS, lambda s: {"l": np.float32(-1), "h": np.float32(1)}),
    # activations
    "Relu": one(FLOATS), "LeakyRelu": one(FLOATS), "Elu": one(FLOATS), "Selu": one(FLOATS), "Sigmoid": one(FLOATS), "Tanh": one(FLOATS),
    "HardSigmoid": one(FLOATS), "HardSwish": one(FLOATS), "Softplus": one(FLOATS), "Gelu": one(FLOATS), "Mish": one(FLOATS),
    "PRelu": with_constants(IMAGES, lambda s: {"p": floats(s[1], 1, 1)}),
    "Softmax": one(FLOATS), "LogSoftmax": one(FLOATS),
    # products and convolutions
    "MatMul": with_constants(PRODUCTS, lambda s: {"w": floats(s[1], s[1])}),
    "Gemm": with_constants(PRODUCTS, lambda s: {"w": floats(s[1], s[1]), "b": floats(s[1])}, transB=1),
    "Conv": conv(64, 3), "Conv 1x1": conv(64, 1), "Conv stride 2": conv(64, 3, stride=2), "Conv depthwise": conv(64, 3, group="depthwise"),
    "ConvTranspose": conv(32, 3),
    # pools and normalizations
    "MaxPool": one(IMAGES, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    "AveragePool": one(IMAGES, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    "GlobalAveragePool": one(IMAGES), "GlobalMaxPool": one(IMAGES),
    "BatchNormalization": with_constants(IMAGES, norm("sbmv")),
    "InstanceNormalization": with_constants(IMAGES, norm("sb")),
    "LayerNormalization": with_constants(TOKENS, lambda s: {"s": floats(s[-1]), "b": floats(s[-1])}),
    "LpNormalization": one(TOKENS), "LRN": one(IMAGES, size=5),
    # reductions
    "ReduceSum": with_constants(FLOATS, lambda s: {"a": ints(1)}), "ReduceMean": with_constants(FLOATS, lambda s: {"a": ints(1)}),
    "ReduceMax": with_constants(FLOATS, lambda s: {"a": ints(1)}), "ReduceMin": with_constants(FLOATS, lambda s: {"a": ints(1)}),
    "ReduceProd": with_constants(FLOATS, lambda s: {"a": ints(1)}), "ReduceL2": with_constants(FLOATS, lambda s: {"a": ints(1)}),
    "ReduceSum axis 0": with_constants(FLOATS, lambda s: {"a": ints(0)}),
    "ArgMax": one(FLOATS, axis=1), "CumSum": with_constants(FLOATS, lambda s: {"a": np.int64(1)}),
    "TopK": with_constants(FLOATS, lambda s: {"k": ints(5)}, outputs=2),
    # movement
    "Reshape": with_constants(FLOATS, lambda s: {"s": ints(-1, 16)}), "Flatten": one(IMAGES), "Transpose": one(FLOATS, perm=[1, 0]),
    "Transpose heads": one({SMALL: [1, 8, 4, 8], LARGE: [8, 256, 12, 64]}, perm=[0, 2, 1, 3]),
    "Concat": two(FLOATS, axis=1), "Split": lambda size: ({"x": FLOATS[size]}, {}, dict(axis=1, num_outputs=2), 2),
    "Slice": with_constants(FLOATS, halves), "Squeeze": one({SMALL: [1, 4, 64], LARGE: [1, 64, 65536]}),
    "Unsqueeze": with_constants(FLOATS, lambda s: {"a": ints(0)}),
    "Expand": with_constants({SMALL: [1, 64], LARGE: [1, 65536]}, lambda s: {"s": ints(64, s[1])}),
    "Tile": with_constants({SMALL: [4, 16], LARGE: [256, 1024]}, lambda s: {"r": ints(2, 2)}),
    "Pad": with_constants(IMAGES, lambda s: {"p": ints(0, 0, 1, 1, 0, 0, 1, 1)}),
    "DepthToSpace": one(IMAGES, blocksize=2), "SpaceToDepth": one(IMAGES, blocksize=2),
    "Trilu": one({SMALL: [32, 32], LARGE: [1024, 1024]}),
    "Resize": with_constants(IMAGES, lambda s: {"roi": None, "scales": np.array([1, 1, 2, 2], np.float32)}, mode="linear"),
    "Resize nearest": with_constants(IMAGES, lambda s: {"roi": None, "scales": np.array([1, 1, 2, 2], np.float32)}, mode="nearest"),
    # indices
    "Gather": gather, "GatherElements": gather_elements, "ScatterND": scatter_nd, "ScatterElements": scatter_elements,
    "OneHot": "OneHot",
    # quantized
    "QLinearConv": "QLinearConv", "QLinearConv 1x1": "QLinearConv",
    "QLinearConv depthwise": "QLinearConv", "QLinearConv depthwise stride 2": "QLinearConv",
    # others
    "LSTM": recurrent(4), "GRU": recurrent(3), "RNN": recurrent(1), "Einsum": two({SMALL: [2, 8, 16], LARGE: [16, 256, 64]}, equation="bij,bkj->bik"),
}


def special(name, size):
    """Rows that are not on float inputs: a value made from them goes in."""
    shape = FLOATS[size]
    flags = np.random.default_rng(3).integers(0, 2, shape).astype(bool)
    if name == "Not":
        return {"x": (TensorProto.BOOL, shape)}, {}, {}, 1
    if name == "And":
        return {"x": (TensorProto.BOOL, shape)}, {"y": flags}, {}, 1
    if name == "OneHot":
        count = {SMALL: 16, LARGE: 8192}[size]
        return ({"x": (TensorProto.INT64, [count])},
                {"d": np.int64(512), "v": np.array([0, 1], np.float32)}, {}, 1)
    if name.startswith("QLinearConv"):
        n, c, h, w = IMAGES[size]
        stride, kernel = 2 if "stride" in name else 1, 1 if "1x1" in name else 3
        group = c if "depthwise" in name else 1
        weight = np.random.default_rng(3).integers(-100, 100, [c, c // group, kernel, kernel]).astype(np.int8)
        constants = {"xs": np.float32(0.02), "xz": np.uint8(128), "w": weight, "ws": np.float32(0.01), "wz": np.int8(0),
                     "ys": np.float32(0.1), "yz": np.uint8(120), "b": np.arange(c, dtype=np.int32)}
        return ({"x": (TensorProto.UINT8, [n, c, h, w])}, constants,
                dict(kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[kernel // 2] * 4, group=group), 1)
    raise ValueError(name)


def collect(model, results, size):
    """Gives a model one output: what a run costs for each output is not the operator's. Small results are joined, of large ones
    a corner is taken."""
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    ranks = {o.name: len(o.type.tensor_type.shape.dim) for o in model.graph.output}
    if size == SMALL:
        model.graph.node.append(helper.make_node("Concat", results, ["all"], axis=0))
        kept = ["all"]
    else:
        axes = sorted({0, ranks[results[0]] - 1})
        for key, value in (("corner_start", [0] * len(axes)), ("corner_end", [1] * len(axes)), ("corner_axes", axes)):
            model.graph.initializer.append(numpy_helper.from_array(ints(*value), key))
        kept = [r + "_corner" for r in results]
        for r, k in zip(results, kept):
            model.graph.node.append(helper.make_node("Slice", [r, "corner_start", "corner_end", "corner_axes"], [k]))
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=k) for k in kept)
    return onnx.shape_inference.infer_shapes(model, strict_mode=True)


def build(name, size, copies):
    """A model with so many nodes of the operator, each on inputs of its own, and numpy feeds for it."""
    row = ROWS[name]
    inputs, constants, attributes, outputs = special(name, size) if isinstance(row, str) else row(size)
    op = name.split()[0]
    random = np.random.default_rng(4)
    graph_inputs, feeds, nodes, results = [], {}, [], []
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items() if v is not None]
    for copy in range(copies):
        names = []
        for value, shape in inputs.items():
            kind, dims = shape if isinstance(shape, tuple) else (TensorProto.FLOAT, shape)
            full = f"{value}{copy}"
            graph_inputs.append(helper.make_tensor_value_info(full, kind, dims))
            names.append(full)
            if kind == TensorProto.FLOAT:
                feeds[full] = np.abs(random.standard_normal(dims)).astype(np.float32) + 0.1
            elif kind == TensorProto.BOOL:
                feeds[full] = random.integers(0, 2, dims).astype(bool)
            elif kind == TensorProto.UINT8:
                feeds[full] = random.integers(0, 256, dims).astype(np.uint8)
            else:
                feeds[full] = random.integers(0, 100, dims)
        names += [k if v is not None else "" for k, v in constants.items()]
        if op == "Where":
            nodes.append(helper.make_node("Greater", [names[0], names[1]], [f"c{copy}"]))
            names = [f"c{copy}"] + names
        made = [f"out{copy}_{k}" for k in range(outputs)]
        results.append(made[0])
        nodes.append(helper.make_node(op, names, made, **attributes))
    graph = helper.make_graph(nodes, op, graph_inputs, [onnx.ValueInfoProto(name=r) for r in results], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    return collect(model, results, size), feeds
