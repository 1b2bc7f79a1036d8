# SPDX-License-Identifier: Apache-2.0
"""Assignments that depend on a condition: accumulated gradients, averages of weights, steps that are skipped."""
import numpy as np

from .kit import TRAINING, case

# y = x W;  the mean square of y - label by W is 2/n x^T (y - label), with one column.
LINEAR = 'm (float[N, 2] x) => (float[N, 1] y) <float[2, 1] W = {0.5, -1}> { y = MatMul(x, W) }'
GRADIENT = f'''e = Sub(y, label)  q = Mul(e, e)  loss = ReduceMean <keepdims = 0> (q)
    g = {TRAINING}.Gradient <xs = ["W"], y = "loss"> (W)'''
RATE = 0.125


def gradient(w, x, label):
    return 2 * x.T @ (x @ w - label) / len(x)


def loss(w, x, label):
    return np.mean((x @ w - label) ** 2)


def batches(count, size, seed):
    r = np.random.RandomState(seed)
    return [(r.randint(-3, 4, (size, 2)).astype(float), r.randint(-3, 4, (size, 1)).astype(float)) for _ in range(count)]


def accumulate(c, text, calls, seed):
    """Every `calls`-th step updates W by the gradient of all batches since as if they were one."""
    c.graph(LINEAR)
    c.entry(text, W='W1', S='S1', C='C1')
    since = []
    for i, (x, label) in enumerate(batches(2 * calls + 1, 2, seed)):
        since.append((x, label))
        due = len(since) == calls

        def step(s, x, label, due=due, seen=tuple(since)):
            total = s.S + gradient(s.W, x, label)
            whole = gradient(s.W, np.concatenate([b[0] for b in seen]), np.concatenate([b[1] for b in seen]))
            w = s.W - RATE * whole if due else s.W
            total, count = (0 * total, 0) if due else (total, s.C + 1)
            return dict(W=w, W1=w, S=total, S1=total, C=count, C1=count, y=x @ s.W, loss=loss(s.W, x, label))
        c.step(step, x=x, label=label)
        if due:
            since = []
        if i == 1:
            c.reload()


@case('T-COND-1', 'T-COND-2')
def accumulation_by_if(c):
    """Sums of gradients and a counter are variables; an If updates the weight at every third step."""
    accumulate(c, f'''a (float[N, 1] label) => (float loss, float[2, 1] W1, float[2, 1] S1, int64 C1)
        <float[2, 1] S = {{0, 0}}, int64 C = {{0}}, int64 one = {{1}}, int64 K = {{3}}, int64 none = {{0}}, float R = {{{RATE}}}, float k = {{3}}> {{
        {GRADIENT}  s = Add(S, g)  n = Add(C, one)  due = Equal(n, K)
        W1, S1, C1 = If (due) <
          then_branch = t () => (float[2, 1] w, float[2, 1] z, int64 o) {{ m = Div(s, k)  d = Mul(R, m)  w = Sub(W, d)  z = Sub(S, S)  o = Identity(none) }},
          else_branch = f () => (float[2, 1] v, float[2, 1] u, int64 p) {{ v = Identity(W)  u = Identity(s)  p = Identity(n) }}> }}''', 3, 1)


@case('T-COND-2')
def accumulation_by_where(c):
    """The same without control flow: everything is computed, and a Where chooses."""
    accumulate(c, f'''a (float[N, 1] label) => (float loss, float[2, 1] W1, float[2, 1] S1, int64 C1)
        <float[2, 1] S = {{0, 0}}, int64 C = {{0}}, int64 one = {{1}}, int64 K = {{4}}, int64 none = {{0}}, float zero = {{0}}, float R = {{{RATE}}}, float k = {{4}}> {{
        {GRADIENT}  s = Add(S, g)  n = Add(C, one)  due = Equal(n, K)  m = Div(s, k)  d = Mul(R, m)  w = Sub(W, d)
        W1 = Where(due, w, W)  S1 = Where(due, zero, s)  C1 = Where(due, none, n) }}''', 4, 2)


@case('T-COND-3')
def moving_average(c):
    """An average of the weight is a variable that follows its new value."""
    c.graph(LINEAR)
    c.entry(f'''a (float[N, 1] label) => (float loss, float[2, 1] W1, float[2, 1] A1)
        <float[2, 1] A = {{0.5, -1}}, float R = {{{RATE}}}, float keep = {{0.75}}, float take = {{0.25}}> {{
        {GRADIENT}  d = Mul(R, g)  W1 = Sub(W, d)  old = Mul(keep, A)  new = Mul(take, W1)  A1 = Add(old, new) }}''', W='W1', A='A1')

    def step(s, x, label):
        w = s.W - RATE * gradient(s.W, x, label)
        a = 0.75 * s.A + 0.25 * w
        return dict(W=w, W1=w, A=a, A1=a, y=x @ s.W, loss=loss(s.W, x, label))
    for x, label in batches(4, 3, 3):
        c.step(step, x=x, label=label)
    c.infer(lambda s, x: dict(y=x @ s.W), x=np.eye(2))


