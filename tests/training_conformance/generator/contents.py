# SPDX-License-Identifier: Apache-2.0
"""What training graphs are made of: control flow, sequences, strings, external data, sparse constants, element types."""
import numpy as np
from onnx import TensorProto, helper

from .kit import TRAINING, case, refused

SCALE = 'm (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }'
ADD = 'a () => (float[2] n) { n = Add(W, x) }'


# Control flow and sequences.

@case('T-FILE-4')
def if_in_the_algorithm(c):
    """The step is skipped where a condition says so."""
    c.graph(SCALE)
    c.entry('''a (bool on) => (float[2] n) {
        n = If (on) <then_branch = t () => (float[2] p) { p = Add(W, x) }, else_branch = e () => (float[2] q) { q = Identity(W) }> }''', W='n')

    def step(s, x, on):
        n = s.W + x if on else s.W
        return dict(W=n, n=n, y=x * s.W)
    c.steps(step, x=[[1, 1], [2, 2], [3, 3]], on=[True, False, True])


@case('T-FILE-4')
def nested_if(c):
    """If inside If, each branch reads values of the graphs around it."""
    c.graph(SCALE)
    c.entry('''a (bool p, bool q) => (float[2] n) { twice = Add(x, x)
        n = If (p) <then_branch = t () => (float[2] r) {
            r = If (q) <then_branch = u () => (float[2] i) { i = Add(W, twice) }, else_branch = v () => (float[2] j) { j = Sub(W, y) }> },
          else_branch = e () => (float[2] k) { k = Neg(W) }> }''', W='n')

    def step(s, x, p, q):
        n = (s.W + 2 * x if q else s.W - x * s.W) if p else -s.W
        return dict(W=n, n=n, y=x * s.W)
    c.steps(step, x=[[1, 1], [2, 2], [3, 3]], p=[True, True, False], q=[True, False, True])


@case('T-FILE-4')
def loop_in_the_algorithm(c):
    """Inner iterations: a Loop whose trip count is fed."""
    c.graph(SCALE)
    c.entry('''a (int64 rounds) => (float[2] n) <bool go = {1}> {
        n = Loop (rounds, go, W) <body = b (int64 i, bool k, float[2] v) => (bool k1, float[2] v1) { k1 = Identity(k) v1 = Add(v, x) }> }''', W='n')
    c.steps(lambda s, x, rounds: dict(W=s.W + rounds * x, n=s.W + rounds * x, y=x * s.W), x=[[1, 1], [2, 2], [1, 0]], rounds=[3, 0, 1])


@case('T-FILE-4')
def loop_that_ends_early(c):
    """A Loop that ends when a condition computed inside it is false."""
    c.graph('m (float x) => (float y) <float W = {1}> { y = Mul(x, W) }')
    c.entry('''a () => (float n) <int64 most = {50}, bool go = {1}, float top = {10}> {
        n = Loop (most, go, W) <body = b (int64 i, bool k, float v) => (bool k1, float v1) { v1 = Add(v, x) k1 = Less(v1, top) }> }''', W='n')

    def step(s, x):
        v, go = float(s.W), True
        while go:
            v += float(x)
            go = v < 10
        return dict(W=v, n=v, y=x * s.W)
    c.steps(step, x=[4, 1, 2])


@case('T-FILE-4')
def loop_with_scan_outputs(c):
    """What a Loop collects."""
    c.graph('m (float x) => (float y) <float W = {1}> { y = Mul(x, W) }')
    c.entry('''a () => (float n, float[3] all) <int64 three = {3}, bool go = {1}> {
        n, all = Loop (three, go, W) <body = b (int64 i, bool k, float v) => (bool k1, float v1, float o) {
            k1 = Identity(k) v1 = Mul(v, x) o = Neg(v1) }> }''', W='n')
    c.steps(lambda s, x: dict(W=s.W * x ** 3, n=s.W * x ** 3, all=[-s.W * x, -s.W * x ** 2, -s.W * x ** 3], y=x * s.W), x=[2, 0.5])


