# SPDX-License-Identifier: Apache-2.0
"""The training graph: inference graph and algorithm joined."""
import numpy as np

from .kit import case, refused

SCALE = 'm (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { h = Mul(x, W) y = Neg(h) }'
ADD = 'a () => (float[2] n) { n = Add(W, x) }'


def scale_step(s, x):
    return dict(W=s.W + x, n=s.W + x, y=-x * s.W)


@case('T-JOIN-1')
def lists_are_concatenated(c):
    """Inputs and outputs of the training graph are those of the inference graph, then those of the algorithm."""
    c.graph('m (float[2] x, float[2] u) => (float[2] y, float[2] z) <float[2] W = {1, 2}> { y = Mul(x, W) z = Add(y, u) }')
    c.entry('a (float[2] p, float[2] q) => (float[2] n, float[2] r) { r = Mul(p, q) n = Add(W, r) }', W='n')

    def step(s, x, u, p, q):
        return dict(W=s.W + p * q, n=s.W + p * q, r=p * q, y=x * s.W, z=x * s.W + u)
    c.steps(step, x=[[1, 2], [0, 1]], u=[[3, 4], [1, 1]], p=[[5, 6], [2, 2]], q=[[7, 8], [-1, -1]])


@case('T-JOIN-1')
def initializers_of_both(c):
    """Initializers of both graphs stand side by side."""
    c.graph('m (float x) => (float y) <float W = {1}, float K = {2}> { h = Mul(x, W) y = Mul(h, K) }')
    c.entry('a () => (float n) <float R = {0.5}, float L = {4}> { d = Mul(R, y) e = Mul(d, L) f = Mul(e, K) n = Sub(W, f) }', W='n')
    c.steps(lambda s, x: dict(W=s.W - 4 * x * s.W * 2, n=s.W - 4 * x * s.W * 2, y=2 * x * s.W), x=[1, 0.5])


@case('T-JOIN-2')
def reads_inputs(c):
    """The algorithm reads an input of the inference graph."""
    c.graph(SCALE)
    c.entry(ADD, W='n')
    c.steps(scale_step, x=[[1, 1], [2, 3]])


@case('T-JOIN-2')
def reads_intermediate_values(c):
    """The algorithm reads a value inside the inference graph."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n) { n = Add(W, h) }', W='n')
    c.steps(lambda s, x: dict(W=s.W + x * s.W, n=s.W + x * s.W, y=-x * s.W), x=[[1, 1], [2, 3]])


@case('T-JOIN-2')
def reads_outputs(c):
    """The algorithm reads an output of the inference graph."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n) { n = Add(W, y) }', W='n')
    c.steps(lambda s, x: dict(W=s.W - x * s.W, n=s.W - x * s.W, y=-x * s.W), x=[[1, 1], [2, 3]])


@case('T-JOIN-2')
def reads_in_a_body(c):
    """A branch inside the algorithm reads a value inside the inference graph."""
    c.graph(SCALE)
    c.entry('''a (bool up) => (float[2] n) {
        n = If (up) <then_branch = t () => (float[2] p) { p = Add(W, h) }, else_branch = e () => (float[2] q) { q = Add(W, y) }> }''', W='n')

    def step(s, x, up):
        n = s.W + x * s.W if up else s.W - x * s.W
        return dict(W=n, n=n, y=-x * s.W)
    c.steps(step, x=[[1, 1], [2, 3]], up=[True, False])


@refused('T-JOIN-3', findings=['undefined-value'])
def inference_reads_the_algorithm(c):
    """An inference node reads an initializer of the algorithm: the inference graph does not run by itself."""
    c.graph('m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, R) }')
    c.entry('a () => (float[2] n) <float[2] R = {1, 1}> { n = Add(W, R) }', W='n')


@refused('T-JOIN-3', findings=['undefined-value'])
def inference_reads_a_label(c):
    """An inference node reads an input of the algorithm."""
    c.graph('m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, label) }')
    c.entry('a (float[2] label) => (float[2] n) { n = Add(W, label) }', W='n')


def clash(name, about, text, graph=SCALE, update=None):
    def write(c):
        c.graph(graph)
        c.entry(text, update=update or {'W': 'n'})
    write.__doc__, write.__name__, write.__module__ = about, name, __name__
    refused('T-JOIN-4', findings='name-clash')(write)


