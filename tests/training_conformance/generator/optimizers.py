# SPDX-License-Identifier: Apache-2.0
"""Adagrad, Adam and Momentum of ai.onnx.preview.training, as the standard's pseudo-code has them."""
import numpy as np
from onnx import TensorProto

from .kit import TRAINING, case, f32, refused


def adagrad(R, T, X, G, H, epsilon=1e-6, decay_factor=0.0, norm_coefficient=0.0):
    r = R / (1 + T * f32(decay_factor))
    g = f32(norm_coefficient) * X + G
    h = H + g * g
    return X - r * g / (np.sqrt(h) + f32(epsilon)), h


def momentum(R, T, X, G, V, alpha, beta, norm_coefficient, mode):
    g = f32(norm_coefficient) * X + G
    v = f32(alpha) * V + (f32(beta) if T > 0 else 1) * g
    return X - R * (v if mode == 'standard' else g + f32(alpha) * v), v


def adam(R, T, X, G, V, H, alpha=0.9, beta=0.999, epsilon=1e-6, norm_coefficient=0.0, norm_coefficient_post=0.0):
    alpha, beta = f32(alpha), f32(beta)
    g = f32(norm_coefficient) * X + G
    v = alpha * V + (1 - alpha) * g
    h = beta * H + (1 - beta) * g * g
    r = R * np.sqrt(1 - beta ** T) / (1 - alpha ** T) if T > 0 else R
    return (1 - f32(norm_coefficient_post)) * (X - r * v / (np.sqrt(h) + f32(epsilon))), v, h


STATE = {'Adagrad': 'H', 'Momentum': 'V', 'Adam': 'VH'}
FORMULA = {'Adagrad': adagrad, 'Momentum': momentum, 'Adam': adam}


def text_of(attributes):
    return ', '.join(f'{k} = "{v}"' if isinstance(v, str) else f'{k} = {float(v)!r}' for k, v in attributes.items())


def optimizer_case(name, rules, about, op, start=0, steps=3, type='float', tensors=1, **attributes):
    """Gradients are inputs, so that nothing but the optimizer is tested; T counts up from `start`."""
    def write(c):
        states = STATE[op]
        names = [f'X{i}' for i in range(tensors)]
        shapes = [(2, 3), (4,), ()][:tensors]
        elem = {'float': TensorProto.FLOAT, 'double': TensorProto.DOUBLE}[type]
        dims = [''.join(f'[{", ".join(map(str, s))}]') if s else '' for s in shapes]
        held = ', '.join(f'{type}{d} {n}' for n, d in zip(names, dims))
        c.graph(f'm ({type} x) => ({type} y) <{held}> {{ y = Identity(x) }}')
        r = np.random.RandomState(7)
        for n, s in zip(names, shapes):
            c.hold(c.model.graph, n, np.round(r.randn(*s), 2), elem)
        rows = [[f'{k}{i}' for i in range(tensors)] for k in ['X', 'G'] + list(states)]
        results = [[f'{k}{i}n' for i in range(tensors)] for k in ['X'] + list(states)]
        outputs = ', '.join(f'{type}{d} {n}' for row in results for n, d in zip(row, dims))
        inputs = ', '.join(f'{type}{d} G{i}' for i, d in enumerate(dims))
        flat = ', '.join(n for row in rows for n in row)
        marks = f'<{text_of(attributes)}>' if attributes else ''
        info = c.entry(f'''a ({type} R, {inputs}) => ({outputs}, int64 t1) <int64 T = {{{start}}}, int64 one = {{1}}> {{
            {', '.join(n for row in results for n in row)} = {TRAINING}.{op} {marks} (R, T, {flat})  t1 = Add(T, one) }}''',
                       update={**{n[:-1]: n for row in results for n in row}, 'T': 't1'})
        for k in states:
            for i, s in enumerate(shapes):
                c.hold(info.algorithm, f'{k}{i}', np.abs(np.round(r.randn(*s), 2)) if start else np.zeros(s), elem)

        def step(s, x, R, **G):
            new = {'y': x, 'T': s.T + 1, 't1': s.T + 1}
            for i in range(tensors):
                kept = [getattr(s, f'{k}{i}') for k in states]
                values = FORMULA[op](R, float(s.T), getattr(s, f'X{i}'), G[f'G{i}'], *kept, **attributes)
                for k, v in zip('X' + states, values):
                    new[f'{k}{i}'] = new[f'{k}{i}n'] = v
            return new
        for t in range(steps):
            c.step(step, x=0, R=[0.5, 0.25, 0.125][t % 3], **{f'G{i}': np.round(r.randn(*s), 2) for i, s in enumerate(shapes)})
        c.tolerance = (1e-9, 1e-10) if type == 'double' else None
    write.__doc__, write.__name__, write.__module__ = about, name, __name__
    case(*rules)(write)


