# SPDX-License-Identifier: Apache-2.0
"""Bindings: keys, values, snapshot, and what is refused of them."""
import numpy as np
from onnx import TensorProto, helper

from .kit import case, refused

SCALE = 'm (float[2] x) => (float[2] y) <float[2] W = {1, 2}, float[2] B = {0, 0}> { h = Mul(x, W) y = Add(h, B) }'
ADD = 'a () => (float[2] n) { n = Add(W, x) }'


def scale(s, x):
    return x * s.W + s.B


@case('T-STEP-1')
def swap(c):
    """A from B and B from A exchanges the two: values are computed from the state before the step."""
    c.graph('m (float x) => (float y) <float A = {1}, float B = {2}> { y = Sub(A, B) }')
    c.entry('a () => (float a1, float b1) { a1 = Identity(B) b1 = Identity(A) }', A='a1', B='b1')
    c.repeat(3, lambda s, x: dict(A=s.B, B=s.A, a1=s.B, b1=s.A, y=s.A - s.B), x=0)


@case('T-STEP-1')
def rotate_three(c):
    """Three variables in a ring."""
    c.graph('m (float x) => (float y) <float A = {1}, float B = {2}, float C = {3}> { y = Add(A, x) }')
    c.entry('a () => (float a1, float b1, float c1) { a1 = Identity(B) b1 = Identity(C) c1 = Add(A, x) }', A='a1', B='b1', C='c1')
    c.repeat(4, lambda s, x: dict(A=s.B, a1=s.B, B=s.C, b1=s.C, C=s.A + x, c1=s.A + x, y=s.A + x), x=10)


@case('T-STEP-1')
def swap_by_initializers_as_outputs(c):
    """A variable itself may be an output and so a value: B from A without any node."""
    c.graph('m (float x) => (float y) <float A = {1}, float B = {2}> { y = Identity(x) }')
    info = c.entry('a () => (float a1) { a1 = Identity(B) }', A='a1', B='A')
    info.algorithm.output.append(helper.make_tensor_value_info('A', TensorProto.FLOAT, []))
    # Output A is the value before the step.
    c.start()
    for a, b in ((1, 2), (2, 1), (1, 2)):
        c.actions.append('step')
        c.data.append((dict(x=0), dict(y=0, a1=b, A=a)))
        c.state = dict(A=b, B=a)
        c.states.append(c.state)


@case('T-STEP-1')
def order_of_bindings_is_nothing(c):
    """The order of the bindings does not matter."""
    c.graph('m (float x) => (float y) <float A = {1}, float B = {2}> { y = Identity(x) }')
    c.entry('a () => (float a1, float b1) { a1 = Add(A, B) b1 = Mul(A, B) }', update=[('B', 'b1'), ('A', 'a1')])
    c.repeat(3, lambda s, x: dict(A=s.A + s.B, a1=s.A + s.B, B=s.A * s.B, b1=s.A * s.B, y=x), x=0)


@case('T-BIND-3')
def variable_of_the_model(c):
    """A key may be an initializer of the inference graph."""
    c.graph(SCALE)
    c.entry(ADD, W='n')
    c.steps(lambda s, x: dict(W=s.W + x, n=s.W + x, y=scale(s, x)), x=[[1, 1], [2, 3]])


@case('T-BIND-3')
def variable_of_the_algorithm(c):
    """A key may be an initializer of the algorithm: its state is kept between steps."""
    c.graph(SCALE)
    c.entry('a () => (float[2] s1) <float[2] S = {3, 4}> { s1 = Add(S, x) }', S='s1')
    c.steps(lambda s, x: dict(S=s.S + x, s1=s.S + x, y=scale(s, x)), x=[[1, 1], [2, 3]])


