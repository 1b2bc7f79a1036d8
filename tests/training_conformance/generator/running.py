# SPDX-License-Identifier: Apache-2.0
"""The three things a training model does: initialize, step, infer."""
import numpy as np

from .kit import case, refused

SCALE = 'm (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }'
ADD = 'a () => (float[2] n) { n = Add(W, x) }'


def scale_step(s, x):
    return dict(W=s.W + x, y=x * s.W, n=s.W + x)


@case('T-RUN-1')
def infer_changes_nothing(c):
    """Inference between steps uses the present values and changes none."""
    c.graph(SCALE)
    c.entry(ADD, W='n')
    c.infer(lambda s, x: dict(y=x * s.W), x=[3, 4])
    c.step(scale_step, x=[1, 1])
    c.infer(lambda s, x: dict(y=x * s.W), x=[3, 4])
    c.infer(lambda s, x: dict(y=x * s.W), x=[0, -1])
    c.step(scale_step, x=[2, 2])


@case('T-RUN-1')
def infer_before_any_step(c):
    """Inference needs neither initialize nor a step."""
    c.graph(SCALE)
    c.entry(ADD, W='n', init='i () => (float[2] w) <float[2] w = {9, 9}> {}', start={'W': 'w'})
    c.infer(lambda s, x: dict(y=x * s.W), x=[3, 4])
    c.initialize(W=[9, 9])
    c.infer(lambda s, x: dict(y=x * s.W), x=[3, 4])


@case('T-RUN-1')
def infer_needs_no_training_inputs(c):
    """Inference is fed the inputs of the inference graph alone, not the label."""
    c.graph(SCALE)
    c.entry('a (float[2] label) => (float[2] n) { e = Sub(y, label) n = Sub(W, e) }', W='n')
    c.infer(lambda s, x: dict(y=x * s.W), x=[3, 4])
    c.step(lambda s, x, label: dict(W=s.W - (x * s.W - label), y=x * s.W, n=s.W - (x * s.W - label)), x=[1, 1], label=[0, 0.5])
    c.infer(lambda s, x: dict(y=x * s.W), x=[3, 4])


@case('T-RUN-2')
def step_assigns(c):
    """A step assigns through update_binding."""
    c.graph(SCALE)
    c.entry(ADD, W='n')
    c.steps(scale_step, x=[[1, 2], [3, -4], [0, 0]])


@case('T-RUN-2')
def step_computes_with_the_old_value(c):
    """The outputs of a step are computed from the state before it."""
    c.graph('m (float x) => (float y) <float W = {2}> { y = Mul(x, W) }')
    c.entry('a () => (float n, float seen) { n = Mul(W, W) seen = Identity(W) }', W='n')
    c.repeat(3, lambda s, x: dict(W=s.W ** 2, n=s.W ** 2, seen=s.W, y=x * s.W), x=3)


@case('T-RUN-2')
def gradient_descent(c):
    """The plainest training: linear regression with a Gradient node and a constant rate."""
    c.graph('m (float[4, 2] x) => (float[4, 1] y) <float[2, 1] W = {0.5, -0.25}> { y = MatMul(x, W) }')
    c.entry('''a (float[4, 1] label) => (float loss, float[2, 1] n) <float R = {0.1}> {
        e = Sub(y, label)  e2 = Mul(e, e)  loss = ReduceMean <keepdims = 0> (e2)
        g = ai.onnx.preview.training.Gradient <xs = ["W"], y = "loss"> (W)
        d = Mul(R, g)  n = Sub(W, d) }''', W='n')

    def step(s, x, label):
        e = x @ s.W - label
        n = s.W - s.R * x.T @ (2 * e / e.size)
        return dict(W=n, n=n, loss=np.mean(e * e), y=x @ s.W)
    r = np.random.RandomState(1)
    c.steps(step, x=list(np.round(r.randn(3, 4, 2), 2)), label=list(np.round(r.randn(3, 4, 1), 2)))


