# SPDX-License-Identifier: Apache-2.0
"""initialize and reset: constants, random draws, order, what is refused."""
import numpy as np

from .kit import case, refused

SCALE = 'm (float[2] x) => (float[2] y) <float[2] W = {1, 2}, float[2] B = {5, 6}> { y = Mul(x, W) }'
ADD = 'a () => (float[2] n) { n = Add(W, x) }'


def scale_step(s, x):
    return dict(W=s.W + x, y=x * s.W, n=s.W + x)


@case('T-RUN-5')
def constant(c):
    """An output of initialization that is an initializer of it."""
    c.graph(SCALE)
    c.entry(ADD, W='n', init='i () => (float[2] w) <float[2] w = {7, 8}> {}', start={'W': 'w'})
    c.initialize(W=[7, 8])
    c.step(scale_step, x=[1, 1])


@case('T-RUN-5')
def reset_then_assign(c):
    """Initialize sets every variable to its initializer in the file, then assigns: B, which nothing initializes, goes back."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n, float[2] b) { n = Add(W, x) b = Sub(B, x) }', W='n', B='b',
            init='i () => (float[2] w) <float[2] w = {7, 8}> {}', start={'W': 'w'})

    def step(s, x):
        return dict(W=s.W + x, n=s.W + x, B=s.B - x, b=s.B - x, y=x * s.W)
    c.step(step, x=[1, 1])
    c.initialize(W=[7, 8], B=[5, 6])
    c.step(step, x=[2, 2])
    c.initialize(W=[7, 8], B=[5, 6])


@case('T-RUN-5')
def reset_without_bindings(c):
    """Without any initialization_binding initialize brings back the file's values."""
    c.graph(SCALE)
    c.entry(ADD, W='n')
    c.step(scale_step, x=[1, 1])
    c.step(scale_step, x=[1, 1])
    c.initialize(W=[1, 2])
    c.step(scale_step, x=[3, 3])


@case('T-RUN-5')
def state_of_the_optimizer_too(c):
    """Variables of the algorithm are initialized like those of the model."""
    c.graph(SCALE)
    c.entry('''a () => (float[2] n, int64 t1) <int64 T = {0}, int64 one = {1}> { n = Add(W, x) t1 = Add(T, one) }''', W='n', T='t1',
            init='i () => (int64 t0) <int64 t0 = {10}> {}', start={'T': 't0'})

    def step(s, x):
        return dict(W=s.W + x, n=s.W + x, T=s.T + 1, t1=s.T + 1, y=x * s.W)
    c.step(step, x=[1, 1])
    c.initialize(W=[1, 2], T=10)
    c.step(step, x=[1, 1])


@case('T-RUN-5')
def entries_initialize_in_order(c):
    """Two entries initialize one variable: the last one in the file holds."""
    c.graph(SCALE)
    c.entry(ADD, W='n', init='i () => (float[2] w) <float[2] w = {7, 8}> {}', start={'W': 'w'})
    c.entry('b () => (float[2] b1) { b1 = Identity(B) }', B='b1', init='j () => (float[2] v) <float[2] v = {-1, -2}> {}', start={'W': 'v'})
    c.initialize(W=[-1, -2])


@case('T-RUN-5')
def computed(c):
    """Initialization computes: a ramp, scaled."""
    c.graph(SCALE)
    c.entry(ADD, W='n', init='''i () => (float[2] w) <float zero = {0}, float two = {2}, float one = {1}, float half = {0.5}> {
        r = Range(zero, two, one)  w = Mul(r, half) }''', start={'W': 'w'})
    c.initialize(W=[0, 0.5])