@case('T-FILE-4')
def scan_in_the_algorithm(c):
    """A Scan over the rows of the input: online learning inside a step."""
    c.graph('m (float[N, 2] x) => (float[N] y) <float[2] W = {1, 2}> { y = MatMul(x, W) }')
    c.entry('''a () => (float[2] n, float[N] seen) <float R = {0.5}> {
        n, seen = Scan <num_scan_inputs = 1, body = b (float[2] v, float[2] row) => (float[2] v1, float e) {
            p = Mul(v, row)  e = ReduceSum <keepdims = 0> (p)  d = Mul(R, row)  v1 = Add(v, d) }> (W, x) }''', W='n')

    def step(s, x):
        v, seen = s.W, []
        for row in x:
            seen.append(v @ row)
            v = v + 0.5 * row
        return dict(W=v, n=v, seen=np.array(seen), y=x @ s.W)
    c.steps(step, x=[np.array([[1, 0], [0, 1], [1, 1]]), np.array([[2, 2]])])


@case('T-FILE-4')
def sequences_inside(c):
    """A sequence is made, changed and joined again."""
    c.graph(SCALE)
    c.entry('''a () => (float[2] n) <int64 at = {1}> {
        s0 = SequenceConstruct(W, x)  t = Neg(x)  s1 = SequenceInsert(s0, t)  last = SequenceAt(s1, at)
        all = ConcatFromSequence <axis = 0, new_axis = 1> (s1)  z = Constant <value_ints = [0]> ()
        sum = ReduceSum <keepdims = 0> (all, z)  n = Add(sum, last) }''', W='n')
    c.steps(lambda s, x: dict(W=s.W + x, n=s.W + x, y=x * s.W), x=[[1, 1], [2, 3]])


@case('T-FILE-4')
def sequence_as_input(c):
    """A step is fed a sequence of tensors."""
    c.graph(SCALE)
    c.entry('''a (seq(float[2]) parts) => (float[2] n) <int64[1] z = {0}> {
        all = ConcatFromSequence <axis = 0, new_axis = 1> (parts)  sum = ReduceSum <keepdims = 0> (all, z)  n = Add(W, sum) }''', W='n')
    for parts in ([[1, 2]], [[1, 1], [2, 2], [3, -3]]):
        c.step(lambda s, x, parts: dict(W=s.W + sum(parts), n=s.W + sum(parts), y=x * s.W), x=[1, 1],
               parts=[np.array(p, np.float32) for p in parts])


@case('T-FILE-4')
def sequence_as_output(c):
    """A step gives a sequence of tensors."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n, seq(float[2]) parts) { n = Add(W, x)  parts = SequenceConstruct(x, n) }', W='n')
    c.steps(lambda s, x: dict(W=s.W + x, n=s.W + x, parts=[x, s.W + x], y=x * s.W), x=[[1, 1], [2, 3]])


@case('T-FILE-4')
def strings_as_constants(c):
    """Tensors of strings are constants of the algorithm: a label by its name."""
    c.graph(SCALE, opset=19)
    info = c.entry('''a (string[2] label) => (float[2] n) { same = Equal(label, wanted)  f = Cast <to = 1> (same)  n = Add(W, f) }''', W='n')
    c.hold(info.algorithm, 'wanted', ['cat', 'dog'], TensorProto.STRING)
    for label in (['cat', 'cat'], ['dog', 'dog'], ['cat', 'dog']):
        f = np.array([label[0] == 'cat', label[1] == 'dog'], float)
        c.step(lambda s, x, label, f=f: dict(W=s.W + f, n=s.W + f, y=x * s.W), x=[1, 1], label=np.array(label, object))


@case('T-FILE-4')
def strings_as_attributes(c):
    """Strings in Constant nodes of the algorithm."""
    c.graph(SCALE, opset=19)
    c.entry('''a (int64 index) => (float[2] n) { names = Constant <value_strings = ["minus", "plus"]> ()
        name = Gather(names, index)  plus = Constant <value_string = "plus"> ()  is = Equal(name, plus)
        n = If (is) <then_branch = t () => (float[2] p) { p = Add(W, x) }, else_branch = e () => (float[2] q) { q = Sub(W, x) }> }''', W='n')

    def step(s, x, index):
        n = s.W + x if index == 1 else s.W - x
        return dict(W=n, n=n, y=x * s.W)
    c.steps(step, x=[[1, 1], [2, 3]], index=[1, 0])


@case('T-FILE-4')
def optional_inside(c):
    """An optional value inside the algorithm."""
    c.graph(SCALE)
    c.entry('''a () => (float[2] n) { o = Optional(x)  has = OptionalHasElement(o)  v = OptionalGetElement(o)
        f = Cast <to = 1> (has)  p = Mul(f, v)  n = Add(W, p) }''', W='n')
    c.steps(lambda s, x: dict(W=s.W + x, n=s.W + x, y=x * s.W), x=[[1, 1], [2, 3]])


@case('T-FILE-4')
def data_dependent_shapes(c):
    """Shapes that only data can tell: the mean over the positive elements."""
    c.graph('m (float[5] x) => (float[5] y) <float W = {0}> { y = Add(x, W) }')
    c.entry('''a () => (float n) <float nil = {0}> { p = Greater(x, nil)  k = Compress(x, p)
        mean = ReduceMean <keepdims = 0> (k)  n = Add(W, mean) }''', W='n')
    c.steps(lambda s, x: dict(W=s.W + x[x > 0].mean(), n=s.W + x[x > 0].mean(), y=x + s.W), x=[[1, -1, 2, 3, -9], [1, -2, -3, -4, -5]])


# Where tensors are kept.

@case('T-FILE-2')
def external_data_in_the_model(c):
    """A weight of the inference graph lies in a file beside the model."""
    c.graph(SCALE)
    c.entry(ADD, W='n')
    c.externalise(c.model.graph.initializer[0], 'weights.bin')
    c.steps(lambda s, x: dict(W=s.W + x, n=s.W + x, y=x * s.W), x=[[1, 1], [2, 3]])


@case('T-FILE-2')
def external_data_in_the_algorithm(c):
    """State of the optimizer lies in a file beside the model, which onnx's own loader never visits."""
    c.graph(SCALE)
    info = c.entry('a () => (float[2] n, float[2] s1) <float[2] S = {5, 6}, float[2] K = {0.5, 0.25}> { k = Mul(K, x) n = Add(W, S) s1 = Add(S, k) }',
                   W='n', S='s1')
    c.externalise(info.algorithm.initializer[0], 'state.bin')
    c.externalise(info.algorithm.initializer[1], 'state.bin', offset=64)

    def step(s, x):
        k = np.array([0.5, 0.25]) * x
        return dict(W=s.W + s.S, n=s.W + s.S, S=s.S + k, s1=s.S + k, y=x * s.W)
    c.step(step, x=[1, 1])
    c.reload()
    c.step(step, x=[2, 3])


