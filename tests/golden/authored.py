# SPDX-License-Identifier: Apache-2.0
"""Trainings that somebody else wrote: a loss, an optimizer and two models that train against each other, by the onnx package alone.

    python3 -m venv VENV && VENV/bin/pip install onnx==1.23.2 numpy
    VENV/bin/python tests/golden/authored.py

writes the folder authored: the files, the batches, and what numpy gives for them in float64, by gradients that stand here as formulas (Onward takes no
part). authored_test.cc trains them. Lines of NAME.txt:

    feed NAME TYPE SHAPE VALUES..     for every step; a number behind the name: of the steps with this number, modulo how many there are
    weight NAME TYPE SHAPE VALUES..   after these steps
    steps N
"""
import pathlib

import numpy as np
import onnx
from onnx import helper, parser

FOLDER = pathlib.Path(__file__).parent / "authored"
HEADER = '<ir_version: 10, opset_import: ["" : 18, "ai.onnx.preview.training" : 1]>'
G = "ai.onnx.preview.training.Gradient"
RANDOM = np.random.default_rng(4)
F32 = lambda v: float(np.float32(v))


def words_of(array):
    array = np.asarray(array)
    shape = "x".join(str(d) for d in array.shape) or "scalar"
    kind = "int64" if array.dtype.kind == "i" else "float"
    return f"{kind} {shape} " + " ".join(str(v) if kind == "int64" else repr(float(v)) for v in array.reshape(-1))


def write(name, steps, feeds, weights):
    lines = [f"steps {steps}"] + [f"feed {n} {words_of(v)}" for n, v in feeds.items()]
    lines += [f"weight {n} {words_of(v)}" for n, v in weights.items()]
    (FOLDER / f"{name}.txt").write_text("\n".join(lines) + "\n")


def save(name, text, check=True):
    model = parser.parse_model(HEADER + text)
    if check:
        onnx.checker.check_model(model)
    onnx.save(model, FOLDER / f"{name}.onnx")
    return model


def real(*shape):
    return (np.round(RANDOM.uniform(-1, 1, shape) * 64) / 64).astype(np.float32)


def own_loss_and_optimizer():
    """y = x W + b, by the mean of log cosh of the error and by signs of averaged gradients."""
    w, b = real(3, 2), real(2)
    values = lambda a: ", ".join(repr(float(v)) for v in a.reshape(-1))
    save("line", f"line (float[N, 3] x) => (float[N, 2] y) <float[3, 2] W = {{{values(w)}}}, float[2] b = {{{values(b)}}}> {{ y = Gemm (x, W, b) }}")
    save("log_cosh", """log_cosh (float[N, 2] y, float[N, 2] target) => (float loss) {
        d = Sub (y, target)  c = Cosh (d)  l = Log (c)  loss = ReduceMean <keepdims = 0> (l)
    }""")
    # What a step does to one weight; M is state, decay a number that the command line may give.
    save("averaged_signs", """averaged_signs (float R, int64 T, float[] X, float[] G, float[] M, float decay) => (float[] X_new, float[] M_new)
        <float decay = {0.9}, float one = {1}> {
          rest = Sub (one, decay)  old = Mul (decay, M)  new = Mul (rest, G)  M_new = Add (old, new)
          t = Cast <to = 1> (T)  t1 = Add (t, one)  slow = Div (R, t1)
          s = Sign (M_new)  d = Mul (slow, s)  X_new = Sub (X, d)
        }""", check=False)  # onnx's checker wants shapes of inputs; these are any
    x, target, steps, decay, rate = real(5, 3), real(5, 2), 12, F32(0.5), F32(0.25)
    W, B, state = w.astype(np.float64), b.astype(np.float64), [0, 0]
    for t in range(steps):
        dy = np.tanh(x @ W + B - target) / target.size
        for i, g in enumerate((x.astype(np.float64).T @ dy, dy.sum(0))):
            state[i] = decay * state[i] + (1 - decay) * g
        W, B = W - rate / (t + 1) * np.sign(state[0]), B - rate / (t + 1) * np.sign(state[1])
    write("line", steps, {"x": x, "target": target}, {"W": W, "b": B, "W__M": state[0], "b__M": state[1]})


