# SPDX-License-Identifier: Apache-2.0
"""Low-rank adapters: y = x W + s (x A) B, where A and B learn and W stays. Derivatives are derived by hand."""
import numpy as np

from .kit import TRAINING, case

G = TRAINING + '.Gradient'
RATE = 1 / 64  # exact in float


def squares(a, b, y):
    """An algorithm that descends the sum of squares of y - t, with A, B and y of these shapes."""
    return f'''a (float{y} t) => (float loss, float{a} A1, float{b} B1) <float R = {{{RATE}}}> {{
        d = Sub(y, t)  q = Mul(d, d)  loss = ReduceSum <keepdims = 0> (q)  gA, gB = {G} <xs = ["A", "B"], y = "loss"> (A, B)
        dA = Mul(gA, R)  A1 = Sub(A, dA)  dB = Mul(gB, R)  B1 = Sub(B, dB) }}'''


def put(c, **tensors):
    for name, values in tensors.items():
        c.hold(c.model.graph, name, values)


def numbers(seed, *shape):
    return np.round(np.random.RandomState(seed).randn(*shape), 2)


def descend(s, y, t, gA, gB):
    A, B = s.A - RATE * gA, s.B - RATE * gB
    return dict(y=y, loss=((y - t) ** 2).sum(), A=A, A1=A, B=B, B1=B)


def linear(c, weights, operand, product='MatMul', declared='float[3, 4] W'):
    """x W with an adapter of rank 2; `weights(s)` is the matrix that x meets."""
    c.graph('m (float[N, 3] x) => (float[N, 4] y) <' + declared + ''', float[3, 2] A, float[2, 4] B, float s = {1.5}> {
        ''' + operand + ' base = ' + product + '''  down = MatMul(x, A)  scaled = Mul(down, s)  up = MatMul(scaled, B)  y = Add(base, up) }''')
    put(c, A=numbers(1, 3, 2), B=np.zeros((2, 4)))
    c.entry(squares('[3, 2]', '[2, 4]', '[N, 4]'), A='A1', B='B1')

    def step(s, x, t):
        y = x @ weights(s) + 1.5 * x @ s.A @ s.B
        dy = 2 * (y - t)
        return descend(s, y, t, 1.5 * x.T @ dy @ s.B.T, 1.5 * (x @ s.A).T @ dy)
    return step


def run(c, step):
    # With B = 0 the first step moves B alone.
    for seed in range(3):
        c.step(step, x=numbers(10 + seed, 2, 3), t=numbers(20 + seed, 2, 4))


@case('T-LORA-1', 'T-BIND-13')
def linear_layer(c):
    """An adapter beside a MatMul: A and B are bound, the weight is not and stays."""
    step = linear(c, lambda s: s.W, '', 'MatMul(x, W)')
    put(c, W=numbers(2, 3, 4))
    run(c, step)
    c.reload()
    run(c, step)
    c.infer(lambda s, x: dict(y=x @ s.W + 1.5 * x @ s.A @ s.B), x=np.eye(3))


@case('T-LORA-1')
def transposed_weight(c):
    """Beside a Gemm that reads its weight transposed, with a bias."""
    step = linear(c, lambda s: s.W.T, '', 'Gemm <transB = 1> (x, W, b)', 'float[4, 3] W, float[4] b = {0, 0, 0, 0}')
    put(c, W=numbers(2, 4, 3))
    run(c, step)


@case('T-LORA-2')
def metadata_change_nothing(c):
    """The keys that name the weight, the rank and alpha: a runtime need not know them."""
    step = linear(c, lambda s: s.W, '', 'MatMul(x, W)')
    put(c, W=numbers(2, 3, 4))
    for tensor in c.model.graph.initializer:
        if tensor.name in 'AB':
            for key, value in (('part', tensor.name), ('target', 'W'), ('rank', '2'), ('alpha', '3')):
                tensor.metadata_props.add(key='ai.onward.lora.' + key, value=value)
    run(c, step)


