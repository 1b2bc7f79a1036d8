# SPDX-License-Identifier: Apache-2.0
"""The Gradient operator. Derivatives are derived by hand."""
import numpy as np
from onnx import TensorProto

from .kit import TRAINING, case, refused

G = 'ai.onnx.preview.training.Gradient'


def model(c, graph, algorithm, **updates):
    c.graph(graph)
    return c.entry(algorithm.replace('Gradient', G), **updates)


SQUARE = 'm (float[3] x) => (float[3] y) <float[3] W = {1, -2, 0.5}> { y = Mul(x, W) }'


def descend(s, by, **more):
    return dict(W=s.W - by, n=s.W - by, **more)


@case('T-GRAD-1')
def of_a_sum_of_squares(c):
    """d sum((x W)^2) / dW = 2 x^2 W."""
    model(c, SQUARE, '''a () => (float[3] g, float[3] n) { q = Mul(y, y) l = ReduceSum <keepdims = 0> (q)
        g = Gradient <xs = ["W"], y = "l"> (W)  n = Sub(W, g) }''', W='n')
    c.steps(lambda s, x: descend(s, 2 * x * x * s.W, g=2 * x * x * s.W, y=x * s.W), x=[[1, 2, 3], [0.5, 0, -1]])


@case('T-GRAD-1')
def of_several_xs(c):
    """Output i belongs to xs[i]; each has the type and shape of its x."""
    model(c, 'm (float[2, 3] x) => (float[2, 1] y) <float[3, 1] W = {1, 2, 3}, float[1] b = {0.5}> { h = MatMul(x, W) y = Add(h, b) }',
          '''a () => (float[3, 1] gW, float[1] gb, float[3, 1] W1, float[1] b1) { q = Mul(y, y) l = ReduceSum <keepdims = 0> (q)
        gW, gb = Gradient <xs = ["W", "b"], y = "l"> (W, b)  W1 = Sub(W, gW)  b1 = Sub(b, gb) }''', W='W1', b='b1')

    def step(s, x):
        y = x @ s.W + s.b
        gW, gb = x.T @ (2 * y), (2 * y).sum(0)
        return dict(gW=gW, gb=gb, W=s.W - gW, W1=s.W - gW, b=s.b - gb, b1=s.b - gb, y=y)
    c.steps(step, x=[[[0.1, 0.2, 0.3], [0, -0.1, 0.2]], [[0.1, 0, 0], [0, 0.1, 0]]])


@case('T-GRAD-1')
def by_an_input(c):
    """x may be an input of the graph."""
    model(c, SQUARE, '''a () => (float[3] g, float[3] n) { q = Mul(y, y) l = ReduceSum <keepdims = 0> (q)
        g = Gradient <xs = ["x"], y = "l"> (x)  n = Sub(W, g) }''', W='n')
    c.steps(lambda s, x: descend(s, 2 * x * s.W ** 2, g=2 * x * s.W ** 2, y=x * s.W), x=[[1, 2, 3], [0.5, 0, -1]])


@case('T-GRAD-1')
def in_double(c):
    """Gradients of double tensors are double."""
    model(c, 'm (double[2] x) => (double[2] y) <double[2] W = {1, -2}> { y = Mul(x, W) }',
          '''a () => (double[2] g, double[2] n) { t = Sin(y) l = ReduceSum <keepdims = 0> (t)
        g = Gradient <xs = ["W"], y = "l"> (W)  n = Sub(W, g) }''', W='n')
    c.steps(lambda s, x: descend(s, x * np.cos(x * s.W), g=x * np.cos(x * s.W), y=x * s.W), x=[[1, 2], [0.5, -1]])


@case('T-GRAD-1')
def in_float16(c):
    """Gradients of float16 tensors are float16."""
    model(c, 'm (float16[2] x) => (float16[2] y) <float16[2] W> { y = Mul(x, W) }',
          '''a () => (float16[2] g, float16[2] n) { q = Mul(y, y) l = ReduceSum <keepdims = 0> (q)
        g = Gradient <xs = ["W"], y = "l"> (W)  n = Sub(W, g) }''', W='n')
    c.hold(c.model.graph, 'W', [1, -2], TensorProto.FLOAT16)
    c.steps(lambda s, x: descend(s, 2 * x * x * s.W, g=2 * x * x * s.W, y=x * s.W), x=[[0.5, 0.25], [0.5, -0.5]])