@case('T-FILE-2')
def external_data_in_the_initialization(c):
    """The start value lies in a file beside the model."""
    c.graph(SCALE)
    info = c.entry(ADD, W='n', init='i () => (float[2] w) <float[2] w = {7, 8}> {}', start={'W': 'w'})
    c.externalise(info.initialization.initializer[0], 'start.bin')
    c.initialize(W=[7, 8])
    c.step(lambda s, x: dict(W=s.W + x, n=s.W + x, y=x * s.W), x=[1, 1])


@refused('T-FILE-2', findings='missing-data')
def external_data_absent(c):
    """The file of a training tensor does not exist: training is refused, inference is not."""
    c.graph(SCALE)
    info = c.entry('a () => (float[2] n) <float[2] K = {0.5, 0.25}> { k = Mul(K, x) n = Add(W, k) }', W='n')
    c.infer(lambda s, x: dict(y=x * s.W), x=[3, 4])
    c.externalise(info.algorithm.initializer[0], 'absent.bin')
    c.files.clear()


@case('T-FILE-1')
def all_else_is_kept(c):
    """What no binding names is the same after a reload: constants, functions, attributes, a default of an input."""
    c.graph('''m (float[2] x, float[2] D) => (float[2] y) <float[2] W = {1, 2}, float[2] K = {3, 4}, float[2] D = {5, 6}> {
        h = Mul(x, W) t = local.twice(h) u = Add(t, K) v = LeakyRelu <alpha = 0.25> (u) y = Add(v, D) }
        <domain: "local", opset_import: ["" : 18]> twice (v) => (w) { w = Add(v, v) }''')
    c.model.doc_string = 'kept'
    c.model.metadata_props.add(key='author', value='kit')
    c.entry('a () => (float[2] n) <float[2] R = {0.5, 0.25}> { d = Mul(R, x) n = Add(W, d) }', W='n')

    def forward(s, x):
        u = 2 * x * s.W + s.K
        return np.where(u < 0, 0.25 * u, u) + s.D

    def step(s, x):
        return dict(W=s.W + s.R * x, n=s.W + s.R * x, y=forward(s, x))
    c.step(step, x=[1, -9])
    c.reload()
    c.step(step, x=[-7, 2])
    c.reload()
    c.infer(lambda s, x: dict(y=forward(s, x)), x=[-7, 2])