@case('T-LORA-3')
def dequantized_weight(c):
    """Beside a weight that is kept as int8 with a scale for each column."""
    step = linear(c, lambda s: (s.Q - s.z.astype(float)) * s.k, 'W = DequantizeLinear <axis = 1> (Q, k, z) ', 'MatMul(x, W)',
                  'int8[3, 4] Q = {1, -2, 3, 4, 50, -60, 7, 8, -9, 10, 11, -12}, float[4] k = {0.5, 0.25, 0.125, 1}, int8[4] z = {0, 1, -1, 2}')
    run(c, step)


@case('T-LORA-3')
def gradient_passes_a_quantized_layer(c):
    """The first of two layers has the adapter; the gradient goes through the second, whose weight is int8."""
    c.graph('''m (float[N, 2] x) => (float[N, 2] y) <float[2, 2] W = {1, 2, -1, 0.5}, float[2, 1] A = {0.5, -1}, float[1, 2] B = {0, 0},
        float s = {2}, int8[2, 2] Q = {4, -2, 1, 3}, float k = {0.5}> {
        base = MatMul(x, W)  down = MatMul(x, A)  scaled = Mul(down, s)  up = MatMul(scaled, B)  h = Add(base, up)
        V = DequantizeLinear(Q, k)  y = MatMul(h, V) }''')
    c.entry(squares('[2, 1]', '[1, 2]', '[N, 2]'), A='A1', B='B1')

    def step(s, x, t):
        V = s.Q * 0.5
        y = (x @ s.W + 2 * x @ s.A @ s.B) @ V
        dh = 2 * (y - t) @ V.T
        return descend(s, y, t, 2 * x.T @ dh @ s.B.T, 2 * (x @ s.A).T @ dh)
    for seed in range(3):
        c.step(step, x=numbers(30 + seed, 3, 2) / 4, t=numbers(40 + seed, 3, 2) / 4)


def convolved(x, w, group=1):
    """A convolution without padding, stride 1."""
    n, _, height, width = x.shape
    out, inner, kh, kw = w.shape
    y = np.zeros((n, out, height - kh + 1, width - kw + 1))
    for o in range(out):
        first = o // (out // group) * inner
        for i in range(y.shape[2]):
            for j in range(y.shape[3]):
                y[:, o, i, j] = (x[:, first:first + inner, i:i + kh, j:j + kw] * w[o]).sum((1, 2, 3))
    return y


def by_input(dy, x, w, group=1):
    dx = np.zeros_like(x)
    out, inner, kh, kw = w.shape
    for o in range(out):
        first = o // (out // group) * inner
        for i in range(dy.shape[2]):
            for j in range(dy.shape[3]):
                dx[:, first:first + inner, i:i + kh, j:j + kw] += dy[:, o, i, j][:, None, None, None] * w[o]
    return dx


def by_weight(dy, x, w, group=1):
    dw = np.zeros_like(w)
    out, inner, kh, kw = w.shape
    for o in range(out):
        first = o // (out // group) * inner
        for i in range(dy.shape[2]):
            for j in range(dy.shape[3]):
                dw[o] += (dy[:, o, i, j][:, None, None, None] * x[:, first:first + inner, i:i + kh, j:j + kw]).sum(0)
    return dw


def convolution(c, groups, channels, out, rank):
    inner = channels // groups
    c.graph(f'''m (float[N, {channels}, 3, 3] x) => (float[N, {out}, 2, 2] y)
        <float[{out}, {inner}, 2, 2] W, float[{rank * groups}, {inner}, 2, 2] A, float[{out}, {rank}, 1, 1] B, float s = {{0.5}}> {{
        base = Conv <group = {groups}> (x, W)  down = Conv <group = {groups}> (x, A)  scaled = Mul(down, s)
        up = Conv <group = {groups}> (scaled, B)  y = Add(base, up) }}''')
    put(c, W=numbers(3, out, inner, 2, 2), A=numbers(4, rank * groups, inner, 2, 2), B=numbers(5, out, rank, 1, 1) / 4)
    c.entry(squares(f'[{rank * groups}, {inner}, 2, 2]', f'[{out}, {rank}, 1, 1]', f'[N, {out}, 2, 2]'), A='A1', B='B1')

    def step(s, x, t):
        h = 0.5 * convolved(x, s.A, groups)
        y = convolved(x, s.W, groups) + convolved(h, s.B, groups)
        dy = 2 * (y - t)
        return descend(s, y, t, by_weight(0.5 * by_input(dy, h, s.B, groups), x, s.A, groups), by_weight(dy, h, s.B, groups))
    for seed in range(2):
        c.step(step, x=numbers(50 + seed, 2, channels, 3, 3) / 4, t=numbers(60 + seed, 2, out, 2, 2) / 4)