@case('T-BIND-3')
def variable_of_another_algorithm(c):
    """A key of update_binding may be an initializer of another entry's algorithm."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n) <float[2] S = {3, 4}> { n = Add(W, S) }', W='n')
    c.entry('b () => (float[2] k) { k = Neg(x) }', S='k')
    c.steps(lambda s, x: dict(W=s.W + s.S, n=s.W + s.S, S=-x, k=-x, y=x * (s.W + s.S)), x=[[1, 1], [2, 3]])


@case('T-BIND-3', 'T-TYPE-2')
def integer_counter(c):
    """An int64 counter is a variable like any other."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n, int64 t1) <int64 T = {5}, int64 one = {1}> { n = Add(W, x) t1 = Add(T, one) }', W='n', T='t1')
    c.repeat(3, lambda s, x: dict(W=s.W + x, n=s.W + x, T=s.T + 1, t1=s.T + 1, y=scale(s, x)), x=[1, 0])


@case('T-BIND-4')
def value_of_the_inference_graph(c):
    """A value of update_binding may be an output of the inference graph."""
    c.graph(SCALE)
    c.entry(W='y')
    c.steps(lambda s, x: dict(W=scale(s, x), y=scale(s, x)), x=[[2, 2], [0.5, -1]])


@case('T-BIND-4', 'T-JOIN-9')
def running_statistics(c):
    """BatchNormalization in training mode inside the inference graph: its running statistics are written back."""
    c.graph('''m (float[2, 1] x) => (float[2, 1] y, float[1] mean1, float[1] var1)
        <float[1] s = {2}, float[1] b = {1}, float[1] mean = {0}, float[1] var = {1}> {
        y, mean1, var1 = BatchNormalization <training_mode = 1, momentum = 0.5> (x, s, b, mean, var) }''')
    c.entry(mean='mean1', var='var1')

    def step(s, x):
        m, v = x.mean(), x.var()
        y = (x - m) / np.sqrt(v + 1e-5) * s.s + s.b
        return dict(mean=0.5 * s.mean + 0.5 * m, mean1=0.5 * s.mean + 0.5 * m, var=0.5 * s.var + 0.5 * v, var1=0.5 * s.var + 0.5 * v, y=y)
    c.steps(step, x=[[[2], [6]], [[-1], [1]]])


@case('T-BIND-4')
def one_value_for_two_variables(c):
    """One output may be assigned to two variables, which are independent of each other afterwards."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n, float[2] s1) <float[2] S = {3, 4}> { n = Add(W, x) s1 = Add(S, x) }', update={'W': 'n', 'B': 'n', 'S': 's1'})
    c.steps(lambda s, x: dict(W=s.W + x, n=s.W + x, B=s.W + x, S=s.S + x, s1=s.S + x, y=scale(s, x)), x=[[1, 1], [2, 3]])


@case('T-BIND-4')
def algorithm_output_of_an_inference_value(c):
    """The algorithm lists a value inside the inference graph among its own outputs, and binds it."""
    c.graph(SCALE)
    c.entry('a () => (float[2] h) {}', B='h')
    c.steps(lambda s, x: dict(B=x * s.W, h=x * s.W, y=scale(s, x)), x=[[1, 1], [2, 3]])


@case('T-BIND-4')
def input_as_value(c):
    """An input of the algorithm that is an output of it, too: the variable takes what is fed."""
    c.graph(SCALE)
    c.entry('a (float[2] fresh) => (float[2] fresh) {}', B='fresh')
    c.steps(lambda s, x, fresh: dict(B=fresh, fresh=fresh, y=scale(s, x)), x=[[1, 1], [1, 1]], fresh=[[5, 6], [7, 8]])


@case('T-BIND-13')
def unbound_is_constant(c):
    """What no binding names never changes, in the model or in the algorithm."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n) <float[2] K = {10, 20}> { k2 = Add(K, B) n = Add(W, k2) }', W='n')
    c.repeat(2, lambda s, x: dict(W=s.W + s.K, n=s.W + s.K, y=scale(s, x)), x=[1, 1])
    c.initialize(W=[1, 2])