@case('T-GRAD-1')
def of_a_scalar_weight(c):
    """A scalar has a scalar gradient, also where it is broadcast."""
    model(c, 'm (float[3] x) => (float[3] y) <float W = {2}> { y = Mul(x, W) }',
          '''a () => (float g, float n) { q = Mul(y, y) l = ReduceSum <keepdims = 0> (q)
        g = Gradient <xs = ["W"], y = "l"> (W)  n = Sub(W, g) }''', W='n')
    c.steps(lambda s, x: descend(s, (2 * x * x * s.W).sum(), g=(2 * x * x * s.W).sum(), y=x * s.W), x=[[0.1, 0.2, 0.3]])


@case('T-GRAD-1')
def used_twice(c):
    """A weight that is read twice collects both parts."""
    model(c, 'm (float[3] x) => (float[3] y) <float[3] W = {1, -2, 0.5}> { h = Mul(x, W) e = Exp(W) y = Add(h, e) }',
          '''a () => (float[3] g, float[3] n) { l = ReduceSum <keepdims = 0> (y)
        g = Gradient <xs = ["W"], y = "l"> (W)  n = Sub(W, g) }''', W='n')
    c.steps(lambda s, x: descend(s, x + np.exp(s.W), g=x + np.exp(s.W), y=x * s.W + np.exp(s.W)), x=[[1, 2, 3], [0.5, 0, -1]])


@case('T-GRAD-1')
def official_add_and_mul(c):
    """The example of the standard: d = (a + b) a."""
    model(c, 'm (float a, float b) => (float d) <float W = {0}> { s = Add(a, b) d = Mul(s, a) }',
          'e () => (float da, float db, float n) { da, db = Gradient <xs = ["a", "b"], y = "d"> (a, b)  n = Add(W, da) }', W='n')
    c.steps(lambda s, a, b: dict(da=2 * a + b, db=a, W=s.W + 2 * a + b, n=s.W + 2 * a + b, d=(a + b) * a), a=[2, -1], b=[3, 0.5])