@case('T-RUN-5')
def one_output_for_two_variables(c):
    """One output of initialization may start several variables."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n, float[2] b) { n = Add(W, x) b = Sub(B, x) }', W='n', B='b',
            init='i () => (float[2] w) <float[2] w = {7, 8}> {}', start={'W': 'w', 'B': 'w'})
    c.initialize(W=[7, 8], B=[7, 8])
    c.step(lambda s, x: dict(W=s.W + x, n=s.W + x, B=s.B - x, b=s.B - x, y=x * s.W), x=[1, 2])


@case('T-RUN-5')
def only_initialized(c):
    """A variable that no update assigns is one nevertheless: initialize sets it."""
    c.graph(SCALE)
    c.entry(ADD, W='n', init='i () => (float[2] b) <float[2] b = {3, 3}> {}', start={'B': 'b'})
    c.initialize(W=[1, 2], B=[3, 3])
    c.step(scale_step, x=[1, 1])


@case('T-RUN-5', 'T-JOIN-7')
def calls_a_function(c):
    """Initialization may call the functions of the model."""
    c.graph(SCALE + '<domain: "local", opset_import: ["" : 18]> twice (v) => (w) { w = Add(v, v) }')
    c.entry(ADD, W='n', init='i () => (float[2] w) <float[2] v = {7, 8}> { w = local.twice(v) }', start={'W': 'w'})
    c.initialize(W=[14, 16])


@case('T-RUN-5')
def control_flow(c):
    """Initialization with If."""
    c.graph(SCALE)
    c.entry(ADD, W='n', init='''i () => (float[2] w) <bool c = {1}, float[2] p = {1, 1}, float[2] q = {2, 2}> {
        w = If (c) <then_branch = t () => (float[2] a) { a = Add(p, q) }, else_branch = e () => (float[2] b) { b = Sub(p, q) }> }''',
            start={'W': 'w'})
    c.initialize(W=[3, 3])


def random_case(name, text, drawn, about):
    def write(c):
        c.graph('m (float x) => (float y) <float[40, 25] W, float S = {1}> { y = Mul(x, S) }')
        c.hold(c.model.graph, 'W', np.zeros((40, 25)))
        c.entry(init=text, start={'W': 'w'})
        c.drawn = {'W': drawn}
        c.initialize()
        c.initialize()
    write.__doc__ = about
    write.__name__ = name
    write.__module__ = __name__
    case('T-RAND-1')(write)


random_case('random_uniform', 'i () => (float[40, 25] w) { w = RandomUniform <shape = [40, 25], low = -0.5, high = 1.5> () }',
            dict(low=-0.5, high=1.5, mean=0.5, deviation=0.5774), 'Draws from a uniform distribution, without seed.')
random_case('random_uniform_with_seed',
            'i () => (float[40, 25] w) { w = RandomUniform <shape = [40, 25], low = -0.5, high = 1.5, seed = 7.0> () }',
            dict(low=-0.5, high=1.5, mean=0.5, deviation=0.5774, repeats=True), 'Draws with a seed: initializing twice gives the same numbers.')
random_case('random_normal_with_seed',
            'i () => (float[40, 25] w) { w = RandomNormal <shape = [40, 25], mean = 2.0, scale = 0.25, seed = 1.0> () }',
            dict(low=0.0, high=4.0, mean=2.0, deviation=0.25, repeats=True), 'Draws from a normal distribution.')
random_case('random_like', '''i () => (float[40, 25] w) <int64[2] s = {40, 25}> {
    z = ConstantOfShape(s)  w = RandomUniformLike <low = 1.0, high = 3.0, seed = 3.0> (z) }''',
            dict(low=1.0, high=3.0, mean=2.0, deviation=0.5774, repeats=True), 'RandomUniformLike takes type and shape from a value.')
random_case('random_scaled', '''i () => (float[40, 25] w) <float k = {0.2}> {
    n = RandomNormal <shape = [40, 25], seed = 5.0> ()  w = Mul(n, k) }''',
            dict(low=-2.0, high=2.0, mean=0.0, deviation=0.2, repeats=True), 'Draws that are scaled, as Kaiming and Xavier are.')


# The inverse of Erf by two polynomials (M. Giles, 2010), as ONNX text.
MIDDLE = [2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941]
TAILS = [-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682]


def horner(x, result, coefficients):
    text, value = '', f'{result}0'
    text += f'{value} = Constant <value_float = {coefficients[0]:.12f}> ()  '
    for i, k in enumerate(coefficients[1:], 1):
        text += f'{result}m{i} = Mul({value}, {x})  {result}k{i} = Constant <value_float = {k:.12f}> ()  {result}{i} = Add({result}m{i}, {result}k{i})  '
        value = f'{result}{i}'
    return text + f'{result} = Identity({value})  '


def truncated(low, high):
    return f'''i () => (float[40, 25] w) <float one = {{1}}, float a = {{2.5}}, float three = {{3}}, float five = {{5}}, float root = {{1.4142135}}> {{
    u = RandomUniform <shape = [40, 25], low = {low}, high = {high}, seed = 9.0> ()
    uu = Mul(u, u)  rest = Sub(one, uu)  log = Log(rest)  v = Neg(log)
    va = Sub(v, a)  sq = Sqrt(v)  vb = Sub(sq, three)  {horner('va', 'p', MIDDLE)}{horner('vb', 'q', TAILS)}
    near = Less(v, five)  pick = Where(near, p, q)  e = Mul(pick, u)  w = Mul(e, root) }}'''


# 2 P(z) - 1 of a normal distribution between -2 and 2: +-0.9544997.
random_case('random_truncated_normal', truncated(-0.9544997, 0.9544997), dict(low=-2.001, high=2.001, mean=0.0, deviation=0.8796, repeats=True),
            'A truncated normal distribution: the inverse of its function at a uniform draw.')
random_case('random_kaiming_uniform',
            'i () => (float[40, 25] w) { w = RandomUniform <shape = [40, 25], low = -0.3872983, high = 0.3872983, seed = 4.0> () }',
            dict(low=-0.38730, high=0.38730, mean=0.0, deviation=0.2236, repeats=True), 'Kaiming for 40 inputs and ReLU: up to sqrt(6 / 40).')
random_case('random_xavier_normal', 'i () => (float[40, 25] w) { w = RandomNormal <shape = [40, 25], scale = 0.1754116, seed = 2.0> () }',
            dict(low=-1.0, high=1.0, mean=0.0, deviation=0.1754, repeats=True), 'Xavier for 40 inputs and 25 outputs: sqrt(2 / 65).')


@case('T-RAND-1', 'T-RUN-5')
def orthogonal_by_iteration(c):
    """A random matrix made orthogonal by products alone, in a Loop: W is random, P = W^T W is not."""
    c.graph('m (float x) => (float y) <float[12, 5] W, float[5, 5] P, float S = {1}> { y = Mul(x, S) }')
    c.hold(c.model.graph, 'W', np.zeros((12, 5)))
    c.hold(c.model.graph, 'P', np.zeros((5, 5)))
    c.entry(init='''i () => (float[12, 5] w, float[5, 5] p) <int64 count = {40}, float a = {1.875}, float b = {-1.25}, float k = {0.375}> {
        start = RandomNormal <shape = [12, 5], scale = 0.08, seed = 6.0> ()
        w = Loop (count, , start) <body = step (int64 i, bool on, float[12, 5] m) => (bool go_on, float[12, 5] next) {
            go_on = Identity(on)  t = Transpose(m)  g = MatMul(t, m)  gg = MatMul(g, g)  bg = Mul(g, b)  kg = Mul(gg, k)  q = Add(bg, kg)
            mq = MatMul(m, q)  ma = Mul(m, a)  next = Add(ma, mq) }>
        wt = Transpose(w)  p = MatMul(wt, w) }''', start={'W': 'w', 'P': 'p'})
    c.drawn = {'W': dict(low=-1.0001, high=1.0001, repeats=True)}
    c.tolerance = (1e-4, 1e-4)
    c.initialize(P=np.eye(5))
    c.initialize(P=np.eye(5))


@case('T-RUN-5')
def bias_of_a_forget_gate(c):
    """The bias of an LSTM (gates i, o, f, c, twice) begins at zero but for the third gate, put together from parts."""
    c.graph('m (float x) => (float y) <float[1, 16] B, float S = {1}> { y = Mul(x, S) }')
    c.hold(c.model.graph, 'B', np.arange(16.).reshape(1, 16))
    c.entry(init='''i () => (float[1, 16] b) <int64[2] two = {1, 4}, int64[2] one = {1, 2}, int64[2] five = {1, 10}> {
        p = ConstantOfShape(two)  q = ConstantOfShape <value = float[1] {1}> (one)  r = ConstantOfShape(five)  b = Concat <axis = 1> (p, q, r) }''',
            start={'B': 'b'})
    c.initialize(B=[[0] * 4 + [1] * 2 + [0] * 10])


@case('T-RAND-1')
def random_then_deterministic(c):
    """What follows a draw and does not depend on it is exact."""
    c.graph('m (float[2] x) => (float[2] y) <float[2] W = {1, 2}, float[2] B = {5, 6}> { y = Mul(x, B) }')
    c.entry('a () => (float[2] n) { n = Add(B, x) }', B='n',
            init='''i () => (float[2] w, float[2] b) { w = RandomUniform <shape = [2]> ()  nil = Sub(w, w) b = Identity(nil) }''',
            start={'W': 'w', 'B': 'b'})
    c.drawn = {'W': dict(low=0, high=1)}
    c.initialize(B=[0, 0])
    c.step(lambda s, x: dict(B=s.B + x, n=s.B + x, y=x * s.B), x=[1, 2])


@case('T-RUN-6')
def failing_initialization_changes_nothing(c):
    """The second entry's initialization fails when it runs: nothing is assigned, not even what the first computed."""
    c.graph(SCALE)
    c.entry(ADD, W='n', init='i () => (float[2] w) <float[2] w = {7, 8}> {}', start={'W': 'w'})
    c.entry(init='''j () => (float[2] b) <float[2] v = {1, 2}, int64[1] far = {9}> {
        o = Gather(v, far) s = Shape(v) b = Expand(o, s) }''', start={'B': 'b'})

    def step(s, x):
        # The second entry evaluates the inference graph again.
        return dict(W=s.W + x, n=s.W + x, y=x * (s.W + x))
    c.step(step, x=[1, 1])
    c.fail('initialize')
    c.step(step, x=[1, 1])