@case('T-BIND-12')
def equal_constants_of_two_algorithms(c):
    """Two algorithms may hold initializers of one name if these are equal and never assigned."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n) <float R = {0.5}> { d = Mul(R, x) n = Add(W, d) }', W='n')
    c.entry('b () => (float[2] k) <float R = {0.5}> { d = Mul(R, x) k = Sub(B, d) }', B='k')
    c.steps(lambda s, x: dict(W=s.W + 0.5 * x, n=s.W + 0.5 * x, B=s.B - 0.5 * x, k=s.B - 0.5 * x, y=x * (s.W + 0.5 * x) + s.B),
            x=[[1, 1], [2, 3]])


@case('T-JOIN-4')
def algorithms_share_names(c):
    """Values inside two algorithms may have the same names: each training graph is one of its own."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n) { t = Add(x, x) n = Add(W, t) }', W='n')
    c.entry('b () => (float[2] k) { t = Neg(x) k = Add(B, t) }', B='k')
    c.steps(lambda s, x: dict(W=s.W + 2 * x, n=s.W + 2 * x, B=s.B - x, k=s.B - x, y=x * (s.W + 2 * x) + s.B), x=[[1, 1], [2, 3]])


@case('T-BIND-14')
def variable_listed_as_input(c):
    """IR version 3 lists weights among the inputs: the variable is not fed, feeding it fails."""
    c.graph('m (float[2] x, float[2] W) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }', ir=7, opset=14)
    c.entry(ADD, W='n')
    c.step(lambda s, x: dict(W=s.W + x, n=s.W + x, y=x * s.W), x=[1, 1])
    c.fail(x=[1, 1], W=[5, 5])
    c.step(lambda s, x: dict(W=s.W + x, n=s.W + x, y=x * s.W), x=[1, 1])


@case('T-BIND-14')
def constant_listed_as_input(c):
    """A constant that is listed as an input need not be fed either."""
    c.graph('m (float[2] x, float[2] K) => (float[2] y) <float[2] W = {1, 2}, float[2] K = {3, 3}> { h = Mul(x, W) y = Add(h, K) }', ir=7, opset=14)
    c.entry(ADD, W='n')
    c.repeat(2, lambda s, x: dict(W=s.W + x, n=s.W + x, y=x * s.W + s.K), x=[1, 1])


# What is refused.

def refuse(rule, name, finding, about, entries, graph=SCALE):
    def write(c):
        c.graph(graph)
        for text, update in entries:
            c.entry(text, update=update)
    write.__doc__, write.__name__, write.__module__ = about, name, __name__
    refused(rule, findings=finding)(write)


refuse('T-BIND-1', 'updated_twice_in_one_entry', 'duplicate-key', 'One entry assigns a variable twice.', [(ADD, [('W', 'n'), ('W', 'n')])])
refuse('T-BIND-1', 'updated_by_two_entries', 'duplicate-key', 'Two entries assign one variable.',
       [(ADD, {'W': 'n'}), ('b () => (float[2] k) { k = Sub(W, x) }', {'W': 'k'})])
refuse('T-BIND-3', 'key_unknown', 'unknown-key', 'A key that nothing is called.', [(ADD, {'Q': 'n'})])
refuse('T-BIND-3', 'key_is_an_input', 'unknown-key', 'A key that names an input.', [(ADD, {'x': 'n'})])
refuse('T-BIND-3', 'key_is_a_value', 'unknown-key', 'A key that names a value of the inference graph.', [(ADD, {'h': 'n'})])
refuse('T-BIND-3', 'key_is_empty', 'unknown-key', 'A key without a name.', [(ADD, {'': 'n'})])
refuse('T-BIND-5', 'value_unknown', 'unknown-value', 'A value that nothing is called.', [(ADD, {'W': 'q'})])
refuse('T-BIND-5', 'value_inside_the_algorithm', 'unknown-value', 'A value inside the algorithm that is no output of it.',
       [('a () => (float[2] n) { t = Add(W, x) n = Neg(t) }', {'W': 't'})])
refuse('T-BIND-5', 'value_inside_the_inference_graph', 'unknown-value', 'A value inside the inference graph that is no output.', [(ADD, {'W': 'h'})])
refuse('T-BIND-5', 'value_is_an_input', 'unknown-value', 'A value that names an input.', [(ADD, {'W': 'x'})])
refuse('T-BIND-9', 'other_type', 'type-mismatch', 'The value is double, the variable float.',
       [('a () => (double[2] n) { n = Cast <to = 11> (x) }', {'W': 'n'})])