@case('T-COND-1', 'T-COND-3')
def moving_average_of_updates(c):
    """An average inside the If that updates moves when the weight does."""
    c.graph(LINEAR)
    c.entry(f'''a (float[N, 1] label) => (float loss, float[2, 1] W1, float[2, 1] A1, bool B1)
        <float[2, 1] A = {{0.5, -1}}, bool B = {{0}}, float R = {{{RATE}}}, float half = {{0.5}}> {{
        {GRADIENT}  B1 = Not(B)
        W1, A1 = If (B) <
          then_branch = t () => (float[2, 1] w, float[2, 1] n) {{ d = Mul(R, g)  w = Sub(W, d)  s = Add(A, w)  n = Mul(half, s) }},
          else_branch = f () => (float[2, 1] v, float[2, 1] o) {{ v = Identity(W)  o = Identity(A) }}> }}''', W='W1', A='A1', B='B1')

    def step(s, x, label):
        w, a = s.W, s.A
        if s.B:
            w = s.W - RATE * gradient(s.W, x, label)
            a = (s.A + w) / 2
        return dict(W=w, W1=w, A=a, A1=a, B=not s.B, B1=not s.B, y=x @ s.W, loss=loss(s.W, x, label))
    for x, label in batches(4, 2, 4):
        c.step(step, x=x, label=label)


INVERSE = 'm (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }'


@case('T-COND-1', 'T-COND-4')
def branch_not_taken_may_be_infinite(c):
    """What a branch would have computed is nothing that the step assigns."""
    c.graph(INVERSE)
    c.entry('''a (bool go) => (float[2] n) { r = Reciprocal(x)
        n = If (go) < then_branch = t () => (float[2] w) { w = Add(W, r) }, else_branch = f () => (float[2] v) { v = Identity(W) }> }''', W='n')

    def step(s, x, go):
        n = s.W + 1 / x if go else s.W
        return dict(W=n, n=n, y=x * s.W)
    c.step(step, x=[1, 0], go=False)
    c.fail(x=[1, 0], go=True)
    c.step(step, x=[1, 4], go=True)


@case('T-COND-4')
def overflow_chosen_away(c):
    """A Where that takes the old value where the new one is not finite: a step, and no failure."""
    c.graph(INVERSE)
    c.entry('''a () => (float[2] n, int64 k1) <int64 skipped = {0}, int64 one = {1}, float most = {1e30}> {
        r = Reciprocal(x)  w = Add(W, r)  size = ReduceL1 <keepdims = 0> (w)  good = Less(size, most)
        n = Where(good, w, W)  more = Add(skipped, one)  k1 = Where(good, skipped, more) }''', W='n', skipped='k1')

    def step(s, x):
        good = np.all(x != 0)
        with np.errstate(divide='ignore'):
            n = s.W + 1 / x if good else s.W
        k = s.skipped if good else s.skipped + 1
        return dict(W=n, n=n, skipped=k, k1=k, y=x * s.W)
    c.steps(step, x=[[1, 2], [0, 1], [-4, 8], [0, 0]])


def scaled(c, metadata):
    """The loss in float16, times a scale that halves at each overflow and doubles after two good steps."""
    c.graph('m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }')
    c.entry(f'''a () => (float loss, float[2] n, float s1, int64 c1, int64 k1)
        <float scale = {{1024}}, int64 grown = {{0}}, int64 skipped = {{0}}, int64 one = {{1}}, int64 two = {{2}}, int64 none = {{0}},
         float R = {{0.25}}, float double = {{2}}, float half = {{0.5}}, float most = {{1e30}}> {{
        w = Cast <to = 10> (W)  h = Cast <to = 10> (x)  p = Mul(w, h)  b = Cast <to = 1> (p)  loss = ReduceSum <keepdims = 0> (b)
        big = Mul(loss, scale)  g0 = {TRAINING}.Gradient <xs = ["W"], y = "big"> (W)
        g = Div(g0, scale)  size = ReduceL1 <keepdims = 0> (g)  good = Less(size, most)
        n = If (good) < then_branch = t () => (float[2] u) {{ d = Mul(R, g)  u = Sub(W, d) }}, else_branch = f () => (float[2] v) {{ v = Identity(W) }}>
        more = Add(grown, one)  full = Equal(more, two)  up = Mul(scale, double)  down = Mul(scale, half)
        s0 = Where(full, up, scale)  s1 = Where(good, s0, down)  c0 = Where(full, none, more)  c1 = Where(good, c0, none)
        k0 = Add(skipped, one)  k1 = Where(good, skipped, k0) }}''', W='n', scale='s1', grown='c1', skipped='k1')
    for key, value in metadata.items():
        c.model.metadata_props.add(key=key, value=value)
    c.tolerance = (1e-3, 1e-6)
    largest = 65504

    def step(s, x):
        # d(loss)/dW is x in float16; times the scale it has to fit there.
        good = bool(np.all(np.abs(x) * s.scale <= largest))
        n = s.W - 0.25 * x if good else s.W
        full = good and s.grown == 1
        scale = s.scale * (2 if full else 1) if good else s.scale / 2
        grown = 0 if full or not good else s.grown + 1
        product = np.where(np.abs(s.W * x) > largest, np.inf * np.sign(s.W * x), s.W * x)
        return dict(W=n, n=n, scale=scale, s1=scale, grown=grown, c1=grown, skipped=s.skipped + (not good), k1=s.skipped + (not good),
                    y=x * s.W, loss=product.sum())
    return step


@case('T-COND-4')
def overflow_is_skipped(c):
    """Loss scaling: a step whose gradients overflow float16 changes the scale and the counters, and nothing else."""
    step = scaled(c, {})
    c.steps(step, x=[[0.5, -1], [128, 2], [1, 1], [0.25, 0.5], [4, 4], [16, 64]])
    c.reload()
    c.steps(step, x=[[2, 2], [256, 1], [1, 0.5]])


@case('T-COND-5')
def scaled_loss_may_overflow(c):
    """A file that names its loss scale may have a loss that is not finite: the step is its own judge."""
    step = scaled(c, {'onward.loss_value': 'loss', 'onward.loss_scale': 'scale'})
    c.steps(step, x=[[0.5, -1], [64, 65504], [1, 1]])