@case('T-GRAD-1')
def cross_entropy_of_two_layers(c):
    """A small classifier: MatMul, Relu, Gemm, SoftmaxCrossEntropyLoss, all weights."""
    c.graph('''m (float[4, 3] x) => (float[4, 2] logits) <float[3, 5] U, float[5, 2] V, float[2] b = {0.1, -0.1}> {
        h = MatMul(x, U)  r = Relu(h)  logits = Gemm(r, V, b) }''')
    r = np.random.RandomState(4)
    c.hold(c.model.graph, 'U', np.round(r.randn(3, 5), 2))
    c.hold(c.model.graph, 'V', np.round(r.randn(5, 2), 2))
    c.entry(f'''a (int64[4] label) => (float loss, float[3, 5] U1, float[5, 2] V1, float[2] b1) <float R = {{0.25}}> {{
        loss = SoftmaxCrossEntropyLoss(logits, label)
        gU, gV, gb = {G} <xs = ["U", "V", "b"], zs = ["x"], y = "loss"> (U, V, b, x)
        dU = Mul(R, gU)  U1 = Sub(U, dU)  dV = Mul(R, gV)  V1 = Sub(V, dV)  db = Mul(R, gb)  b1 = Sub(b, db) }}''', U='U1', V='V1', b='b1')

    def step(s, x, label):
        h = x @ s.U
        a = np.maximum(h, 0)
        z = a @ s.V + s.b
        p = np.exp(z - z.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        loss = -np.log(p[np.arange(4), label]).mean()
        dz = (p - np.eye(2)[label]) / 4
        da = dz @ s.V.T * (h > 0)
        U, V, b = s.U - 0.25 * x.T @ da, s.V - 0.25 * a.T @ dz, s.b - 0.25 * dz.sum(0)
        return dict(U=U, U1=U, V=V, V1=V, b=b, b1=b, loss=loss, logits=z)
    c.steps(step, x=list(np.round(r.randn(3, 4, 3), 2)), label=[[0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]])


@case('T-GRAD-1')
def of_a_convolution(c):
    """A convolution of one channel: the gradient of its weights is a correlation of the input with that of the output."""
    c.graph('m (float[1, 1, 4, 4] x) => (float[1, 1, 3, 3] y) <float[1, 1, 2, 2] W = {1, 0.5, -1, 2}> { y = Conv(x, W) }')
    c.entry(f'''a () => (float[1, 1, 2, 2] n) <float R = {{0.01}}> {{ q = Mul(y, y)  l = ReduceSum <keepdims = 0> (q)
        g = {G} <xs = ["W"], y = "l"> (W)  d = Mul(R, g)  n = Sub(W, d) }}''', W='n')

    def step(s, x):
        y, g = np.zeros((1, 1, 3, 3)), np.zeros((1, 1, 2, 2))
        for i in range(3):
            for j in range(3):
                y[0, 0, i, j] = (x[0, 0, i:i + 2, j:j + 2] * s.W[0, 0]).sum()
        for i in range(2):
            for j in range(2):
                g[0, 0, i, j] = (2 * y[0, 0] * x[0, 0, i:i + 3, j:j + 3]).sum()
        return dict(W=s.W - f32r * g, n=s.W - f32r * g, y=y)
    f32r = float(np.float32(0.01))
    c.steps(step, x=[np.arange(16.).reshape(1, 1, 4, 4) / 8, -np.arange(16.).reshape(1, 1, 4, 4) / 16])


@case('T-GRAD-2')
def at_another_point(c):
    """The input of the node is another tensor than the one it names: the function is evaluated there."""
    model(c, SQUARE, '''a (float[3] p) => (float[3] g, float[3] n) { q = Mul(y, y) l = ReduceSum <keepdims = 0> (q)
        g = Gradient <xs = ["W"], y = "l"> (p)  n = Sub(W, g) }''', W='n')
    c.steps(lambda s, x, p: descend(s, 2 * x * x * p, g=2 * x * x * p, y=x * s.W), x=[[1, 2, 3], [0.5, 0, -1]], p=[[1, 1, 1], [3, 2, 1]])


@case('T-GRAD-2')
def look_ahead(c):
    """Nesterov written out: the gradient is taken at W + 0.5 V."""
    model(c, SQUARE, '''a () => (float[3] v1, float[3] n) <float[3] V = {0.5, 0.5, 0.5}, float half = {0.5}, float R = {0.1}> {
        q = Mul(y, y) l = ReduceSum <keepdims = 0> (q)  m0 = Mul(half, V)  ahead = Add(W, m0)
        g = Gradient <xs = ["W"], y = "l"> (ahead)  d = Mul(R, g)  v1 = Sub(m0, d)  n = Add(W, v1) }''', W='n', V='v1')

    def step(s, x):
        v = 0.5 * s.V - s.R * 2 * x * x * (s.W + 0.5 * s.V)
        return dict(V=v, v1=v, W=s.W + v, n=s.W + v, y=x * s.W)
    c.steps(step, x=[[1, 2, 0.5], [0.5, 0, -1]])


@case('T-GRAD-2')
def z_at_another_point(c):
    """An input that belongs to zs may be another tensor, too."""
    model(c, SQUARE, '''a (float[3] p) => (float[3] g, float[3] n) { q = Mul(y, y) l = ReduceSum <keepdims = 0> (q)
        g = Gradient <xs = ["W"], zs = ["x"], y = "l"> (W, p)  n = Sub(W, g) }''', W='n')
    c.steps(lambda s, x, p: descend(s, 2 * p * p * s.W, g=2 * p * p * s.W, y=x * s.W), x=[[1, 2, 3], [0.5, 0, -1]], p=[[1, 0.5, 0], [1, 1, 1]])


@case('T-GRAD-2')
def several_points(c):
    """Two Gradient nodes of one function at two points."""
    model(c, SQUARE, '''a (float[3] p) => (float[3] g, float[3] e, float[3] n) { q = Mul(y, y) l = ReduceSum <keepdims = 0> (q)
        g = Gradient <xs = ["W"], y = "l"> (p)  e = Gradient <xs = ["W"], y = "l"> (W)  t = Add(g, e)  n = Sub(W, t) }''', W='n')
    c.steps(lambda s, x, p: descend(s, 2 * x * x * (p + s.W), g=2 * x * x * p, e=2 * x * x * s.W, y=x * s.W), x=[[1, 0.5, 0.1]], p=[[1, 2, 3]])


@case('T-GRAD-3')
def zs_are_held(c):
    """A member of zs is held constant, even where it depends on an x: h = x W is not differentiated."""
    model(c, 'm (float[3] x) => (float[3] y) <float[3] W = {1, -2, 0.5}> { h = Mul(x, W) y = Mul(h, W) }',
          '''a () => (float[3] g, float[3] n) { l = ReduceSum <keepdims = 0> (y)
        g = Gradient <xs = ["W"], zs = ["h"], y = "l"> (W, h)  n = Sub(W, g) }''', W='n')
    c.steps(lambda s, x: descend(s, x * s.W, g=x * s.W, y=x * s.W ** 2), x=[[1, 2, 3], [0.5, 0, -1]])


@case('T-GRAD-3')
def zs_that_are_independent(c):
    """A member of zs that depends on no x changes nothing."""
    model(c, SQUARE, '''a () => (float[3] g, float[3] n) { q = Mul(y, y) l = ReduceSum <keepdims = 0> (q)
        g = Gradient <xs = ["W"], zs = ["x"], y = "l"> (W, x)  n = Sub(W, g) }''', W='n')
    c.steps(lambda s, x: descend(s, 2 * x * x * s.W, g=2 * x * x * s.W, y=x * s.W), x=[[1, 2, 3], [0.5, 0, -1]])


@case('T-GRAD-3')
def stop_gradient(c):
    """zs stop a gradient on one of two ways: a target that is held."""
    model(c, SQUARE, '''a () => (float[3] n) { target = Exp(y) e = Sub(y, target) q = Mul(e, e) l = ReduceSum <keepdims = 0> (q)
        g = Gradient <xs = ["W"], zs = ["target"], y = "l"> (W, target)  n = Sub(W, g) }''', W='n')
    c.steps(lambda s, x: descend(s, 2 * (x * s.W - np.exp(x * s.W)) * x, y=x * s.W), x=[[0.1, 0.2, 0.3], [0.5, 0, -1]])


@case('T-GRAD-4')
def by_an_intermediate_value(c):
    """xs may name a value inside the graph."""
    model(c, SQUARE, '''a () => (float[3] g, float[3] n) { q = Mul(y, y) l = ReduceSum <keepdims = 0> (q)
        g = Gradient <xs = ["y"], y = "l"> (y)  n = Sub(W, g) }''', W='n')
    c.steps(lambda s, x: descend(s, 2 * x * s.W, g=2 * x * s.W, y=x * s.W), x=[[1, 2, 3], [0.5, 0, -1]])


@case('T-GRAD-4')
def by_weight_and_intermediate(c):
    """A weight and a value that does not depend on it in one list."""
    model(c, 'm (float[2] x) => (float[2] y) <float[2] A = {1, 2}, float[2] W = {3, 4}> { h = Mul(x, A) y = Mul(h, W) }',
          '''a () => (float[2] gh, float[2] gW, float[2] n) { l = ReduceSum <keepdims = 0> (y)
        gh, gW = Gradient <xs = ["h", "W"], y = "l"> (h, W)  n = Sub(W, gW) }''', W='n')
    c.steps(lambda s, x: descend(s, x * s.A, gh=s.W, gW=x * s.A, y=x * s.A * s.W), x=[[1, 2], [0.5, -1]])


@case('T-GRAD-5')
def unnamed_are_constants(c):
    """Names in neither list are constants: x and B need not be in zs."""
    model(c, 'm (float[3] x) => (float[3] y) <float[3] W = {1, -2, 0.5}, float[3] B = {1, 1, 2}> { h = Mul(x, W) y = Add(h, B) }',
          '''a () => (float[3] g, float[3] n) { q = Mul(y, y) l = ReduceSum <keepdims = 0> (q)
        g = Gradient <xs = ["W"], y = "l"> (W)  n = Sub(W, g) }''', W='n')

    def step(s, x):
        y = x * s.W + s.B
        return descend(s, 2 * y * x, g=2 * y * x, y=y)
    c.steps(step, x=[[1, 2, 3], [0.5, 0, -1]])


@case('T-GRAD-6')
def first_output_omitted(c):
    """An output may be left out by an empty name."""
    model(c, 'm (float[2] x) => (float[2] y) <float[2] A = {1, 2}, float[2] W = {3, 4}> { h = Mul(x, A) y = Mul(h, W) }',
          '''a () => (float[2] gW, float[2] n) { l = ReduceSum <keepdims = 0> (y)
        , gW = Gradient <xs = ["A", "W"], y = "l"> (A, W)  n = Sub(W, gW) }''', W='n')
    c.steps(lambda s, x: descend(s, x * s.A, gW=x * s.A, y=x * s.A * s.W), x=[[1, 2], [0.5, -1]])


@case('T-GRAD-6')
def last_outputs_omitted(c):
    """Outputs at the end may be missing."""
    model(c, 'm (float[2] x) => (float[2] y) <float[2] A = {1, 2}, float[2] W = {3, 4}> { h = Mul(x, A) y = Mul(h, W) }',
          '''a () => (float[2] gA, float[2] n) { l = ReduceSum <keepdims = 0> (y)
        gA = Gradient <xs = ["A", "W"], y = "l"> (A, W)  n = Sub(A, gA) }''', A='n')
    c.steps(lambda s, x: dict(A=s.A - x * s.W, n=s.A - x * s.W, gA=x * s.W, y=x * s.A * s.W), x=[[1, 2], [0.5, -1]])


@case('T-GRAD-7')
def second_order(c):
    """y of one Gradient node is the output of another: d2 (x W)^3 / dW2 = 6 x^3 W."""
    model(c, SQUARE, '''a () => (float[3] g, float[3] h, float[3] n) { s = Mul(y, y) q = Mul(s, y) l = ReduceSum <keepdims = 0> (q)
        g = Gradient <xs = ["W"], y = "l"> (W)  k = ReduceSum <keepdims = 0> (g)
        h = Gradient <xs = ["W"], y = "k"> (W)  n = Sub(W, h) }''', W='n')
    c.steps(lambda s, x: descend(s, 6 * x ** 3 * s.W, h=6 * x ** 3 * s.W, g=3 * x ** 3 * s.W ** 2, y=x * s.W), x=[[1, 0.5, 0.25], [0.5, 0, -1]])


@case('T-GRAD-7')
def second_order_by_another(c):
    """The example of the standard: the gradient by W, differentiated by x."""
    model(c, SQUARE, '''a () => (float[3] h, float[3] n) { q = Mul(y, y) l = ReduceSum <keepdims = 0> (q)
        g = Gradient <xs = ["W"], zs = ["x"], y = "l"> (W, x)
        h = Gradient <xs = ["x"], zs = ["W"], y = "g"> (x, W)  n = Sub(W, h) }''', W='n')
    c.steps(lambda s, x: descend(s, 4 * x * s.W, h=4 * x * s.W, y=x * s.W), x=[[1, 0.5, 0.25], [0.5, 0, -1]])


@case('T-GRAD-7')
def gradient_penalty(c):
    """A loss that holds a gradient: |d y / d x|^2 is driven to zero."""
    model(c, 'm (float[2] x) => (float y) <float[2] W = {1, -0.5}> { t = Mul(x, W) u = Tanh(t) y = ReduceSum <keepdims = 0> (u) }',
          '''a () => (float penalty, float[2] n) { gx = Gradient <xs = ["x"], y = "y"> (x)
        q = Mul(gx, gx)  penalty = ReduceSum <keepdims = 0> (q)
        g = Gradient <xs = ["W"], y = "penalty"> (W)  n = Sub(W, g) }''', W='n')

    def step(s, x):
        u = np.tanh(x * s.W)
        d = 1 - u * u
        gx = d * s.W
        g = 2 * gx * (d - 2 * u * d * x * s.W)
        return descend(s, g, penalty=(gx * gx).sum(), y=u.sum())
    c.steps(step, x=[[1, 2], [0.5, -1]])


@case('T-GRAD-7')
def third_order(c):
    """Three Gradient nodes in a row: d3 W^4 / dW3 = 24 W."""
    model(c, 'm (float x) => (float y) <float W = {0.5}> { a2 = Mul(W, W) y = Mul(a2, a2) }',
          '''a () => (float h, float n) { g = Gradient <xs = ["W"], y = "y"> (W)
        f = Gradient <xs = ["W"], y = "g"> (W)  h = Gradient <xs = ["W"], y = "f"> (W)  d = Mul(h, x)  n = Sub(W, d) }''', W='n')
    c.steps(lambda s, x: dict(h=24 * s.W, W=s.W - 24 * s.W * x, n=s.W - 24 * s.W * x, y=s.W ** 4), x=[0.01, 0.02])


@case('T-GRAD-8')
def of_a_vector(c):
    """A y that is no scalar is summed."""
    model(c, SQUARE, 'a () => (float[3] g, float[3] n) { q = Mul(y, y)  g = Gradient <xs = ["W"], y = "q"> (W)  n = Sub(W, g) }', W='n')
    c.steps(lambda s, x: descend(s, 2 * x * x * s.W, g=2 * x * x * s.W, y=x * s.W), x=[[1, 2, 3], [0.5, 0, -1]])


@case('T-GRAD-8')
def of_a_matrix_by_a_scalar(c):
    """Summing also where x is a scalar."""
    model(c, 'm (float[2, 2] x) => (float[2, 2] y) <float W = {2}> { y = Mul(x, W) }',
          'a () => (float g, float n) { g = Gradient <xs = ["W"], y = "y"> (W)  n = Sub(W, g) }', W='n')
    c.steps(lambda s, x: descend(s, x.sum(), g=x.sum(), y=x * s.W), x=[[[1, 2], [3, 4]]])


@case('T-GRAD-9')
def of_what_does_not_depend(c):
    """Where y does not depend on an x, its gradient is zeros of its shape."""
    model(c, 'm (float[3] x) => (float[3] y) <float[3] W = {1, -2, 0.5}, float[2, 2] U = {1, 2, 3, 4}> { y = Mul(x, W) }',
          '''a () => (float[3] gW, float[2, 2] gU, float[3] n) { l = ReduceSum <keepdims = 0> (y)
        gW, gU = Gradient <xs = ["W", "U"], y = "l"> (W, U)  n = Sub(W, gW) }''', W='n')
    c.steps(lambda s, x: descend(s, x, gW=x, gU=np.zeros((2, 2)), y=x * s.W), x=[[1, 2, 3]])


@case('T-GRAD-9')
def through_a_step_function(c):
    """Through Floor the gradient is zero."""
    model(c, SQUARE, '''a () => (float[3] g, float[3] n) { t = Floor(y) q = Add(t, W) l = ReduceSum <keepdims = 0> (q)
        g = Gradient <xs = ["W"], y = "l"> (W)  n = Sub(W, g) }''', W='n')
    c.steps(lambda s, x: descend(s, np.ones(3), g=np.ones(3), y=x * s.W), x=[[1, 2, 3]])


@case('T-GRAD-9')
def of_itself(c):
    """y and x are one value: the gradient is one."""
    model(c, 'm (float x) => (float y) <float W = {2}> { y = Mul(x, W) }',
          'a () => (float g, float n) { g = Gradient <xs = ["y"], y = "y"> (y)  n = Sub(W, g) }', W='n')
    c.steps(lambda s, x: dict(g=1, W=s.W - 1, n=s.W - 1, y=x * s.W), x=[3, 4])


def refuse(name, rule, about, gradient, findings='bad-gradient', graph=SQUARE, before=''):
    def write(c):
        c.graph(graph)
        c.entry('a () => (float[3] n) { l = ReduceSum <keepdims = 0> (y) %s g = %s n = Sub(W, x) }' % (before, gradient.replace('Gradient', G)), W='n')
    write.__doc__, write.__name__, write.__module__ = about, name, __name__
    refused(rule, findings=findings)(write)


refuse('by_an_integer', 'T-GRAD-10', 'An x that is no floating-point tensor.', 'Gradient <xs = ["k"], y = "l"> (k)', before='k = Shape(x)')
refuse('too_few_inputs', 'T-GRAD-11', 'Fewer inputs than xs and zs name.', 'Gradient <xs = ["W", "x"], y = "l"> (W)')
refuse('too_many_inputs', 'T-GRAD-11', 'More inputs than xs and zs name.', 'Gradient <xs = ["W"], y = "l"> (W, x)')
refuse('y_unknown', 'T-GRAD-11', 'y names nothing.', 'Gradient <xs = ["W"], y = "nobody"> (W)')
refuse('x_unknown', 'T-GRAD-11', 'xs names nothing that exists.', 'Gradient <xs = ["nobody"], y = "l"> (W)')
refuse('z_unknown', 'T-GRAD-11', 'zs names nothing that exists.', 'Gradient <xs = ["W"], zs = ["nobody"], y = "l"> (W, x)')
refuse('y_missing', 'T-GRAD-11', 'The attribute y is required.', 'Gradient <xs = ["W"]> (W)', findings='bad-node')


@refused('T-GRAD-11', findings='bad-gradient')
def more_outputs_than_xs(c):
    """More outputs than xs has names."""
    c.graph(SQUARE)
    c.entry(f'a () => (float[3] n) {{ l = ReduceSum <keepdims = 0> (y) g, h = {G} <xs = ["W"], y = "l"> (W) n = Sub(W, g) }}', W='n')


@refused('T-GRAD-11', findings='bad-gradient')
def depends_on_itself(c):
    """y depends on the node's own output."""
    c.graph(SQUARE)
    c.entry(f'a () => (float[3] n) {{ g = {G} <xs = ["W"], y = "l"> (W)  l = Add(y, g)  n = Sub(W, g) }}', W='n')


@case('T-GRAD-12')
def short_domain(c):
    """One exporter writes Gradient in the domain ai.onnx.preview: accepted."""
    c.checked = False
    c.graph(SQUARE)
    c.entry('''a () => (float[3] n) { l = ReduceSum <keepdims = 0> (y)
        g = ai.onnx.preview.Gradient <xs = ["W"], y = "l"> (W)  n = Sub(W, g) }''', W='n')
    for o in c.model.opset_import:
        if o.domain == TRAINING:
            o.domain = 'ai.onnx.preview'
    c.steps(lambda s, x: descend(s, x, y=x * s.W), x=[[1, 2, 3]])


@case('T-GRAD-13')
def through_a_function(c):
    """y is computed by a function of the model."""
    c.graph(SQUARE + '<domain: "local", opset_import: ["" : 18]> energy (v) => (e) { q = Mul(v, v) e = ReduceSum <keepdims = 0> (q) }')
    c.entry(f'a () => (float[3] n) {{ l = local.energy(y)  g = {G} <xs = ["W"], y = "l"> (W)  n = Sub(W, g) }}', W='n')
    c.steps(lambda s, x: descend(s, 2 * x * x * s.W, y=x * s.W), x=[[1, 0.5, 0.25], [0.5, 0, -1]])


@case('T-GRAD-13')
def inside_a_function(c):
    """A Gradient node in a function names values of the function."""
    c.graph(SQUARE + f'''<domain: "local", opset_import: ["" : 18, "ai.onnx.preview.training" : 1]> slope (w, v) => (g) {{
        t = Mul(w, v) q = Mul(t, t) e = ReduceSum <keepdims = 0> (q) g = {G} <xs = ["w"], y = "e"> (w) }}''')
    c.entry('a () => (float[3] n) { g = local.slope(W, x)  n = Sub(W, g) }', W='n')
    c.steps(lambda s, x: descend(s, 2 * x * x * s.W, y=x * s.W), x=[[1, 0.5, 0.25], [0.5, 0, -1]])


@case('T-GRAD-13')
def inside_a_function_called_twice(c):
    """The same function called twice differentiates each call by itself."""
    c.graph(SQUARE + f'''<domain: "local", opset_import: ["" : 18, "ai.onnx.preview.training" : 1]> slope (w, v) => (g) {{
        t = Mul(w, v) q = Mul(t, t) e = ReduceSum <keepdims = 0> (q) g = {G} <xs = ["w"], y = "e"> (w) }}''')
    c.entry('a () => (float[3] n) { g = local.slope(W, x)  h = local.slope(x, W)  d = Add(g, h)  n = Sub(W, d) }', W='n')
    c.steps(lambda s, x: descend(s, 2 * x * x * s.W + 2 * x * s.W ** 2, y=x * s.W), x=[[1, 0.5, 0.25]])


@case('T-GRAD-13')
def inside_a_function_of_dependent_arguments(c):
    """A function differentiates by its parameter w, although the other argument was computed from the same weight."""
    c.graph(SQUARE + f'''<domain: "local", opset_import: ["" : 18, "ai.onnx.preview.training" : 1]> slope (w, v) => (g) {{
        t = Mul(w, v) q = Mul(t, t) e = ReduceSum <keepdims = 0> (q) g = {G} <xs = ["w"], y = "e"> (w) }}''')
    c.entry('a () => (float[3] n) { g = local.slope(W, y)  n = Sub(W, g) }', W='n')
    c.steps(lambda s, x: descend(s, 2 * s.W * (x * s.W) ** 2, y=x * s.W), x=[[1, 0.5, 0.25], [0.5, 0, -1]])


@case('T-GRAD-13')
def inside_a_loop(c):
    """Three steps of gradient descent inside one step: the Gradient node stands in the body of a Loop."""
    c.graph('m (float[3] x) => (float[3] y) <float[3] W = {1, -2, 0.5}> { y = Mul(x, W) }')
    c.entry(f'''a () => (float[3] n) <int64 rounds = {{3}}, bool go = {{1}}, float R = {{0.125}}> {{
        n = Loop (rounds, go, W) <body = b (int64 i, bool k, float[3] v) => (bool k1, float[3] v1) {{
            k1 = Identity(k)  p = Mul(x, v)  q = Mul(p, p)  l = ReduceSum <keepdims = 0> (q)
            g = {G} <xs = ["v"], y = "l"> (v)  d = Mul(R, g)  v1 = Sub(v, d) }}> }}''', W='n')

    def step(s, x):
        v = s.W
        for _ in range(3):
            v = v - 0.125 * 2 * x * x * v
        return dict(W=v, n=v, y=x * s.W)
    c.steps(step, x=[[1, 0.5, 0.25], [0.5, 0, -1]])


@case('T-GRAD-13')
def inside_a_branch(c):
    """A Gradient node in a branch of If names values of the branch and of the graph around it."""
    c.graph(SQUARE)
    c.entry(f'''a (bool on) => (float[3] n) {{ n = If (on) <
        then_branch = t () => (float[3] p) {{ q = Mul(y, y) l = ReduceSum <keepdims = 0> (q) g = {G} <xs = ["W"], y = "l"> (W) p = Sub(W, g) }},
        else_branch = e () => (float[3] o) {{ o = Identity(W) }}> }}''', W='n')
    c.steps(lambda s, x, on: descend(s, 2 * x * x * s.W if on else 0 * s.W, y=x * s.W),
            x=[[1, 0.5, 0.25], [1, 1, 1], [0.5, 0, -1]], on=[True, False, True])


@case('T-GRAD-13')
def through_if(c):
    """y is computed by an If: the gradient follows the branch taken."""
    c.graph(SQUARE)
    c.entry(f'''a (bool on) => (float[3] n) {{ l = If (on) <
        then_branch = t () => (float p) {{ q = Mul(y, y) p = ReduceSum <keepdims = 0> (q) }},
        else_branch = e () => (float o) {{ o = ReduceSum <keepdims = 0> (y) }}>
        g = {G} <xs = ["W"], y = "l"> (W)  n = Sub(W, g) }}''', W='n')
    c.steps(lambda s, x, on: descend(s, 2 * x * x * s.W if on else x, y=x * s.W), x=[[1, 0.5, 0.25], [1, 1, 1]], on=[True, False])


@case('T-GRAD-13')
def through_loop(c):
    """y is computed by a Loop of three rounds: W^4 x."""
    c.graph('m (float x) => (float y) <float W = {0.5}> { y = Mul(x, W) }')
    c.entry(f'''a () => (float n) <int64 rounds = {{3}}, bool go = {{1}}> {{
        l = Loop (rounds, go, y) <body = b (int64 i, bool c, float v) => (bool c1, float v1) {{ c1 = Identity(c) v1 = Mul(v, W) }}>
        g = {G} <xs = ["W"], y = "l"> (W)  n = Sub(W, g) }}''', W='n')
    c.steps(lambda s, x: dict(W=s.W - 4 * x * s.W ** 3, n=s.W - 4 * x * s.W ** 3, y=x * s.W), x=[1, 0.5])


@case('T-GRAD-13')
def through_scan(c):
    """y is computed by a Scan: a running product with W."""
    c.graph('m (float[3] x) => (float y) <float W = {0.5}> { y = Identity(W) }')
    c.entry(f'''a () => (float n) <float one = {{1}}> {{
        l, all = Scan <num_scan_inputs = 1, body = b (float v, float e) => (float v1, float o) {{ t = Mul(v, W) v1 = Add(t, e) o = Identity(v1) }}> (one, x)
        g = {G} <xs = ["W"], y = "l"> (W)  n = Sub(W, g) }}''', W='n')

    def step(s, x):
        # l = W^3 + x0 W^2 + x1 W + x2
        g = 3 * s.W ** 2 + 2 * x[0] * s.W + x[1]
        return dict(W=s.W - g, n=s.W - g, y=s.W)
    c.steps(step, x=[[0.1, 0.2, 0.3], [0.1, -0.2, 0.3]])


@case('T-GRAD-14')
def through_an_optimizer(c):
    """The way from y to x leads through a step of an optimizer: W - 0.5 x W."""
    c.graph('m (float x) => (float y) <float W = {2}> { y = Mul(x, W) }')
    c.entry(f'''a () => (float n) <float r = {{0.5}}, int64 t = {{1}}, float v = {{0}}> {{
        p, w = ai.onnx.preview.training.Momentum <alpha = 0.9, beta = 1.0, norm_coefficient = 0.0, mode = "standard"> (r, t, W, y, v)
        g = {G} <xs = ["W"], y = "p"> (W)  n = Sub(W, g) }}''', W='n')
    c.steps(lambda s, x: dict(W=s.W - 1 + 0.5 * x, n=s.W - 1 + 0.5 * x, y=x * s.W), x=[1, 0.25])