@case('T-RUN-6', 'T-BIND-9')
def wrong_shape_at_run_time(c):
    """The shape of the start value is known only when initialization runs, and is wrong: it fails and changes nothing."""
    c.graph(SCALE)
    c.entry(ADD, W='n', init='''i () => (float[N] w) <float[3] v = {1, 2, 3}, float nil = {0}> {
        p = Greater(v, nil) w = Compress(v, p) }''', start={'W': 'w'})
    c.step(scale_step, x=[1, 1])
    c.fail('initialize')
    c.step(scale_step, x=[1, 1])


@refused('T-BIND-7', findings='initialization-input')
def has_inputs(c):
    """initialization takes no inputs."""
    c.graph(SCALE)
    c.entry(ADD, W='n', init='i (float[2] v) => (float[2] w) { w = Neg(v) }', start={'W': 'w'})


@case('T-BIND-7')
def input_with_initializer_is_none(c):
    """An input that has an initializer (as IR version 3 writes them) is not one."""
    c.graph(SCALE)
    c.entry(ADD, W='n', init='i (float[2] v) => (float[2] w) <float[2] v = {1, 2}> { w = Neg(v) }', start={'W': 'w'})
    c.initialize(W=[-1, -2])


@refused('T-BIND-8', findings='undefined-value')
def reads_the_model(c):
    """initialization stands alone: it may not read the inference graph."""
    c.graph(SCALE)
    c.entry(ADD, W='n', init='i () => (float[2] w) { w = Neg(B) }', start={'W': 'w'})


