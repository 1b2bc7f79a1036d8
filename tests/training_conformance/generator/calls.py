# SPDX-License-Identifier: Apache-2.0
"""Files of ONNX 1.7, whose algorithm calls the inference graph through GraphCall instead of being joined with it."""
from .kit import TRAINING, case, refused

CALL = f'{TRAINING}.GraphCall <graph_name = "m">'
SCALE = 'm (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { h = Mul(x, W) y = Neg(h) }'


def model(c, algorithm, graph=SCALE, **updates):
    c.checked = False
    c.graph(graph, ir=7, opset=12)
    return c.entry(algorithm.replace('CALL', CALL), **updates)


@case('T-CALL-1')
def call_is_inlined(c):
    """The call stands for the nodes of the inference graph; its inputs are bound by position."""
    model(c, 'a (float[2] v) => (float[2] n) { p = CALL (v) n = Add(W, p) }', W='n')
    c.steps(lambda s, v: dict(W=s.W - v * s.W, n=s.W - v * s.W), v=[[1, 1], [2, 3]])


@case('T-CALL-1')
def gradient_through_a_call(c):
    """A Gradient of what the call computes."""
    model(c, f'''a (float[2] v, float[2] label) => (float loss, float[2] n) {{ p = CALL (v) e = Sub(p, label) q = Mul(e, e)
        loss = ReduceSum <keepdims = 0> (q)  g = {TRAINING}.Gradient <xs = ["W"], y = "loss"> (W)  n = Sub(W, g) }}''', W='n')

    def step(s, v, label):
        e = -v * s.W - label
        return dict(loss=(e * e).sum(), W=s.W + 2 * e * v, n=s.W + 2 * e * v)
    c.steps(step, v=[[0.5, 0.25], [0.1, -0.5]], label=[[0, 1], [1, 0]])


@case('T-CALL-1')
def nothing_else_is_joined(c):
    """The step's inputs and outputs are those of the algorithm alone."""
    model(c, 'a (float[2] v) => (float[2] n, float[2] p) { p = CALL (v) n = Add(W, v) }', W='n')
    c.steps(lambda s, v: dict(W=s.W + v, n=s.W + v, p=-v * s.W), v=[[1, 1], [2, 3]])


@case('T-CALL-2')
def own_name(c):
    """graph_name is the name of the model's graph."""
    model(c, f'a (float[2] v) => (float[2] n) {{ p = {TRAINING}.GraphCall <graph_name = "net"> (v) n = Add(W, p) }}',
          graph=SCALE.replace('m (', 'net (', 1), W='n')
    c.steps(lambda s, v: dict(W=s.W - v * s.W, n=s.W - v * s.W), v=[[1, 1]])


@refused('T-CALL-2', findings='cannot-combine')
def another_graph(c):
    """graph_name names a graph that the model does not have."""
    model(c, f'a (float[2] v) => (float[2] n) {{ p = {TRAINING}.GraphCall <graph_name = "other"> (v) n = Add(W, p) }}', W='n')


@case('T-CALL-3')
def omitted_input(c):
    """An input that has an initializer may be left out: it is the variable of that name."""
    model(c, 'a (float[2] v) => (float[2] n) { p = CALL (v, ) n = Add(W, p) }',
          graph='m (float[2] x, float[2] W) => (float[2] y) <float[2] W = {1, 2}> { h = Mul(x, W) y = Neg(h) }', W='n')
    c.steps(lambda s, v: dict(W=s.W - v * s.W, n=s.W - v * s.W), v=[[1, 1], [2, 3]])


@case('T-CALL-3')
def given_input(c):
    """An input that has an initializer may be given: then it is what is given."""
    model(c, 'a (float[2] v, float[2] u) => (float[2] n) { p = CALL (v, u) n = Add(W, p) }',
          graph='m (float[2] x, float[2] W) => (float[2] y) <float[2] W = {1, 2}> { h = Mul(x, W) y = Neg(h) }', W='n')
    c.steps(lambda s, v, u: dict(W=s.W - v * u, n=s.W - v * u), v=[[1, 1], [2, 3]], u=[[5, 5], [1, 2]])


@case('T-CALL-4')
def names_are_apart(c):
    """The algorithm uses names of the inference graph for values of its own."""
    model(c, 'a (float[2] x) => (float[2] y) { h = Add(x, x) t = CALL (h) y = Add(W, t) }', W='y')
    c.steps(lambda s, x: dict(W=s.W - 2 * x * s.W, y=s.W - 2 * x * s.W), x=[[0.5, 0.25], [1, 0]])


@case('T-CALL-4')
def called_twice(c):
    """Two calls with different inputs."""
    model(c, 'a (float[2] v, float[2] u) => (float[2] n) { p = CALL (v) q = CALL (u) d = Sub(p, q) n = Add(W, d) }', W='n')
    c.steps(lambda s, v, u: dict(W=s.W + (u - v) * s.W, n=s.W + (u - v) * s.W), v=[[1, 1], [2, 3]], u=[[0.5, 0.5], [2, 2]])


@case('T-CALL-4')
def call_of_a_call(c):
    """The result of one call is the input of another."""
    model(c, 'a (float[2] v) => (float[2] n) { p = CALL (v) q = CALL (p) n = Add(W, q) }', W='n')
    c.steps(lambda s, v: dict(W=s.W + v * s.W ** 2, n=s.W + v * s.W ** 2), v=[[1, 1], [0.5, 0.25]])


@refused('T-CALL-5', findings='name-clash')
def variable_redefined(c):
    """Variables are common to both graphs: their names may not be defined again."""
    model(c, 'a (float[2] v) => (float[2] n) { p = CALL (v) W = Neg(v) n = Add(W, p) }', W='n')


@case('T-CALL-1')
def two_entries_call(c):
    """Each entry calls the graph for itself."""
    model(c, 'a (float[2] v) => (float[2] n) { p = CALL (v) n = Add(W, p) }', graph='m (float[2] x) => (float[2] y) <float[2] W = {1, 2}, float[2] B = {0, 0}> { h = Mul(x, W) y = Add(h, B) }', W='n')
    c.entry(f'b (float[2] u) => (float[2] k) {{ p = {CALL} (u) k = Sub(B, p) }}', B='k')

    def step(s, v, u):
        w = s.W + v * s.W + s.B
        b = s.B - (u * w + s.B)
        return dict(W=w, n=w, B=b, k=b)
    c.steps(step, v=[[1, 1], [0.5, 0.25]], u=[[1, 2], [0, 1]])
