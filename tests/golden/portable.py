# SPDX-License-Identifier: Apache-2.0
"""Steps written by `onward export --portable-step`, run by onnxruntime.

    python3 -m venv VENV && VENV/bin/pip install onnx==1.19.1 onnxruntime==1.31.1 numpy
    VENV/bin/python tests/golden/portable.py models                      (models and batches below)
    VENV/bin/python tests/golden/portable.py write --onward build/onward (after a changed export)
    VENV/bin/python tests/golden/portable.py check --onward build/onward (what ./build.sh test runs where it can)

For each model of the folder portable (NAME.onnx, with its batch in NAME.txt) `onward` makes it trainable, where it is not so already, and writes
the step as a plain model; onnxruntime runs that twice or more, the new state fed to the next run as the step's metadata say (onward.updates), and
`onward step -n 2` does the same. The weights have to agree to 1e-5. `write` keeps the step that was run (NAME.step.onnx) and the weights that onnxruntime gave (in NAME.txt), so
that portable_test.cc can tell without onnxruntime whether an export is still the one that was run. Lines of NAME.txt:

    arguments WORDS..                 of make-trainable; none: the file carries its training
    steps N                           2 where it is not there
    feed NAME TYPE SHAPE VALUES..     a batch
    weight NAME TYPE SHAPE VALUES..   after these steps
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

FOLDER = pathlib.Path(__file__).parent / "portable"
TOLERANCE = 1e-5
RANDOM = np.random.default_rng(12)


def real(*shape):
    return (np.round(RANDOM.uniform(-1, 1, shape) * 64) / 64).astype(np.float32)


def words_of(array):
    shape = "x".join(str(d) for d in array.shape) or "scalar"
    kind = {"float32": "float", "float64": "double"}.get(array.dtype.name, array.dtype.name)
    values = " ".join(repr(float(v)) if array.dtype.kind == "f" else str(int(v)) for v in array.reshape(-1))
    return f"{kind} {shape} {values}"


def array_of(words):
    dtype = {"float": "float32", "double": "float64"}.get(words[0], words[0])
    shape = [] if words[1] == "scalar" else [int(d) for d in words[1].split("x")]
    numbers = [float(w) if dtype.startswith("float") else int(w) for w in words[2:]]
    return np.array(numbers, dtype).reshape(shape)


# A small convolutional network: its text, weights and a batch.
def normalized_network():
    text = """
        m (float[N, 2, 6, 6] x) => (float[N, 3] y) {
          c = Conv <pads = [1, 1, 1, 1]> (x, W)
          b = BatchNormalization (c, S, C, M, D)
          r = Relu (b)
          p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)
          f = Flatten (p)
          y = Gemm <transB = 1> (f, F, Z)
        }"""
    weights = {"W": real(4, 2, 3, 3), "S": 1 + real(4) / 2, "C": real(4), "M": real(4), "D": 1 + real(4) / 2, "F": real(3, 36), "Z": real(3)}
    return text, weights, {"x": real(4, 2, 6, 6), "label": np.array([0, 2, 1, 1])}


# NAME: (arguments, opset, graph as ONNX text, weights, batch and, where it is not 2, the number of steps)
def models():
    sgd, adam = "--optimizer sgd:lr=0.1", "--optimizer adamw:lr=0.01"
    recurrent = {"x": real(5, 2, 3), "label": real(2, 4)}
    return {
        "branch": (f"--loss mse {sgd}", 18, """
            m (float[N, 3] x, bool deep) => (float[N, 2] y) {
              y = If (deep) <
                then_branch = t () => (float[N, 2] a) { h = MatMul (x, W)  s = Tanh (h)  a = MatMul (s, V) },
                else_branch = e () => (float[N, 2] b) { b = MatMul (x, U) }>
            }""", {"W": real(3, 4), "V": real(4, 2), "U": real(3, 2)},
                   {"x": real(4, 3), "deep": np.array(True), "label": real(4, 2)}),
        "loop": (f"--loss mse {adam}", 18, """
            m (float[N, 3] x, int64 n) => (float[N, 3] y) {
              last, all = Loop (n, , x) <
                body = b (int64 i, bool c, float[N, 3] v) => (bool more, float[N, 3] next, float[N, 3] seen) {
                  more = Identity (c)  p = MatMul (v, W)  q = Tanh (p)  next = Add (q, x)  seen = Mul (next, G)
                }>
              axes = Constant <value = int64[1] {0}> ()
              mean = ReduceMean <keepdims = 0> (all, axes)
              y = Add (last, mean)
            }""", {"W": real(3, 3), "G": real(3)}, {"x": real(2, 3), "n": np.array(3), "label": real(2, 3)}),
        "while": (f"--loss mse {sgd}", 18, """
            m (float[N, 2] x, float limit) => (float[N, 2] y) {
              y = Loop (, , x) <
                body = b (int64 i, bool c, float[N, 2] v) => (bool more, float[N, 2] next) {
                  p = MatMul (v, W)  next = Add (p, v)
                  a = Abs (next)  size = ReduceSum <keepdims = 0> (a)  more = Less (size, limit)
                }>
            }""", {"W": (np.abs(real(2, 2)) + 0.5).astype(np.float32)},
                  {"x": real(2, 2), "limit": np.array(20, np.float32), "label": real(2, 2)}),
        "scan": (f"--loss mse {adam}", 18, """
            m (float[T, N, 3] x) => (float[T, N, 4] y) {
              shape = Shape <start = 1, end = 2> (x)
              four = Constant <value = int64[1] {4}> ()
              size = Concat <axis = 0> (shape, four)
              zero = ConstantOfShape (size)
              last, y = Scan <num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1],
                body = b (float[N, 4] h, float[N, 3] s) => (float[N, 4] next, float[N, 4] out) {
                  a = MatMul (s, W)  r = MatMul (h, R)  p = Add (a, r)  next = Tanh (p)  out = Mul (next, G)
                }> (zero, x)
            }""", {"W": real(3, 4), "R": real(4, 4), "G": real(4)}, {"x": real(5, 2, 3), "label": real(5, 2, 4)}),
        "lstm": (f"--loss mse {adam}", 18, """
            m (float[T, N, 3] x) => (float[N, 4] y) {
              all, last, cell = LSTM <hidden_size = 4> (x, W, R, B)
              axes = Constant <value = int64[1] {0}> ()
              y = Squeeze (last, axes)
            }""", {"W": real(1, 16, 3), "R": real(1, 16, 4), "B": real(1, 32)}, recurrent),
        "gru": (f"--loss mse {sgd}", 18, """
            m (float[T, N, 3] x) => (float[N, 4] y) {
              all, last = GRU <hidden_size = 4, direction = "bidirectional", linear_before_reset = 1> (x, W, R, B)
              axes = Constant <value = int64[1] {0}> ()
              y = ReduceSum <keepdims = 0> (last, axes)
            }""", {"W": real(2, 12, 3), "R": real(2, 12, 4), "B": real(2, 24)}, recurrent),
        "rnn": (f"--loss mse {sgd}", 18, """
            m (float[T, N, 3] x, int32[N] lengths) => (float[N, 4] y) {
              all, last = RNN <hidden_size = 4> (x, W, R, , lengths)
              axes = Constant <value = int64[1] {0}> ()
              y = Squeeze (last, axes)
            }""", {"W": real(1, 4, 3), "R": real(1, 4, 4)}, recurrent | {"lengths": np.array([5, 3], np.int32)}),
        "attention": (f"--loss mse {adam}", 23, """
            m (float[N, T, 4] x) => (float[N, T, 4] y) {
              q = MatMul (x, Q)  k = MatMul (x, K)  v = MatMul (x, V)
              a = Attention <q_num_heads = 2, kv_num_heads = 2, is_causal = 1> (q, k, v)
              p = MatMul (a, O)
              y = LayerNormalization (p, S, C)
            }""", {"Q": real(4, 4), "K": real(4, 4), "V": real(4, 4), "O": real(4, 4), "S": real(4), "C": real(4)},
                      {"x": real(2, 3, 4), "label": real(2, 3, 4)}),
        "plain_attention": (f"--loss cross_entropy {sgd}", 18, """
            m (int64[N, T] ids) => (float[N, 3] y) {
              x = Gather (E, ids)
              q = MatMul (x, Q)  k = MatMul (x, K)
              t = Transpose <perm = [0, 2, 1]> (k)
              s = MatMul (q, t)  w = Softmax <axis = -1> (s)  a = MatMul (w, x)
              axes = Constant <value = int64[1] {1}> ()
              mean = ReduceMean <keepdims = 0> (a, axes)
              y = Gemm (mean, F, C)
            }""", {"E": real(7, 4), "Q": real(4, 4), "K": real(4, 4), "F": real(4, 3), "C": real(3)},
                            {"ids": np.array([[1, 2, 2, 6], [0, 3, 5, 1]]), "label": np.array([2, 0])}),
        "batch_norm": (f"--loss cross_entropy {adam}", 18, *normalized_network()),
        "einsum": (f"--loss mse {sgd}", 18, """
            m (float[N, 2, 3] x) => (float[N, 2, 2] y) {
              y = Einsum <equation = "nij,jk,ik->nik"> (x, W, V)
            }""", {"W": real(3, 2), "V": real(2, 2)}, {"x": real(4, 2, 3), "label": real(4, 2, 2)}),
        "sequence": (f"--loss mse {sgd}", 18, """
            m (float[N, 3] x, int64 n) => (float[N, 3] y) {
              empty = SequenceEmpty ()
              h, all = Loop (n, , x, empty) <
                body = b (int64 i, bool c, float[N, 3] v, seq(float[N, 3]) s) =>
                         (bool more, float[N, 3] next, seq(float[N, 3]) t) {
                  more = Identity (c)  p = MatMul (v, W)  next = Sin (p)  t = SequenceInsert (s, next)
                }>
              stacked = ConcatFromSequence <axis = 0, new_axis = 1> (all)
              axes = Constant <value = int64[1] {0}> ()
              y = ReduceSum <keepdims = 0> (stacked, axes)
            }""", {"W": real(3, 3)}, {"x": real(2, 3), "n": np.array(3), "label": real(2, 3)}),
    } | recipes()


# What the step is made of beside optimizers. In 16 bits: the weights are multiples of 1/64, so that sums are exact where they are rounded.
def recipes():
    adam = "--optimizer adamw:lr=0.01"
    text, weights, batch = normalized_network()
    halves = """
        m (float16[N, 4] x) => (float16[N, 3] y) {
          h = MatMul (x, W)  t = Tanh (h)  y = Gemm (t, F, Z)
        }"""
    half_weights = {n: v.astype(np.float16) for n, v in {"W": real(4, 5), "F": real(5, 3), "Z": real(3)}.items()}
    return {
        "accumulate": (f"--loss cross_entropy {adam} --accumulate 2", 18, text, weights, batch, 5),
        "averages": (f"--loss cross_entropy {adam} --ema 0.9", 18, text, weights, batch),
        "bfloat16": (f"--loss cross_entropy {adam} --precision bfloat16", 18, text, weights, batch),
        "float16": (f"--loss cross_entropy {adam} --precision float16", 18, text, weights, batch, 4),
        "float16_all": ("--loss cross_entropy --optimizer adam:lr=0.01 --precision float16 --accumulate 2 --ema 0.9 --clip-norm 1"
                        " --group W:lr=10x", 18, text, weights, batch, 7),
        "float16_model": (f"--loss cross_entropy {adam} --precision float16 --ema 0.9", 18, halves, half_weights,
                          {"x": real(6, 4).astype(np.float16), "label": np.array([0, 2, 1, 1, 0, 2])}, 4),
    }


# Files that carry their training: NAME: (steps, graph, weights, entries as (algorithm, initializers, update bindings, metadata), batch).
def trainings():
    gradient = "ai.onnx.preview.training.Gradient"
    # A generator that plays in every second iteration against a discriminator, whose names it uses for values of its own.
    players = """
        m (float[N, 2] z) => (float[N, 1] score) {
          h = MatMul (z, G)  s = Tanh (h)  fake = MatMul (s, H)
          k = MatMul (fake, D)  t = Tanh (k)  score = MatMul (t, E)
        }"""
    judge = f"""
        judge (float[N, 3] real) => (float loss, float[3, 4] D_new, float[4, 1] E_new) {{
          rk = MatMul (real, D)  rt = Tanh (rk)  found = MatMul (rt, E)
          minus = Neg (found)  a = Softplus (minus)  b = Softplus (score)  l = Add (a, b)  loss = ReduceMean <keepdims = 0> (l)
          d, e = {gradient} <xs = ["D", "E"], y = "loss"> (D, E)
          dd = Mul (rate, d)  D_new = Sub (D, dd)  de = Mul (rate, e)  E_new = Sub (E, de)
        }}"""
    forge = f"""
        forge () => (float loss, float fooled, float[2, 4] G_new, float[4, 3] H_new, float[2, 4] V_new, float[4, 3] U_new, int64 T_new) {{
          minus = Neg (score)  l = Softplus (minus)  loss = ReduceMean <keepdims = 0> (l)
          p = Sigmoid (score)  fooled = ReduceMean <keepdims = 0> (p)
          d, e = {gradient} <xs = ["G", "H"], y = "loss"> (G, H)
          G_new, H_new, V_new, U_new = ai.onnx.preview.training.Momentum
            <alpha = 0.9, beta = 1.0, norm_coefficient = 0.01, mode = "nesterov"> (rate, T, G, H, d, e, V, U)
          T_new = Add (T, one)
        }}"""
    rate = np.array(0.25, np.float32)
    # Two blocks of one model in turn, the second one with what the first has learned; both call their values the same.
    blocks = """
        m (float[N, 3] x) => (float[N, 2] y) {
          h = MatMul (x, W)  b = BatchNormalization (h, S, C, M, D)  t = Relu (b)  y = Gemm (t, F, Z)
        }"""
    lower = f"""
        lower (float[N, 2] label) => (float loss, float[3, 4] W_new, float[3, 4] V_new, float[3, 4] H_new, int64 n_new,
                                      float[4] M_new, float[4] D_new) {{
          h1 = MatMul (x, W)  b1, M_new, D_new = BatchNormalization <training_mode = 1> (h1, S, C, M, D)  t1 = Relu (b1)  y1 = Gemm (t1, F, Z)
          e = Sub (y1, label)  q = Mul (e, e)  loss = ReduceMean <keepdims = 0> (q)
          g = {gradient} <xs = ["W"], y = "loss"> (W)
          W_new, V_new, H_new = ai.onnx.preview.training.Adam (rate, n, W, g, V, H)
          n_new = Add (n, one)
        }}"""
    upper = f"""
        upper () => (float loss, float[4, 2] W_new, float[4, 2] V_new) {{
          e = Sub (y, aim)  q = Abs (e)  loss = ReduceMean <keepdims = 0> (q)
          g = {gradient} <xs = ["F"], y = "loss"> (F)
          W_new, V_new = ai.onnx.preview.training.Adagrad <epsilon = 0.001> (pace, k, F, g, A)
        }}"""
    return {
        "players": (5, players, {"G": real(2, 4), "H": real(4, 3), "D": real(3, 4), "E": real(4, 1)}, [
            (judge, {"rate": rate}, {"D": "D_new", "E": "E_new"}, {}),
            (forge, {"rate": rate, "one": np.array(1), "T": np.array(0), "V": np.zeros((2, 4), np.float32), "U": np.zeros((4, 3), np.float32)},
             {"G": "G_new", "H": "H_new", "V": "V_new", "U": "U_new", "T": "T_new"}, {"onward.every": "2", "onward.phase": "1"}),
        ], {"z": real(6, 2), "real": 1 + real(6, 3) / 2}),
        "blocks": (4, blocks, {"W": real(3, 4), "S": 1 + real(4) / 2, "C": real(4), "M": real(4), "D": 1 + real(4) / 2, "F": real(4, 2), "Z": real(2)}, [
            (lower, {"rate": np.array(0.05, np.float32), "one": np.array(1), "n": np.array(1), "V": np.zeros((3, 4), np.float32),
                     "H": np.zeros((3, 4), np.float32)},
             {"W": "W_new", "V": "V_new", "H": "H_new", "n": "n_new", "M": "M_new", "D": "D_new"}, {}),
            (upper, {"pace": np.array(0.1, np.float32), "k": np.array(0), "aim": real(5, 2), "A": np.full((4, 2), 0.1, np.float32)},
             {"F": "W_new", "A": "V_new"}, {}),
        ], {"x": real(5, 3), "label": real(5, 2)}),
    }


def write_trainings():
    header = '<ir_version: 10, opset_import: ["" : 18, "ai.onnx.preview.training" : 1]>'
    tensors = lambda arrays: [onnx.numpy_helper.from_array(v, n) for n, v in arrays.items()]
    for name, (steps, text, weights, entries, batch) in trainings().items():
        model = onnx.parser.parse_model(header + text)
        model.graph.initializer.extend(tensors(weights))
        for algorithm, initializers, bindings, metadata in entries:
            info = model.training_info.add()
            info.algorithm.CopyFrom(onnx.parser.parse_graph(algorithm))
            info.algorithm.initializer.extend(tensors(initializers))
            for key, value in bindings.items():
                info.update_binding.add(key=key, value=value)
            for key, value in metadata.items():
                info.algorithm.metadata_props.add(key=key, value=value)
        onnx.checker.check_model(model)
        onnx.save(model, FOLDER / f"{name}.onnx")
        lines = [f"steps {steps}"] + [f"feed {n} {words_of(v)}" for n, v in batch.items()]
        (FOLDER / f"{name}.txt").write_text("\n".join(lines) + "\n")


def write_models():
    for name, (arguments, opset, text, weights, batch, *steps) in models().items():
        model = onnx.parser.parse_model(f'<ir_version: {10 if opset > 20 else 8}, opset_import: ["" : {opset}]>' + text)
        model.graph.initializer.extend(onnx.numpy_helper.from_array(v, n) for n, v in weights.items())
        onnx.checker.check_model(model)
        onnx.save(model, FOLDER / f"{name}.onnx")
        lines = [f"arguments {arguments}"] + [f"steps {n}" for n in steps] + [f"feed {n} {words_of(v)}" for n, v in batch.items()]
        (FOLDER / f"{name}.txt").write_text("\n".join(lines) + "\n")
    write_trainings()


class Case:
    def __init__(self, path):
        self.model, self.text = path, path.with_suffix(".txt")
        self.arguments, self.steps, self.feeds = [], 2, {}
        self.start = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}
        for line in self.text.read_text().splitlines():
            words = line.split()
            if words[0] == "arguments":
                self.arguments = words[1:]
            if words[0] == "steps":
                self.steps = int(words[1])
            if words[0] == "feed":
                self.feeds[words[1]] = array_of(words[2:])


def call(onward, *words):
    done = subprocess.run([onward, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"onward {' '.join(map(str, words))}\n{done.stderr}")
    return done.stdout


def in_onnxruntime(step, bindings, feeds, steps):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(step, options, providers=["CPUExecutionProvider"])
    known = {i.name for i in session.get_inputs()} | {i.name for i in session.get_overridable_initializers()}
    state = {}
    for _ in range(steps):
        given = {n: v for n, v in {**feeds, **state}.items() if n in known}
        outputs = dict(zip((o.name for o in session.get_outputs()), session.run(None, given)))  # all: some rest at times
        state = {variable: outputs[value] for variable, value in bindings.items()}
    return state


def run(onward, case, folder):
    trainable, stepped, step = folder / "trainable.onnx", folder / "stepped.onnx", folder / "step.onnx"
    if case.arguments:
        call(onward, "make-trainable", case.model, "-o", trainable, "--overwrite", *case.arguments)
    else:
        trainable = case.model
    call(onward, "export", trainable, "--portable-step", "-o", step, "--overwrite")
    inputs = []
    for name, value in case.feeds.items():
        np.save(folder / f"{name}.npy", value)
        inputs += ["--input", f"{name}={folder / name}.npy"]
    call(onward, "step", trainable, *inputs, "-n", case.steps, "-o", stepped, "--overwrite")
    updates = json.loads(next(p.value for p in onnx.load(step).metadata_props if p.key == "onward.updates"))
    theirs = in_onnxruntime(str(step), updates, case.feeds, case.steps)
    after = onnx.load(stepped)
    tensors = [*after.graph.initializer, *(t for info in after.training_info for t in info.algorithm.initializer)]
    kept = {t.name: onnx.numpy_helper.to_array(t) for t in tensors}
    bound = [b.key for info in after.training_info for b in info.update_binding]  # the step may count iterations, too
    return step.read_bytes(), {name: theirs[name] for name in bound}, {name: kept[name] for name in bound}


def apart(a, b):
    """How far two arrays are from each other, as part of the largest value (at least 1)."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    a, b = a.astype(np.float64), b.astype(np.float64)
    return float(np.max(np.abs(a - b), initial=0) / max(1, np.max(np.abs(b), initial=0)))