@refused('T-BIND-6', findings='unknown-value')
def value_is_no_output(c):
    """A value of initialization_binding is an output of initialization, not a value inside."""
    c.graph(SCALE)
    c.entry(ADD, W='n', init='i () => (float[2] w) <float[2] v = {7, 8}> { h = Neg(v) w = Neg(h) }', start={'W': 'h'})


@refused('T-BIND-6', findings='unknown-value')
def value_of_the_algorithm(c):
    """A value of initialization_binding cannot be an output of the algorithm."""
    c.graph(SCALE)
    c.entry(ADD, W='n', init='i () => (float[2] w) <float[2] w = {7, 8}> {}', start={'W': 'n'})


@refused('T-BIND-6', findings='unknown-value')
def binding_without_initialization(c):
    """initialization may be absent only where nothing is bound to it."""
    c.graph(SCALE)
    c.entry(ADD, W='n', start={'W': 'w'})


@refused('T-BIND-2', findings='unknown-key')
def key_of_another_entry(c):
    """A key of initialization_binding is an initializer of the model or of the same entry's algorithm."""
    c.graph(SCALE)
    c.entry('a () => (float[2] s) <float[2] S = {0, 0}> { s = Add(S, x) }', S='s')
    c.entry(ADD, W='n', init='i () => (float[2] w) <float[2] w = {7, 8}> {}', start={'S': 'w'})


@refused('T-BIND-2', findings='unknown-key')
def key_is_no_initializer(c):
    """A key of initialization_binding that names an input."""
    c.graph(SCALE)
    c.entry(ADD, W='n', init='i () => (float[2] w) <float[2] w = {7, 8}> {}', start={'x': 'w'})


@refused('T-BIND-1', findings='duplicate-key')
def key_twice(c):
    """One initialization_binding assigns a variable at most once."""
    c.graph(SCALE)
    c.entry(ADD, W='n', init='i () => (float[2] w) <float[2] w = {7, 8}> {}', start=[('W', 'w'), ('W', 'w')])


@refused('T-BIND-9', findings='type-mismatch')
def wrong_shape(c):
    """The start value has another shape than the variable."""
    c.graph(SCALE)
    c.entry(ADD, W='n', init='i () => (float[3] w) <float[3] w = {7, 8, 9}> {}', start={'W': 'w'})


@refused('T-BIND-9', findings='type-mismatch')
def wrong_type(c):
    """The start value has another type than the variable."""
    c.graph(SCALE)
    c.entry(ADD, W='n', init='i () => (double[2] w) <double[2] w = {7, 8}> {}', start={'W': 'w'})