def two_players():
    """fake = a z + b is to look like numbers around 2 with a spread of 0.5, to score = u v + w v v + c, which is to tell them apart. The generator plays in
    every second iteration (metadata of its algorithm), after the discriminator."""
    start = {"a": 1.0, "b": 0.0, "u": 0.0, "w": 0.0, "c": 0.0}
    model = save("two_players", """two_players (float[N] z) => (float[N] fake, float[N] score)
        <float a = {1}, float b = {0}, float u = {0}, float w = {0}, float c = {0}> {
          az = Mul (a, z)  fake = Add (az, b)
          uf = Mul (u, fake)  ff = Mul (fake, fake)  wf = Mul (w, ff)  s = Add (uf, wf)  score = Add (s, c)
        }""")
    players = [("discriminator", "uwc", """discriminator (float[N] real) => (float told_apart, float u_new, float w_new, float c_new)
        <float rate = {0.25}> {
          ur = Mul (u, real)  rr = Mul (real, real)  wr = Mul (w, rr)  sr = Add (ur, wr)  judged = Add (sr, c)
          minus = Neg (judged)  lr = Softplus (minus)  lf = Softplus (score)  l = Add (lr, lf)  told_apart = ReduceMean <keepdims = 0> (l)
          gu, gw, gc = %s <xs = ["u", "w", "c"], y = "told_apart"> (u, w, c)
          du = Mul (rate, gu)  u_new = Sub (u, du)  dw = Mul (rate, gw)  w_new = Sub (w, dw)  dc = Mul (rate, gc)  c_new = Sub (c, dc)
        }"""), ("generator", "ab", """generator () => (float found_out, float a_new, float b_new)
        <float pace = {0.25}> {
          minus = Neg (score)  l = Softplus (minus)  found_out = ReduceMean <keepdims = 0> (l)
          ga, gb = %s <xs = ["a", "b"], y = "found_out"> (a, b)
          da = Mul (pace, ga)  a_new = Sub (a, da)  db = Mul (pace, gb)  b_new = Sub (b, db)
        }""")]
    for name, variables, text in players:
        info = model.training_info.add()
        info.algorithm.CopyFrom(parser.parse_graph(text % G))
        for v in variables:
            info.update_binding.add(key=v, value=f"{v}_new")
        if name == "generator":
            for key, value in (("onward.every", "2"), ("onward.phase", "1")):
                info.algorithm.metadata_props.add(key=key, value=value)
    onnx.checker.check_model(model)
    onnx.save(model, FOLDER / "two_players.onnx")
    steps, batches = 60, [(real(8) * 2, (2 + real(8) / 2).astype(np.float32)) for _ in range(3)]
    s = {n: np.float64(v) for n, v in start.items()}
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    for k in range(steps):
        z, real_ = (v.astype(np.float64) for v in batches[k % len(batches)])
        fake = s["a"] * z + s["b"]
        judge = lambda v: s["u"] * v + s["w"] * v * v + s["c"]
        dr, df = -sigmoid(-judge(real_)) / len(z), sigmoid(judge(fake)) / len(z)
        gradients = {"u": (dr * real_ + df * fake).sum(), "w": (dr * real_**2 + df * fake**2).sum(), "c": (dr + df).sum()}
        s.update({n: s[n] - 0.25 * g for n, g in gradients.items()})
        if k % 2 == 1:
            d = -sigmoid(-judge(fake)) / len(z) * (s["u"] + 2 * s["w"] * fake)
            s["a"], s["b"] = s["a"] - 0.25 * (d * z).sum(), s["b"] - 0.25 * d.sum()
    print("two players:", {n: round(float(v), 3) for n, v in s.items()})
    feeds = {f"{n}:{i}": v for i, batch in enumerate(batches) for n, v in zip(("z", "real"), batch)}
    write("two_players", steps, feeds, s)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    own_loss_and_optimizer()
    two_players()