def keep(case, step, weights):
    case.model.with_suffix(".step.onnx").write_bytes(step)
    lines = [line for line in case.text.read_text().splitlines() if not line.startswith("weight ")]
    lines += [f"weight {name} {words_of(value)}" for name, value in weights.items()]
    case.text.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["models", "write", "check"])
    parser.add_argument("--onward", default="build/onward")
    parser.add_argument("--only", default="", help="models whose names contain this")
    args = parser.parse_args()
    if args.what == "models":
        return write_models()
    failed = False
    for path in sorted(FOLDER.glob("*.onnx")):
        if path.name.endswith(".step.onnx") or args.only not in path.name:
            continue
        case = Case(path)
        with tempfile.TemporaryDirectory() as folder:
            step, theirs, ours = run(args.onward, case, pathlib.Path(folder))
        worst = max((apart(ours[name], value), name) for name, value in theirs.items())
        moved = sum(apart(value, case.start[name]) > 0 for name, value in theirs.items() if name in case.start)
        agrees = worst[0] <= TOLERANCE and moved > 0
        print(f"{path.stem:16} {len(step):7} bytes, {moved} weights moved, {worst[0]:.1e} apart ({worst[1]})")
        failed |= not agrees
        if args.what == "write" and agrees:
            keep(case, step, theirs)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