@case('T-LORA-4')
def convolution_of_two(c):
    """Beside a Conv stands one with a few channels (A), then one of 1x1 (B)."""
    convolution(c, 1, 2, 3, 2)


@case('T-LORA-4')
def convolution_in_groups(c):
    """Both have the groups of the layer; the rank is that of each group."""
    convolution(c, 2, 4, 4, 1)


@case('T-LORA-5', 'T-STEP-1')
def merged_by_an_entry(c):
    """An entry that puts the adapter into the weight, W + s A B, and sets B to zero: the function stays."""
    c.graph('''m (float[N, 2] x) => (float[N, 2] y) <float[2, 2] W = {1, 2, -1, 0.5}, float[2, 1] A = {0.5, -1}, float[1, 2] B = {2, 4},
        float s = {0.5}> { base = MatMul(x, W)  down = MatMul(x, A)  scaled = Mul(down, s)  up = MatMul(scaled, B)  y = Add(base, up) }''')
    c.entry('''a () => (float[2, 2] W1, float[1, 2] B1) { p = MatMul(A, B)  q = Mul(p, s)  W1 = Add(W, q)  B1 = Sub(B, B) }''', W='W1', B='B1')

    def infer(s, x):
        return dict(y=x @ (s.W + 0.5 * s.A @ s.B))

    def step(s, x=None):
        W = s.W + 0.5 * s.A @ s.B
        return dict(W=W, W1=W, B=0 * s.B, B1=0 * s.B, **({} if x is None else dict(y=x @ W)))
    x = numbers(7, 3, 2)
    c.infer(infer, x=x)
    c.step(step, x=x)
    c.infer(infer, x=x)


@case('T-LORA-6', 'T-JOIN-9')
def dropout_in_the_training_copy(c):
    """The inference graph drops nothing; the copy in the algorithm has a Dropout in front of A (here of ratio 0)."""
    c.graph('''m (float[N, 2] x) => (float[N, 2] y) <float[2, 2] W = {1, 2, -1, 0.5}, float[2, 1] A = {0.5, -1}, float[1, 2] B = {1, 1},
        float s = {0.5}, float ratio = {0}> { base = MatMul(x, W)  input = Dropout(x, ratio)  down = MatMul(input, A)  scaled = Mul(down, s)
        up = MatMul(scaled, B)  y = Add(base, up) }''')
    c.entry(f'''a (float[N, 2] t) => (float loss, float[1, 2] B1) <float R = {{{RATE}}}, bool on = {{1}}> {{
        input_t = Dropout(x, ratio, on)  down_t = MatMul(input_t, A)  scaled_t = Mul(down_t, s)  up_t = MatMul(scaled_t, B)  y_t = Add(base, up_t)
        d = Sub(y_t, t)  q = Mul(d, d)  loss = ReduceSum <keepdims = 0> (q)
        gB = {G} <xs = ["B"], y = "loss"> (B)  dB = Mul(gB, R)  B1 = Sub(B, dB) }}''', B='B1')

    def step(s, x, t):
        y = x @ s.W + 0.5 * x @ s.A @ s.B
        B = s.B - RATE * 0.5 * (x @ s.A).T @ (2 * (y - t))
        return dict(y=y, loss=((y - t) ** 2).sum(), B=B, B1=B)
    for seed in range(2):
        c.step(step, x=numbers(70 + seed, 3, 2), t=numbers(80 + seed, 3, 2))