o = optimizer_case
o('adagrad', ['T-OPT-1'], 'Adagrad with its defaults, from T = 0 and H = 0.', 'Adagrad')
o('adagrad_all_attributes', ['T-OPT-1'], 'Adagrad with every attribute.', 'Adagrad', start=3, epsilon=0.01, decay_factor=0.1, norm_coefficient=0.05)
o('adagrad_decay_at_zero', ['T-OPT-1'], 'decay_factor has no effect at T = 0 and one from T = 1 on.', 'Adagrad', decay_factor=0.5)
o('adagrad_double', ['T-OPT-1', 'T-OPT-9'], 'Adagrad in double; attributes are float.', 'Adagrad', start=1, type='double', epsilon=1e-5, decay_factor=0.1, norm_coefficient=0.1)
o('adagrad_several', ['T-OPT-1', 'T-OPT-7'], 'Adagrad on three tensors of different shapes.', 'Adagrad', tensors=3, norm_coefficient=0.1)
o('momentum', ['T-OPT-2'], 'Momentum from T = 0.', 'Momentum', alpha=0.9, beta=0.5, norm_coefficient=0.0, mode='standard')
o('momentum_later', ['T-OPT-2'], 'Momentum from T = 5 with a state: beta counts from the first step.', 'Momentum', start=5, alpha=0.9, beta=0.5, norm_coefficient=0.1, mode='standard')
o('momentum_double', ['T-OPT-2', 'T-OPT-9'], 'Momentum in double.', 'Momentum', start=1, type='double', alpha=0.9, beta=0.1, norm_coefficient=0.001, mode='standard')
o('momentum_several', ['T-OPT-2', 'T-OPT-7'], 'Momentum on three tensors.', 'Momentum', tensors=3, alpha=0.95, beta=1.0, norm_coefficient=0.01, mode='standard')
o('nesterov', ['T-OPT-3'], 'Nesterov from T = 0.', 'Momentum', alpha=0.9, beta=0.5, norm_coefficient=0.0, mode='nesterov')
o('nesterov_later', ['T-OPT-3'], 'Nesterov from T = 5 with a state and weight decay.', 'Momentum', start=5, alpha=0.8, beta=0.7, norm_coefficient=0.1, mode='nesterov')
o('nesterov_several', ['T-OPT-3', 'T-OPT-7'], 'Nesterov on two tensors, double.', 'Momentum', tensors=2, type='double', alpha=0.95, beta=0.1, norm_coefficient=0.01, mode='nesterov')
o('adam_from_one', ['T-OPT-4'], 'Adam from T = 1, as PyTorch counts.', 'Adam', start=1)
o('adam_at_zero', ['T-OPT-5'], 'Adam from T = 0: no bias correction in that step.', 'Adam', start=0)
o('adam_all_attributes', ['T-OPT-4'], 'Adam with every attribute.', 'Adam', start=2, alpha=0.8, beta=0.95, epsilon=0.01, norm_coefficient=0.05, norm_coefficient_post=0.02)
o('adam_late', ['T-OPT-4'], 'Adam at T = 1000: the correction is nearly one.', 'Adam', start=1000)
o('adam_double', ['T-OPT-4', 'T-OPT-9'], 'Adam in double; attributes are float.', 'Adam', start=1, type='double', alpha=0.9, beta=0.99, epsilon=1e-4, norm_coefficient=0.1, norm_coefficient_post=0.1)
o('adam_post_decay', ['T-OPT-4'], 'norm_coefficient_post shrinks after the step and is not scaled by R.', 'Adam', start=1, norm_coefficient_post=0.25)
o('adam_several', ['T-OPT-4', 'T-OPT-7'], 'Adam on three tensors.', 'Adam', start=1, tensors=3, norm_coefficient=0.01)
o('adam_several_at_zero', ['T-OPT-5', 'T-OPT-7'], 'Adam on two tensors from T = 0, double.', 'Adam', tensors=2, type='double')