clash('input_repeated', 'The algorithm repeats an input of the inference graph.', 'a (float[2] x) => (float[2] n) { n = Add(W, x) }')
clash('initializer_repeated', 'The algorithm repeats an initializer, with the same value.',
      'a () => (float[2] n) <float[2] W = {1, 2}> { n = Add(W, x) }')
clash('value_redefined', 'An algorithm node defines a value that the inference graph has.', 'a () => (float[2] n) { h = Neg(x) n = Add(W, h) }')
clash('input_named_like_a_value', 'An input of the algorithm is called like a value of the inference graph.',
      'a (float[2] h) => (float[2] n) { n = Add(W, h) }')
clash('initializer_named_like_an_input', 'An initializer of the algorithm is called like an input of the inference graph.',
      'a () => (float[2] n) <float[2] x = {1, 1}> { n = Add(W, x) }')
clash('value_named_like_an_initializer', 'An algorithm node writes to an initializer.', 'a () => (float[2] W) { W = Neg(x) }', update={'W': 'W'})


@refused('T-JOIN-4', findings='duplicate-value')
def value_defined_twice_in_the_algorithm(c):
    """Two nodes of the algorithm define one value."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n) { n = Add(W, x) n = Neg(x) }', W='n')


@refused('T-JOIN-4', findings='undefined-value')
def algorithm_reads_nothing(c):
    """The algorithm reads a value that neither graph has."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n) { n = Add(W, nobody) }', W='n')