@refused('T-FILE-6', findings='damaged-training')
def damaged_training_infers(c):
    """training_info holds bytes that are no message: inference does not need them."""
    c.graph(SCALE)
    c.infer(lambda s, x: dict(y=x * s.W), x=[3, 4])
    c.tail = b'\xa2\x01\x05\x0a\x7f\xff\xff\xff'  # field 20 of five bytes, whose first field claims 127


@refused('T-FILE-6', findings=['unknown-key', 'undefined-value'])
def broken_training_infers(c):
    """training_info breaks the rules: inference works all the same."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n) { n = Add(nobody, x) }', Q='n')
    c.infer(lambda s, x: dict(y=x * s.W), x=[3, 4])


def sparse(name, values, indices, dims):
    return helper.make_sparse_tensor(helper.make_tensor(name, TensorProto.FLOAT, [len(values)], values),
                                     helper.make_tensor(name + '_at', TensorProto.INT64, np.shape(indices), np.ravel(indices)), dims)


@case('T-FILE-3')
def sparse_constant_of_the_model(c):
    """A sparse initializer of the inference graph is a constant."""
    c.graph('m (float[4] x) => (float[4] y) <float[4] W = {1, 2, 3, 4}> { h = Mul(x, M) y = Mul(h, W) }')
    c.model.graph.sparse_initializer.append(sparse('M', [1.0, 2.0], [1, 3], [4]))
    c.entry('a () => (float[4] n) { n = Add(W, y) }', W='n')
    m = np.array([0, 1, 0, 2.])
    c.steps(lambda s, x: dict(W=s.W + x * m * s.W, n=s.W + x * m * s.W, y=x * m * s.W), x=[[1, 1, 1, 1], [1, 2, 3, 4]])


@case('T-FILE-3')
def sparse_constant_of_the_algorithm(c):
    """A sparse initializer of the algorithm: a mask of what is trained, indices as pairs."""
    c.graph('m (float[2, 2] x) => (float[2, 2] y) <float[2, 2] W = {1, 2, 3, 4}> { y = Mul(x, W) }')
    info = c.entry('a () => (float[2, 2] n) { d = Mul(mask, x) n = Add(W, d) }', W='n')
    info.algorithm.sparse_initializer.append(sparse('mask', [1.0, 0.5], [[0, 1], [1, 0]], [2, 2]))
    m = np.array([[0, 1], [0.5, 0]])
    c.steps(lambda s, x: dict(W=s.W + m * x, n=s.W + m * x, y=x * s.W), x=[np.ones((2, 2)), [[1, 2], [3, 4]]])


@case('T-FILE-3')
def sparse_constant_node(c):
    """A Constant node with a sparse value in the algorithm."""
    c.graph('m (float[4] x) => (float[4] y) <float[4] W = {1, 2, 3, 4}> { y = Mul(x, W) }')
    info = c.entry('a () => (float[4] n) { d = Mul(mask, x) n = Add(W, d) }', W='n')
    info.algorithm.node.insert(0, helper.make_node('Constant', [], ['mask'], sparse_value=sparse('mask', [3.0], [2], [4])))
    m = np.array([0, 0, 3., 0])
    c.steps(lambda s, x: dict(W=s.W + m * x, n=s.W + m * x, y=x * s.W), x=[[1, 1, 1, 1], [1, 2, 3, 4]])


@case('T-FILE-5')
def typed_data_fields(c):
    """Values in float_data and int64_data instead of raw_data."""
    c.graph('m (float[2] x) => (float[2] y) <float[2] W> { y = Mul(x, W) }')
    g = c.model.graph
    del g.initializer[:]
    g.initializer.append(helper.make_tensor('W', TensorProto.FLOAT, [2], [1.5, 2.5]))
    info = c.entry('a () => (float[2] n, int64 t1) <int64 T, int64 one = {1}> { n = Add(W, x) t1 = Add(T, one) }', W='n', T='t1')
    for t in list(info.algorithm.initializer):
        if t.name == 'T':
            t.CopyFrom(helper.make_tensor('T', TensorProto.INT64, [], [41]))
    if 'T' not in [t.name for t in info.algorithm.initializer]:
        info.algorithm.initializer.append(helper.make_tensor('T', TensorProto.INT64, [], [41]))
    c.step(lambda s, x: dict(W=s.W + x, n=s.W + x, T=s.T + 1, t1=s.T + 1, y=x * s.W), x=[1, 1])
    c.reload()
    c.step(lambda s, x: dict(W=s.W + x, n=s.W + x, T=s.T + 1, t1=s.T + 1, y=x * s.W), x=[1, 1])


@case('T-FILE-5')
def empty_and_scalar_variables(c):
    """A scalar, a tensor of one element and an empty one are three different things."""
    c.graph('m (float x) => (float y) <float A = {1}, float[1] B = {2}, float[0, 2] E> { y = Add(x, A) }')
    c.hold(c.model.graph, 'E', np.zeros((0, 2)))
    c.entry('a () => (float a1, float[1] b1, float[0, 2] e1) { a1 = Add(A, x) b1 = Mul(B, x) e1 = Mul(E, x) }', A='a1', B='b1', E='e1')
    c.repeat(2, lambda s, x: dict(A=s.A + x, a1=s.A + x, B=s.B * x, b1=s.B * x, e1=np.zeros((0, 2)), y=x + s.A), x=2)


# Element types of variables.

def of_type(type, elem, rule='T-TYPE-1', opset=18, ir=10):
    def write(c):
        c.graph(f'm ({type}[3] x) => ({type}[3] y) <{type}[3] W> {{ y = Add(x, W) }}', opset=opset, ir=ir)
        c.hold(c.model.graph, 'W', [1, 2, 4], elem)
        c.entry(f'a () => ({type}[3] n) {{ n = Add(W, x) }}', W='n')
        c.step(lambda s, x: dict(W=s.W + x, n=s.W + x, y=x + s.W), x=[1, 0, 2])
        c.reload()
        c.step(lambda s, x: dict(W=s.W + x, n=s.W + x, y=x + s.W), x=[4, 2, 1])
    write.__doc__, write.__name__, write.__module__ = f'Variables of {type}.', f'variable_{type}', __name__
    case(rule)(write)


of_type('float', TensorProto.FLOAT)
of_type('double', TensorProto.DOUBLE)
of_type('float16', TensorProto.FLOAT16)
of_type('bfloat16', TensorProto.BFLOAT16)
of_type('int32', TensorProto.INT32, 'T-TYPE-2')
of_type('int64', TensorProto.INT64, 'T-TYPE-2')
of_type('uint8', TensorProto.UINT8, 'T-TYPE-2')
of_type('int8', TensorProto.INT8, 'T-TYPE-2')
of_type('int16', TensorProto.INT16, 'T-TYPE-2')
of_type('uint64', TensorProto.UINT64, 'T-TYPE-2')


@case('T-TYPE-2')
def variable_bool(c):
    """A boolean variable: a switch that turns with each step."""
    c.graph('m (float x) => (float y) <bool B = {1}, float W = {1}> { y = Identity(x) }')
    c.entry('a () => (bool b1, float n) { b1 = Not(B) d = Neg(x) m0 = Where(B, x, d) n = Add(W, m0) }', B='b1', W='n')
    c.repeat(3, lambda s, x: dict(B=not s.B, b1=not s.B, W=s.W + (x if s.B else -x), n=s.W + (x if s.B else -x), y=x), x=2)


@case('T-TYPE-2')
def integers_beyond_double(c):
    """Integers are exact, also those that a double cannot hold."""
    c.graph('m (int64 x) => (int64 y) <int64 W> { y = Identity(x) }')
    c.hold(c.model.graph, 'W', np.int64(2 ** 62 + 1), TensorProto.INT64)
    c.entry('a () => (int64 n) { n = Add(W, x) }', W='n')
    c.steps(lambda s, x: dict(W=s.W + x, n=s.W + x, y=x), x=[np.int64(1), np.int64(3)])
    c.reload()


@case('T-TYPE-1')
def master_weights(c):
    """The model computes in float16, its master weights are float: the algorithm casts."""
    c.graph('m (float16[3] x) => (float16[3] y) <float[3] W = {1, 2, 4}> { w = Cast <to = 10> (W) y = Mul(x, w) }')
    c.entry(f'''a () => (float[3] n) <float R = {{0.0009765625}}> {{ l = ReduceSum <keepdims = 0> (y)
        g = {TRAINING}.Gradient <xs = ["W"], y = "l"> (W)  d = Mul(R, g)  n = Sub(W, d) }}''', W='n')
    # Steps of 2^-11 are lost in float16 at 4, not in float.
    c.tolerance = (1e-3, 1e-6)
    c.repeat(4, lambda s, x: dict(W=s.W - x / 1024, n=s.W - x / 1024, y=x * s.W.astype(np.float16)), x=[0.5, 1, 0.25])