@case('T-RUN-3')
def entries_run_in_order(c):
    """The second entry sees what the first assigned."""
    c.graph('m (float[2] x) => (float[2] y) <float[2] A = {1, 2}, float[2] B = {10, 20}> { y = Add(x, A) }')
    c.entry('a () => (float[2] a1) { a1 = Add(A, x) }', A='a1')
    c.entry('b () => (float[2] b1) { b1 = Add(B, A) }', B='b1')

    def step(s, x):
        a = s.A + x
        # The inference graph is part of both training graphs: y is that of the last entry.
        return dict(A=a, a1=a, B=s.B + a, b1=s.B + a, y=x + a)
    c.steps(step, x=[[1, 1], [2, -2]])


@case('T-RUN-3')
def entries_in_reverse_dependence(c):
    """Order is that of the file, not of dependence: the first entry reads the old value of the second's variable."""
    c.graph('m (float x) => (float y) <float A = {1}, float B = {10}> { y = Identity(x) }')
    c.entry('a () => (float b1) { b1 = Add(B, A) }', B='b1')
    c.entry('b () => (float a1) { a1 = Add(A, x) }', A='a1')
    c.repeat(2, lambda s, x: dict(B=s.B + s.A, b1=s.B + s.A, A=s.A + x, a1=s.A + x, y=x), x=5)


@case('T-RUN-3')
def three_entries(c):
    """Three entries: each doubles what the one before it wrote."""
    c.graph('m (float x) => (float y) <float A = {0}, float B = {0}, float C = {0}> { y = Add(x, C) }')
    c.entry('a () => (float a1) { a1 = Add(A, x) }', A='a1')
    c.entry('b () => (float b1) { b1 = Add(A, A) }', B='b1')
    c.entry('d () => (float c1) { c1 = Add(B, B) }', C='c1')

    def step(s, x):
        a = s.A + x
        return dict(A=a, a1=a, B=2 * a, b1=2 * a, C=4 * a, c1=4 * a, y=x + s.C)
    c.steps(step, x=[1, 10])


@case('T-RUN-3')
def block_coordinate_descent(c):
    """Two entries descend on one loss in turn, each by its own variable."""
    c.graph('m (float x) => (float y) <float A = {2}, float B = {-1}> { p = Mul(A, x) y = Add(p, B) }')
    for v in 'AB':
        c.entry(f'''e{v} () => (float n{v}) <float R{v} = {{0.25}}> {{ q{v} = Mul(y, y)
            g{v} = ai.onnx.preview.training.Gradient <xs = ["{v}"], y = "q{v}"> ({v})
            d{v} = Mul(R{v}, g{v})  n{v} = Sub({v}, d{v}) }}''', update={v: 'n' + v})

    def step(s, x):
        a = s.A - s.RA * 2 * (s.A * x + s.B) * x
        b = s.B - s.RB * 2 * (a * x + s.B)
        return dict(A=a, nA=a, B=b, nB=b, y=a * x + s.B)
    c.steps(step, x=[1.5, 0.5, -1])


@case('T-RUN-4')
def one_entry_alone(c):
    """A single entry can be run; the others do nothing then."""
    c.graph('m (float x) => (float y) <float A = {1}, float B = {10}> { y = Add(x, A) }')
    c.entry('a () => (float a1) { a1 = Add(A, x) }', A='a1')
    c.entry('b () => (float b1) { b1 = Add(B, A) }', B='b1')
    c.step(lambda s, x: dict(B=s.B + s.A, b1=s.B + s.A, y=x + s.A), entry=1, x=5)
    c.step(lambda s, x: dict(A=s.A + x, a1=s.A + x, y=x + s.A), entry=0, x=5)
    c.step(lambda s, x: dict(B=s.B + s.A, b1=s.B + s.A, y=x + s.A), entry=1, x=5)