refuse('T-BIND-9', 'other_rank', 'type-mismatch', 'The value has another rank.',
       [('a () => (float[1, 2] n) <int64[1] z = {0}> { n = Unsqueeze(x, z) }', {'W': 'n'})])
refuse('T-BIND-9', 'other_size', 'type-mismatch', 'The value has another number of elements.',
       [('a () => (float[4] n) { n = Concat <axis = 0> (x, x) }', {'W': 'n'})])
refuse('T-BIND-9', 'scalar_is_not_one_element', 'type-mismatch', 'A scalar and a tensor of one element are two shapes.',
       [('a () => (float n) { n = ReduceSum <keepdims = 0> (x) }', {'U': 'n'})],
       'm (float[2] x) => (float[2] y) <float[1] U = {1}> { y = Mul(x, U) }')
refuse('T-BIND-12', 'equal_variables_of_two_algorithms', 'ambiguous-initializer', 'Two algorithms hold a variable of one name.',
       [('a () => (float[2] s1) <float[2] S = {3, 4}> { s1 = Add(S, x) }', {'S': 's1'}),
        ('b () => (float[2] k) <float[2] S = {3, 4}> { k = Add(S, B) }', {'B': 'k'})])
refuse('T-BIND-12', 'different_constants_of_two_algorithms', 'ambiguous-initializer', 'Two algorithms hold different constants of one name.',
       [('a () => (float[2] n) <float R = {0.5}> { d = Mul(R, x) n = Add(W, d) }', {'W': 'n'}),
        ('b () => (float[2] k) <float R = {0.25}> { d = Mul(R, x) k = Sub(B, d) }', {'B': 'k'})])
refuse('T-BIND-15', 'several_faults', ['duplicate-key', 'unknown-key', 'unknown-value'], 'All that is wrong is reported at once.',
       [(ADD, [('W', 'n'), ('W', 'n'), ('Q', 'n'), ('B', 'q')])])


@case('T-BIND-9')
def other_shape_at_run_time(c):
    """The shape of the new value depends on what is fed: the step fails and changes nothing."""
    c.graph('m (float[N] x) => (float[N] y, float[2] z) <float[2] W = {1, 2}> { y = Neg(x) z = Neg(W) }')
    c.entry('a () => (float[N] n) { n = Add(x, x) }', W='n')
    c.step(lambda s, x: dict(W=2 * x, n=2 * x, y=-x, z=-s.W), x=[1, 2])
    c.fail(x=[1, 2, 3])
    c.step(lambda s, x: dict(W=2 * x, n=2 * x, y=-x, z=-s.W), x=[3, 4])


@refused('T-BIND-10', findings='sparse-variable')
def sparse_variable(c):
    """A sparse initializer cannot be a variable."""
    c.graph(SCALE)
    c.entry(ADD, W='n')
    g = c.model.graph
    del g.initializer[0]
    values = helper.make_tensor('W', TensorProto.FLOAT, [1], [2.0])
    g.sparse_initializer.append(helper.make_sparse_tensor(values, helper.make_tensor('i', TensorProto.INT64, [1], [1]), [2]))


@refused('T-BIND-11', findings='string-variable')
def string_variable(c):
    """A tensor of strings cannot be a variable."""
    c.graph(SCALE)
    c.hold(c.model.graph, 'S', ['a', 'b'], TensorProto.STRING)
    c.entry('a () => (string[2] s1) { s1 = Identity(S) }', S='s1')


@case('T-BIND-16', findings=['ir-version'])
def ir_version_6(c):
    """training_info below IR version 7: it runs, and a checker says so."""
    c.graph(SCALE, ir=6, opset=11)
    c.entry(ADD, W='n')
    c.step(lambda s, x: dict(W=s.W + x, n=s.W + x, y=scale(s, x)), x=[1, 1])
