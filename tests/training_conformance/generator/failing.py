# SPDX-License-Identifier: Apache-2.0
"""A step is all or nothing: failing steps, failing iterations, numbers that are not finite."""
import numpy as np

from .kit import case

LOOKUP = 'm (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }'
# Gather with an index outside of its data fails when it runs.
PICK = 'a (int64 at) => (float[2] n) { p = Gather(x, at) n = Add(W, p) }'


def pick(s, x, at):
    return dict(W=s.W + x[at], n=s.W + x[at], y=x * s.W)


@case('T-STEP-2')
def failed_step(c):
    """A step that fails assigns nothing; the next one goes on from the same state."""
    c.graph(LOOKUP)
    c.entry(PICK, W='n')
    c.step(pick, x=[1, 2], at=1)
    c.fail(x=[1, 2], at=7)
    c.step(pick, x=[1, 2], at=0)


@case('T-STEP-2')
def failed_step_of_two_variables(c):
    """Nothing of a failed step is assigned, also what was computed before the failure."""
    c.graph(LOOKUP)
    c.entry('a (int64 at) => (float[2] n, float[2] s1) <float[2] S = {5, 6}> { s1 = Add(S, x) p = Gather(x, at) n = Add(W, p) }', S='s1', W='n')

    def step(s, x, at):
        return dict(W=s.W + x[at], n=s.W + x[at], S=s.S + x, s1=s.S + x, y=x * s.W)
    c.fail(x=[1, 2], at=7)
    c.step(step, x=[1, 2], at=0)
    c.fail(x=[1, 2], at=-9)


@case('T-STEP-2')
def wrong_feed(c):
    """An input of the wrong shape fails the step."""
    c.graph(LOOKUP)
    c.entry('a () => (float[2] n) { n = Add(W, x) }', W='n')
    c.fail(x=[1, 2, 3])
    c.step(lambda s, x: dict(W=s.W + x, n=s.W + x, y=x * s.W), x=[1, 2])


@case('T-STEP-3')
def failed_iteration(c):
    """The second entry fails: the first one's assignments are undone."""
    c.graph('m (float[2] x) => (float[2] y) <float[2] W = {1, 2}, float[2] B = {0, 0}> { y = Mul(x, W) }')
    c.entry('a () => (float[2] n) { n = Add(W, x) }', W='n')
    c.entry('b (int64 at) => (float[2] k) { p = Gather(x, at) k = Add(B, p) }', B='k')

    def step(s, x, at):
        return dict(W=s.W + x, n=s.W + x, B=s.B + x[at], k=s.B + x[at], y=x * (s.W + x))
    c.step(step, x=[1, 2], at=0)
    c.fail(x=[1, 2], at=5)
    c.step(step, x=[1, 2], at=1)


@case('T-STEP-3')
def failed_first_entry(c):
    """The first entry fails: the second does not run."""
    c.graph('m (float[2] x) => (float[2] y) <float[2] W = {1, 2}, float[2] B = {0, 0}> { y = Mul(x, W) }')
    c.entry('b (int64 at) => (float[2] k) { p = Gather(x, at) k = Add(B, p) }', B='k')
    c.entry('a () => (float[2] n) { n = Add(W, x) }', W='n')
    c.fail(x=[1, 2], at=5)
    c.step(lambda s, x, at: dict(W=s.W + x, n=s.W + x, B=s.B + x[at], k=s.B + x[at], y=x * s.W), x=[1, 2], at=1)


@case('T-STEP-3')
def failed_entry_alone(c):
    """One entry alone that fails leaves what others did in steps before."""
    c.graph('m (float[2] x) => (float[2] y) <float[2] W = {1, 2}, float[2] B = {0, 0}> { y = Mul(x, W) }')
    c.entry('a () => (float[2] n) { n = Add(W, x) }', W='n')
    c.entry('b (int64 at) => (float[2] k) { p = Gather(x, at) k = Add(B, p) }', B='k')
    c.step(lambda s, x: dict(W=s.W + x, n=s.W + x, y=x * s.W), entry=0, x=[1, 2])
    c.fail('step 1', x=[1, 2], at=5)


@case('T-STEP-4')
def loss_not_finite(c):
    """The file names its loss (`onward.loss_value`): a step whose loss is not finite fails."""
    c.graph('m (float x) => (float y) <float W = {1}, float one = {1}> { y = Mul(x, W) }')
    c.model.metadata_props.add(key='onward.loss_value', value='loss')
    c.entry('a () => (float loss, float n) { loss = Log(y) n = Add(W, one) }', W='n')
    c.step(lambda s, x: dict(loss=np.log(x * s.W), W=s.W + 1, n=s.W + 1, y=x * s.W), x=2)
    c.fail(x=0)
    c.fail(x=-1)
    c.step(lambda s, x: dict(loss=np.log(x * s.W), W=s.W + 1, n=s.W + 1, y=x * s.W), x=3)


@case('T-STEP-5')
def update_not_finite(c):
    """A new value that is not finite fails the step."""
    c.graph('m (float x) => (float y) <float W = {1}, float V = {1}> { y = Mul(x, W) }')
    c.entry('a () => (float n, float v1) { n = Div(W, x) v1 = Add(V, x) }', W='n', V='v1')
    c.step(lambda s, x: dict(W=s.W / x, n=s.W / x, V=s.V + x, v1=s.V + x, y=x * s.W), x=2)
    c.fail(x=0)
    c.step(lambda s, x: dict(W=s.W / x, n=s.W / x, V=s.V + x, v1=s.V + x, y=x * s.W), x=4)


@case('T-STEP-6', findings=['non-finite-value'])
def begins_at_infinity(c):
    """A variable may begin at infinity if the step makes it finite: the best loss so far."""
    c.graph('m (float x) => (float y) <float best, float W = {1}> { y = Mul(x, W) }')
    c.hold(c.model.graph, 'best', np.inf)
    c.entry('a () => (float b1) { b1 = Min(best, y) }', best='b1')
    c.steps(lambda s, x: dict(best=np.minimum(s.best, x * s.W), b1=np.minimum(s.best, x * s.W), y=x * s.W), x=[3, 5, 2])


@case('T-STEP-6')
def output_may_be_infinite(c):
    """Outputs that no variable takes may be anything."""
    c.graph('m (float x) => (float y) <float W = {1}> { y = Log(x) }')
    c.entry('a () => (float n) { n = Add(W, x) }', W='n')
    c.step(lambda s, x: dict(W=s.W + x, n=s.W + x, y=-np.inf), x=0)


@case('T-STEP-6')
def constant_may_be_infinite(c):
    """A constant that is infinite, as masks have it, is not looked at."""
    c.graph('m (float[2] x) => (float[2] y) <float[2] W = {1, 2}, float[2] mask> { h = Add(x, mask) y = Softmax(h) }')
    c.hold(c.model.graph, 'mask', [0, -np.inf])
    c.entry('a () => (float[2] n) { n = Sub(W, y) }', W='n')
    c.repeat(2, lambda s, x: dict(W=s.W - [1, 0], n=s.W - [1, 0], y=[1, 0]), x=[3, 4])