@refused('T-JOIN-4', findings='undefined-value')
def algorithm_reads_another_entry(c):
    """An algorithm does not see the values of another one."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n, float[2] t) <float[2] S = {1, 1}> { t = Neg(S) n = Add(W, t) }', W='n')
    c.entry('b () => (float[2] k) { k = Neg(t) }')


@case('T-JOIN-5')
def output_listed_twice(c):
    """The algorithm lists an inference output among its own; it stands once in the result."""
    c.graph(SCALE)
    c.entry('a () => (float[2] y, float[2] n) { n = Add(W, x) }', W='n')
    c.steps(scale_step, x=[[1, 1], [2, 3]])


@case('T-JOIN-6')
def label(c):
    """A step is fed the inputs of both graphs."""
    c.graph(SCALE)
    c.entry('a (float[2] label) => (float[2] n) { e = Sub(y, label) n = Sub(W, e) }', W='n')
    c.steps(lambda s, x, label: dict(W=s.W - (-x * s.W - label), n=s.W - (-x * s.W - label), y=-x * s.W),
            x=[[1, 1], [2, 3]], label=[[0, 1], [1, 0]])


@case('T-JOIN-6')
def missing_label_fails(c):
    """A step without the label fails and changes nothing."""
    c.graph(SCALE)
    c.entry('a (float[2] label) => (float[2] n) { e = Sub(y, label) n = Sub(W, e) }', W='n')
    c.fail(x=[1, 1])
    c.step(lambda s, x, label: dict(W=s.W - (-x * s.W - label), n=s.W - (-x * s.W - label), y=-x * s.W), x=[1, 1], label=[0, 1])


@case('T-JOIN-6')
def inputs_with_initializers(c):
    """Inputs that have initializers need not be fed."""
    c.graph(SCALE)
    c.entry('a (float R) => (float[2] n) <float R = {0.5}> { d = Mul(R, x) n = Add(W, d) }', W='n')
    c.steps(lambda s, x: dict(W=s.W + 0.5 * x, n=s.W + 0.5 * x, y=-x * s.W), x=[[1, 1], [2, 3]])


@case('T-JOIN-6')
def batch_of_any_size(c):
    """Symbolic sizes: every step may have its own."""
    c.graph('m (float[N, 2] x) => (float[N] y) <float[2] W = {1, 2}> { y = MatMul(x, W) }')
    c.entry('a () => (float[2] n) <int64[1] z = {0}> { d = ReduceSum <keepdims = 0> (x, z) n = Add(W, d) }', W='n')
    c.steps(lambda s, x: dict(W=s.W + x.sum(0), n=s.W + x.sum(0), y=x @ s.W),
            x=[np.ones((3, 2)), np.ones((1, 2)), np.arange(8.).reshape(4, 2)])


@case('T-JOIN-7')
def functions_of_the_model(c):
    """The algorithm calls a function of the model."""
    c.graph(SCALE + '<domain: "local", opset_import: ["" : 18]> plus_twice (a, b) => (c) { d = Add(b, b) c = Add(a, d) }')
    c.entry('a () => (float[2] n) { n = local.plus_twice(W, x) }', W='n')
    c.steps(lambda s, x: dict(W=s.W + 2 * x, n=s.W + 2 * x, y=-x * s.W), x=[[1, 1], [2, 3]])


@case('T-JOIN-7')
def function_with_attributes(c):
    """A function with an attribute that the call gives, and one with a default."""
    c.graph(SCALE + '''<domain: "local", opset_import: ["" : 18]>
        descend <rate, decay: float = 0.5> (w, g) => (n) {
            r = Constant <value_float: float = @rate> ()  k = Constant <value_float: float = @decay> ()
            p = Mul(r, g)  q = Mul(k, w)  t = Sub(w, q)  n = Sub(t, p) }''')
    c.entry('''a () => (float[2] n) { m1 = local.descend <rate = 0.25> (W, x) n = local.descend <rate = 0.5, decay = 0.125> (m1, x) }''', W='n')

    def step(s, x):
        m1 = s.W - 0.5 * s.W - 0.25 * x
        n = m1 - 0.125 * m1 - 0.5 * x
        return dict(W=n, n=n, y=-x * s.W)
    c.steps(step, x=[[1, 1], [2, 3]])


@case('T-JOIN-7')
def function_calls_function(c):
    """Functions that call functions."""
    c.graph(SCALE + '''<domain: "local", opset_import: ["" : 18, "local" : 1]> four (a) => (b) { c = local.two(a) b = local.two(c) }
        <domain: "local", opset_import: ["" : 18]> two (a) => (b) { b = Add(a, a) }''')
    c.entry('a () => (float[2] n) { t = local.four(x) n = Add(W, t) }', W='n')
    c.steps(lambda s, x: dict(W=s.W + 4 * x, n=s.W + 4 * x, y=-x * s.W), x=[[1, 1], [2, 3]])


@case('T-JOIN-7')
def function_in_both_graphs(c):
    """One function, called by the inference graph and by the algorithm."""
    c.graph('''m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = local.square(x) }
        <domain: "local", opset_import: ["" : 18]> square (a) => (b) { t = Identity(a) b = Mul(t, t) }''')
    c.entry('a () => (float[2] n) { t = local.square(y) n = Add(W, t) }', W='n')
    c.steps(lambda s, x: dict(W=s.W + x ** 4, n=s.W + x ** 4, y=x * x), x=[[1, 1], [2, 0.5]])


@case('T-JOIN-7')
def function_with_optional_input(c):
    """A call that leaves out an optional input of the function hands the absence on."""
    c.graph(SCALE + '<domain: "local", opset_import: ["" : 18]> limited (a, low, high) => (b) { b = Clip(a, low, high) }')
    c.entry('a () => (float[2] n) <float top = {2}> { t = Add(W, x) n = local.limited(t, , top) }', W='n')
    c.steps(lambda s, x: dict(W=np.minimum(s.W + x, 2), n=np.minimum(s.W + x, 2), y=-x * s.W), x=[[1, 1], [-4, 3]])


@case('T-JOIN-7', findings=['unknown-operator'])
def unknown_function(c):
    """The algorithm calls a function that nobody defines."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n) { n = local.nothing(W, x) }', W='n')
    c.fail(x=[1, 1])


@case('T-JOIN-7')
def opset_of_the_model(c):
    """The algorithm is of the model's opset: in 11 the axes of ReduceSum are an attribute."""
    c.graph('m (float[3, 2] x) => (float[3] y) <float[2] W = {1, 2}> { y = MatMul(x, W) }', ir=7, opset=11)
    c.entry('a () => (float[2] n) { d = ReduceSum <axes = [0], keepdims = 0> (x) n = Add(W, d) }', W='n')
    c.steps(lambda s, x: dict(W=s.W + x.sum(0), n=s.W + x.sum(0), y=x @ s.W), x=[np.ones((3, 2)), np.arange(6.).reshape(3, 2)])


@case('T-JOIN-8')
def unneeded_inputs_need_not_be_fed(c):
    """Of the inference graph only what is asked for or bound is executed; here everything is an output, so all is needed."""
    c.graph('m (float[2] x, float[2] u) => (float[2] y) <float[2] W = {1, 2}> { unused = Neg(u) y = Mul(x, W) }')
    c.entry('a () => (float[2] n) { n = Add(W, x) }', W='n')
    c.repeat(2, lambda s, x: dict(W=s.W + x, n=s.W + x, y=x * s.W), x=[1, 1])