@case('T-RUN-4')
def alternating_entries(c):
    """As a GAN is trained: the caller runs entry 1 twice for each run of entry 0."""
    c.graph('m (float z) => (float fake) <float G = {0.5}> { fake = Mul(G, z) }')
    c.entry('''g () => (float g1) <float RG = {0.1}> { sg = Mul(D0, fake)
        dG = ai.onnx.preview.training.Gradient <xs = ["G"], y = "sg"> (G)
        stepG = Mul(RG, dG)  g1 = Add(G, stepG) }'''.replace('D0', 'z'), G='g1')
    c.entry('''d (float real) => (float d1) <float D = {1}, float RD = {0.1}> { a = Mul(D, real) b = Mul(D, fake) v = Sub(a, b)
        dD = ai.onnx.preview.training.Gradient <xs = ["D"], y = "v"> (D)
        stepD = Mul(RD, dD)  d1 = Add(D, stepD) }''', D='d1')

    def discriminate(s, z, real):
        d = s.D + s.RD * (real - s.G * z)
        return dict(D=d, d1=d, fake=s.G * z)

    def generate(s, z):
        g = s.G + s.RG * z * z
        return dict(G=g, g1=g, fake=s.G * z)
    for z, real in ((1, 2), (0.5, -1)):
        c.step(discriminate, entry=1, z=z, real=real)
        c.step(discriminate, entry=1, z=z + 1, real=real)
        c.step(generate, entry=0, z=z)


@case('T-RUN-7')
def starts_from_initializers(c):
    """Without initialize the variables are what the file says, although an initialization is there."""
    c.graph(SCALE)
    c.entry(ADD, W='n', init='i () => (float[2] w) <float[2] w = {9, 9}> {}', start={'W': 'w'})
    c.steps(scale_step, x=[[1, 2]])


@case('T-RUN-8')
def resume_is_loading(c):
    """Writing the model, reading it and going on is the same as going on."""
    c.graph(SCALE)
    c.entry('''a () => (float[2] n, float[2] v1, int64 t1) <float[2] V = {0, 0}, int64 T = {0}, int64 one = {1}, float R = {0.5}> {
        n, v1 = ai.onnx.preview.training.Momentum <alpha = 0.5, beta = 1.0, norm_coefficient = 0.0, mode = "standard"> (R, T, W, y, V)
        t1 = Add(T, one) }''', W='n', V='v1', T='t1', init='i () => (float[2] w) <float[2] w = {9, 9}> {}', start={'W': 'w'})

    def step(s, x):
        v = 0.5 * s.V + x * s.W
        return dict(W=s.W - s.R * v, n=s.W - s.R * v, V=v, v1=v, T=s.T + 1, t1=s.T + 1, y=x * s.W)
    c.step(step, x=[1, 2])
    c.reload()
    c.step(step, x=[-1, 1])
    c.reload()
    c.step(step, x=[0.5, 0.5])


@case('T-RUN-9')
def absent_algorithm(c):
    """An entry without algorithm is an empty graph: a step evaluates the inference graph and changes nothing."""
    c.graph(SCALE)
    c.entry(init='i () => (float[2] w) <float[2] w = {9, 9}> {}', start={'W': 'w'})
    c.step(lambda s, x: dict(y=x * s.W), x=[1, 1])
    c.initialize(W=[9, 9])
    c.step(lambda s, x: dict(y=x * s.W), x=[1, 1])


@case('T-RUN-9')
def empty_entry(c):
    """A TrainingInfoProto with nothing in it does nothing."""
    c.graph(SCALE)
    c.entry()
    c.entry(ADD, W='n')
    c.step(lambda s, x: dict(W=s.W + x, y=x * s.W, n=s.W + x), x=[1, 1])


@refused('T-RUN-10', findings=[])
def no_training_info(c):
    """A model without training_info has no training behaviour; a step is refused, inference is not."""
    c.graph(SCALE)
    c.infer(lambda s, x: dict(y=x * s.W), x=[3, 4])