@case('T-OPT-4', 'T-GRAD-1')
def adam_with_gradient(c):
    """A whole training: least squares, Gradient and Adam on two tensors, the counter from 1."""
    c.graph('m (float[4, 2] x) => (float[4, 1] y) <float[2, 1] W = {0.5, -0.25}, float[1] b = {0.1}> { h = MatMul(x, W) y = Add(h, b) }')
    c.entry(f'''a (float[4, 1] label) => (float loss, float[2, 1] W1, float[1] b1, float[2, 1] VW1, float[1] Vb1, float[2, 1] HW1, float[1] Hb1, int64 t1)
        <float R = {{0.1}}, int64 T = {{1}}, int64 one = {{1}}, float[2, 1] VW = {{0, 0}}, float[1] Vb = {{0}}, float[2, 1] HW = {{0, 0}}, float[1] Hb = {{0}}> {{
        e = Sub(y, label)  e2 = Mul(e, e)  loss = ReduceMean <keepdims = 0> (e2)
        gW, gb = {TRAINING}.Gradient <xs = ["W", "b"], zs = ["x"], y = "loss"> (W, b, x)
        W1, b1, VW1, Vb1, HW1, Hb1 = {TRAINING}.Adam (R, T, W, b, gW, gb, VW, Vb, HW, Hb)  t1 = Add(T, one) }}''',
            W='W1', b='b1', VW='VW1', Vb='Vb1', HW='HW1', Hb='Hb1', T='t1')

    def step(s, x, label):
        y = x @ s.W + s.b
        e = y - label
        d = 2 * e / e.size
        W, VW, HW = adam(s.R, float(s.T), s.W, x.T @ d, s.VW, s.HW)
        b, Vb, Hb = adam(s.R, float(s.T), s.b, d.sum(0), s.Vb, s.Hb)
        return dict(loss=np.mean(e * e), y=y, W=W, W1=W, b=b, b1=b, VW=VW, VW1=VW, Vb=Vb, Vb1=Vb, HW=HW, HW1=HW, Hb=Hb, Hb1=Hb, T=s.T + 1, t1=s.T + 1)
    r = np.random.RandomState(8)
    c.steps(step, x=list(np.round(r.randn(5, 4, 2), 2)), label=list(np.round(r.randn(5, 4, 1), 2)))


MODEL = 'm (float x) => (float y) <float[2] X = {1, 2}, float[2] V = {0, 0}> { y = Identity(x) }'


def refuse(name, rule, about, node, outputs='X1, V1', findings='bad-node', graph=MODEL, type='float'):
    def write(c):
        c.graph(graph)
        if type == 'float16':
            for n in 'XV':
                c.hold(c.model.graph, n, [1, 2], TensorProto.FLOAT16)
        c.entry(f'''a ({type} R, {type}[2] G) => ({type}[2] X1, {type}[2] V1) <int64 T = {{0}}, int64[1] Tv = {{0}}> {{
            {outputs} = {TRAINING}.{node} }}''', X='X1', V='V1')
    write.__doc__, write.__name__, write.__module__ = about, name, __name__
    refused(rule, findings=findings)(write)


M = 'Momentum <alpha = 0.9, beta = 1.0, norm_coefficient = 0.0, mode = "%s"> '
refuse('unknown_mode', 'T-OPT-6', 'A mode of Momentum that does not exist.', M % 'heavy' + '(R, T, X, G, V)', findings='bad-types')
refuse('momentum_count', 'T-OPT-8', 'Momentum takes three tensors for each one it updates.', M % 'standard' + '(R, T, X, G)', findings='optimizer-count')
refuse('adagrad_count', 'T-OPT-8', 'Adagrad takes three tensors for each one it updates.', 'Adagrad (R, T, X, G, V, V)', findings='optimizer-count')
refuse('adam_count', 'T-OPT-8', 'Adam takes four tensors for each one it updates.', 'Adam (R, T, X, G, V)', findings='optimizer-count')
refuse('too_many_outputs', 'T-OPT-8', 'More outputs than the inputs give.', M % 'standard' + '(R, T, X, G, V)', outputs='X1, V1, Z1', findings='optimizer-count')
refuse('state_of_another_shape', 'T-OPT-8', 'A state is as large as its variable.', M % 'standard' + '(R, T, X, G, V)', findings='bad-types',
       graph='m (float x) => (float y) <float[2] X = {1, 2}, float[3] V = {0, 0, 0}> { y = Identity(x) }')
refuse('missing_mode', 'T-OPT-8', 'The attributes of Momentum are required.', 'Momentum (R, T, X, G, V)')
refuse('float16_tensors', 'T-OPT-9', 'Optimizers of the standard take float and double alone.', M % 'standard' + '(R, T, X, G, V)', type='float16',
       findings='bad-types', graph='m (float16 x) => (float16 y) <float16[2] X, float16[2] V> { y = Identity(x) }')