@case('T-JOIN-9')
def inference_mode_stays(c):
    """BatchNormalization in inference mode stays in it during a step."""
    c.graph('''m (float[2, 1] x) => (float[2, 1] y) <float[1] s = {2}, float[1] b = {1}, float[1] mean = {1}, float[1] var = {4}> {
        y = BatchNormalization (x, s, b, mean, var) }''')
    c.entry('a () => (float[1] n) { g = ReduceSum <keepdims = 0> (y) d = Sub(b, g) o = Identity(d) n = Add(o, s) }', b='n')

    def step(s, x):
        y = (x - s.mean) / np.sqrt(s.var + 1e-5) * s.s + s.b
        return dict(b=s.b - y.sum() + s.s, n=s.b - y.sum() + s.s, y=y)
    c.steps(step, x=[[[1], [3]], [[0], [-1]]])


@case('T-JOIN-9')
def training_copy_in_the_algorithm(c):
    """Training BatchNormalization: the algorithm has its own forward pass in training mode and writes the statistics back."""
    c.graph('''m (float[4, 2] x) => (float[4, 2] y) <float[2] s = {1, 2}, float[2] b = {0, 1}, float[2] mean = {0, 0}, float[2] var = {1, 1}> {
        y = BatchNormalization (x, s, b, mean, var) }''')
    c.entry('''a () => (float loss, float[2] s1, float[2] b1, float[2] mean1, float[2] var1) <float R = {0.125}> {
        t, mean1, var1 = BatchNormalization <training_mode = 1, momentum = 0.75> (x, s, b, mean, var)
        q = Mul(t, t)  loss = ReduceSum <keepdims = 0> (q)
        gs, gb = ai.onnx.preview.training.Gradient <xs = ["s", "b"], y = "loss"> (s, b)
        ds = Mul(R, gs)  s1 = Sub(s, ds)  db = Mul(R, gb)  b1 = Sub(b, db) }''', s='s1', b='b1', mean='mean1', var='var1')

    def step(s, x):
        m, v = x.mean(0), x.var(0)
        z = (x - m) / np.sqrt(v + 1e-5)
        t = z * s.s + s.b
        s1, b1 = s.s - 0.125 * (2 * t * z).sum(0), s.b - 0.125 * (2 * t).sum(0)
        m1, v1 = 0.75 * s.mean + 0.25 * m, 0.75 * s.var + 0.25 * v
        y = (x - s.mean) / np.sqrt(s.var + 1e-5) * s.s + s.b
        return dict(loss=(t * t).sum(), s=s1, s1=s1, b=b1, b1=b1, mean=m1, mean1=m1, var=v1, var1=v1, y=y)
    r = np.random.RandomState(3)
    c.steps(step, x=list(np.round(r.randn(2, 4, 2), 2)))
    c.infer(lambda s, x: dict(y=(x - s.mean) / np.sqrt(s.var + 1e-5) * s.s + s.b), x=np.ones((4, 2)))


@case('T-JOIN-9')
def dropout_without_training_mode(c):
    """Dropout without training_mode is the identity in a step, too."""
    c.graph('m (float[4] x) => (float[4] y) <float[4] W = {1, 2, 3, 4}, float ratio = {0.5}> { h = Mul(x, W) y = Dropout(h, ratio) }')
    c.entry('a () => (float[4] n) { n = Sub(W, y) }', W='n')
    c.steps(lambda s, x: dict(W=s.W - x * s.W, n=s.W - x * s.W, y=x * s.W), x=[[1, 2, 3, 4], [0, 1, 0, 1]])


@case('T-JOIN-9', 'T-RAND-2')
def dropout_in_training_mode(c):
    """Dropout in training mode: each element is dropped or doubled, so t (t - 2 x) is zero whatever is drawn."""
    c.graph('m (float[64] x) => (float[64] y) <float W = {1}> { y = Mul(x, W) }')
    c.entry('''a () => (float n, float[64] zero, bool mixed) <float ratio = {0.5}, bool on = {1}, float two = {2}, float nil = {0}> {
        t, keep = Dropout(x, ratio, on)  d = Mul(two, x)  e = Sub(t, d)  zero = Mul(t, e)
        k = Cast <to = 1> (keep)  least = ReduceMin <keepdims = 0> (k)  most = ReduceMax <keepdims = 0> (k)
        spread = Sub(most, least)  mixed = Greater(spread, nil)  n = Add(W, spread) }''', W='n')
    c.repeat(3, lambda s, x: dict(W=s.W + 1, n=s.W + 1, zero=np.zeros(64), mixed=True, y=x * s.W), x=np.arange(1., 65.))


