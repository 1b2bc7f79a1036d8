# SPDX-License-Identifier: Apache-2.0
"""Files that examples/mnist/add_training.py makes of inference models: what a converter would write."""
import os
import sys

import numpy as np

from .kit import case
from .optimizers import adam

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..', 'examples', 'mnist'))
from add_training import add_training  # noqa: E402


def softmax(z):
    p = np.exp(z - z.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)


def classifier(c, **options):
    c.graph('''m (float[N, 3] x) => (float[N, 2] scores) <float[3, 4] U, float[4] a = {0.1, -0.1, 0, 0.2}, float[4, 2] V, float[2] b = {0, 0.1}> {
        h = Gemm(x, U, a)  t = Tanh(h)  scores = Gemm(t, V, b) }''')
    r = np.random.RandomState(11)
    c.hold(c.model.graph, 'U', np.round(r.randn(3, 4), 2))
    c.hold(c.model.graph, 'V', np.round(r.randn(4, 2), 2))
    add_training(c.model, **options)
    return r


def step_of(weights, rate):
    def step(s, x, label):
        t = np.tanh(x @ s.U + s.a)
        z = t @ s.V + s.b
        p = softmax(z)
        n = len(label)
        dz = (p - np.eye(2)[label]) / n
        dh = dz @ s.V.T * (1 - t * t)
        gradients = dict(U=x.T @ dh, a=dh.sum(0), V=t.T @ dz, b=dz.sum(0))
        new = dict(scores=z, loss=-np.log(p[np.arange(n), label]).mean(), T=s.T + 1, T_new=s.T + 1)
        for w in weights:
            values = adam(np.float32(rate).astype(float), float(s.T), getattr(s, w), gradients[w], getattr(s, w + '_V'), getattr(s, w + '_H'), epsilon=1e-8)
            for name, value in zip((w, w + '_V', w + '_H'), values):
                new[name] = new[name + '_new'] = value
        return new
    return step


@case('T-GRAD-1', 'T-OPT-4', 'T-RUN-2')
def classifier_with_adam(c):
    """All weights of a two-layer classifier, made trainable by the copyable helper; batches of different sizes."""
    r = classifier(c, rate=0.05)
    step = step_of(['U', 'a', 'V', 'b'], 0.05)
    for n in (4, 2, 5):
        c.step(step, x=np.round(r.randn(n, 3), 2), label=r.randint(0, 2, n))
    c.reload()
    c.step(step, x=np.round(r.randn(3, 3), 2), label=[0, 1, 1])
    c.infer(lambda s, x: dict(scores=np.tanh(x @ s.U + s.a) @ s.V + s.b), x=np.eye(3))


@case('T-BIND-13', 'T-OPT-7')
def only_the_head(c):
    """The helper trains the last layer and leaves the first one as it is."""
    r = classifier(c, weights=['V', 'b'], rate=0.1)
    step = step_of(['V', 'b'], 0.1)
    for n in (4, 4, 4):
        c.step(step, x=np.round(r.randn(n, 3), 2), label=r.randint(0, 2, n))