def rated(c, every, phase=None):
    info = c.model.training_info[-1]
    info.algorithm.metadata_props.add(key='onward.every', value=str(every))
    if phase is not None:
        info.algorithm.metadata_props.add(key='onward.phase', value=str(phase))


@case('T-RATE-1')
def entry_every_third_iteration(c):
    """`onward.every` = 3 in the algorithm's metadata: the entry takes part in iterations 0, 3, 6..."""
    c.graph('m (float x) => (float y) <float A = {0}, float B = {100}> { y = Identity(x) }')
    c.entry('a () => (float a1) { a1 = Add(A, x) }', A='a1')
    c.entry('b () => (float b1) { b1 = Add(B, A) }', B='b1')
    rated(c, 3)
    for t in range(7):
        def step(s, x, t=t):
            a = s.A + x
            return dict(A=a, a1=a, y=x, **(dict(B=s.B + a, b1=s.B + a) if t % 3 == 0 else {}))
        c.step(step, x=t + 1)


@case('T-RATE-1')
def entry_with_phase(c):
    """`onward.phase` = 1 with `onward.every` = 2: iterations 1, 3, 5..."""
    c.graph('m (float x) => (float y) <float A = {0}, float B = {100}> { y = Identity(x) }')
    c.entry('a () => (float a1) { a1 = Add(A, x) }', A='a1')
    rated(c, 2, 0)
    c.entry('b () => (float b1) { b1 = Add(B, A) }', B='b1')
    rated(c, 2, 1)
    for t in range(5):
        c.step((lambda s, x: dict(A=s.A + x, a1=s.A + x, y=x)) if t % 2 == 0 else
               (lambda s, x: dict(B=s.B + s.A, b1=s.B + s.A, y=x)), x=t + 1)


@case('T-RATE-2')
def rate_survives_a_reload(c):
    """The number of iterations done is in the file, so a resumed run keeps the rhythm."""
    c.graph('m (float x) => (float y) <float A = {0}, float B = {100}> { y = Identity(x) }')
    c.entry('a () => (float a1) { a1 = Add(A, x) }', A='a1')
    c.entry('b () => (float b1) { b1 = Add(B, A) }', B='b1')
    rated(c, 2)
    for t in range(4):
        def step(s, x, t=t):
            a = s.A + x
            return dict(A=a, a1=a, y=x, **(dict(B=s.B + a, b1=s.B + a) if t % 2 == 0 else {}))
        c.step(step, x=1)
        c.reload()


@case('T-RATE-3')
def portable_rate_by_where(c):
    """The portable way: a counter and a Where in the algorithm, which every runtime obeys."""
    c.graph('m (float x) => (float y) <float A = {0}> { y = Identity(x) }')
    c.entry('''a () => (float a1, int64 t1) <int64 T = {0}, int64 one = {1}, int64 three = {3}, int64 zero = {0}> {
        r = Mod(T, three)  now = Equal(r, zero)  moved = Add(A, x)  a1 = Where(now, moved, A)  t1 = Add(T, one) }''', A='a1', T='t1')

    def step(s, x):
        a = s.A + x if s.T % 3 == 0 else s.A
        return dict(A=a, a1=a, T=s.T + 1, t1=s.T + 1, y=x)
    c.repeat(5, step, x=2)


@refused('T-RATE-4', findings='bad-rate')
def rate_is_no_number(c):
    """`onward.every` has to be a whole number from 1."""
    c.graph(SCALE)
    c.entry(ADD, W='n')
    rated(c, 'often')


@refused('T-RATE-4', findings='bad-rate')
def phase_beyond_rate(c):
    """`onward.phase` has to be below `onward.every`: the entry would never run."""
    c.graph(SCALE)
    c.entry(ADD, W='n')
    rated(c, 2, 2)