@case('T-JOIN-9')
def dropout_with_ratio_zero(c):
    """Dropout in training mode with ratio 0 is the identity and its mask all true."""
    c.graph('m (float[4] x) => (float[4] y) <float[4] W = {1, 2, 3, 4}> { y = Mul(x, W) }')
    c.entry('''a () => (float[4] n, bool[4] keep) <float ratio = {0}, bool on = {1}> {
        t, keep = Dropout(x, ratio, on)  n = Sub(W, t) }''', W='n')
    c.steps(lambda s, x: dict(W=s.W - x, n=s.W - x, keep=[True] * 4, y=x * s.W), x=[[1, 2, 3, 4], [0, 1, 0, 1]])


@case('T-JOIN-9', 'T-RAND-2')
def dropout_gradient_uses_the_same_mask(c):
    """The gradient of dropout goes through the mask of this step: where t is 0 the gradient is 0, else 2."""
    c.graph('m (float[64] x) => (float[64] y) <float[64] W> { y = Mul(x, W) }')
    c.hold(c.model.graph, 'W', np.ones(64))
    c.entry('''a () => (float[64] zero, float[64] n) <float ratio = {0.5}, bool on = {1}, float two = {2}> {
        t = Dropout <seed = 5> (W, ratio, on)  l = ReduceSum <keepdims = 0> (t)
        g = ai.onnx.preview.training.Gradient <xs = ["W"], y = "l"> (W)
        zero = Sub(g, t)  half = Mul(zero, two)  n = Add(W, half) }''', W='n')
    c.repeat(2, lambda s, x: dict(W=s.W, n=s.W, zero=np.zeros(64), y=x * s.W), x=np.arange(64.))


@case('T-JOIN-10', findings=['not-sorted'])
def unsorted_inference_graph(c):
    """Nodes out of order in the inference graph: read by their dependence, and a checker says so."""
    c.checked = False
    c.graph('m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Neg(h) h = Mul(x, W) }')
    c.entry(ADD, W='n')
    c.steps(scale_step, x=[[1, 1], [2, 3]])


@case('T-JOIN-10', findings=['not-sorted'])
def unsorted_algorithm(c):
    """Nodes out of order in the algorithm."""
    c.checked = False
    c.graph(SCALE)
    c.entry('a () => (float[2] n) { n = Add(W, t) t = Neg(x) }', W='n')
    c.steps(lambda s, x: dict(W=s.W - x, n=s.W - x, y=-x * s.W), x=[[1, 1], [2, 3]])


@case('T-JOIN-10', findings=['not-sorted'])
def unsorted_body(c):
    """Nodes out of order in the branches of an If."""
    c.checked = False
    c.graph(SCALE)
    c.entry('''a () => (float[2] n) <float[2] zero = {0, 0}> {
        some = ReduceMax <keepdims = 0> (x)  nothing = ReduceMax <keepdims = 0> (zero)  up = Greater(some, nothing)
        n = If (up) <then_branch = t () => (float[2] p) { p = Add(W, q)  q = Neg(x) },
                     else_branch = e () => (float[2] r) { r = Sub(s, x)  s = Mul(W, x) }> }''', W='n')

    def step(s, x):
        n = s.W - x if x.max() > 0 else s.W * x - x
        return dict(W=n, n=n, y=-x * s.W)

    c.steps(step, x=[[1, 1], [-2, -3]])


@case('T-JOIN-10', findings=['not-sorted'])
def unsorted_function(c):
    """Nodes out of order in a function."""
    c.checked = False
    c.graph(SCALE + '<domain: "local", opset_import: ["" : 18]> plus_twice (a, b) => (c) { c = Add(a, d) d = Add(b, b) }')
    c.entry('a () => (float[2] n) { n = local.plus_twice(W, x) }', W='n')
    c.steps(lambda s, x: dict(W=s.W + 2 * x, n=s.W + 2 * x, y=-x * s.W), x=[[1, 1], [2, 3]])


@refused('T-JOIN-10', findings=['cycle'])
def cycle_in_the_algorithm(c):
    """Nodes that wait for each other cannot be ordered."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n) { n = Add(W, t) t = Neg(n) }', W='n')
