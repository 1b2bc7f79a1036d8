#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a classifier trainable: adds cross entropy, a Gradient node and Adam to an ONNX model. Needs the onnx package alone.

    add_training.py model.onnx trainable.onnx

For authors of converters, to be copied: docs/trainable-files.md explains every step.
"""
import sys

import onnx
from onnx import TensorProto, helper

TRAINING = 'ai.onnx.preview.training'


def scalar(name, value, elem_type):
    return helper.make_tensor(name, elem_type, [], [value])


def zeros(name, like):
    count = 1
    for size in like.dims:
        count *= size
    return helper.make_tensor(name, like.data_type, like.dims, [0.0] * count)


def add_training(model, weights=None, rate=1e-3):
    """`weights`: names of the initializers to train, all float ones if None. The first output holds the scores, [N, classes]."""
    graph = model.graph
    initializers = {t.name: t for t in graph.initializer}
    if weights is None:
        weights = [n for n, t in initializers.items() if t.data_type == TensorProto.FLOAT]
    scores = graph.output[0].name
    types = {n: (initializers[n].data_type, list(initializers[n].dims)) for n in weights}

    # What the step keeps from one call to the next: T counts from 1, V and H are Adam's.
    state = [scalar('T', 1, TensorProto.INT64)]
    state += [zeros(f'{n}_{k}', initializers[n]) for k in 'VH' for n in weights]
    constants = [scalar('R', rate, TensorProto.FLOAT), scalar('one', 1, TensorProto.INT64)]

    # The step. It is joined with the inference graph, so it reads the scores and the weights by their names.
    gradients = [n + '_grad' for n in weights]
    rows = [weights, gradients, [n + '_V' for n in weights], [n + '_H' for n in weights]]
    results = [[n + '_new' for n in row] for row in (rows[0], rows[2], rows[3])]
    nodes = [
        helper.make_node('SoftmaxCrossEntropyLoss', [scores, 'label'], ['loss'], reduction='mean'),
        helper.make_node('Gradient', weights, gradients, domain=TRAINING, xs=weights, y='loss'),
        helper.make_node('Adam', ['R', 'T'] + sum(rows, []), sum(results, []), domain=TRAINING, alpha=0.9, beta=0.999, epsilon=1e-8),
        helper.make_node('Add', ['T', 'one'], ['T_new']),
    ]
    outputs = [helper.make_tensor_value_info('loss', TensorProto.FLOAT, [])]
    outputs += [helper.make_tensor_value_info(new, *types[n]) for row in results for new, n in zip(row, weights)]
    outputs += [helper.make_tensor_value_info('T_new', TensorProto.INT64, [])]
    label = helper.make_tensor_value_info('label', TensorProto.INT64, [None])
    algorithm = helper.make_graph(nodes, 'step', [label], outputs, state + constants)

    # Where the results go after the step: every name_new replaces name.
    info = model.training_info.add(algorithm=algorithm)
    for new in sum(results, []) + ['T_new']:
        info.update_binding.add(key=new[:-len('_new')], value=new)

    model.ir_version = max(model.ir_version, 7)
    if TRAINING not in [o.domain for o in model.opset_import]:
        model.opset_import.append(helper.make_opsetid(TRAINING, 1))
    # What the standard has no field for; Onward reads it, others may leave it.
    helper.set_model_props(model, {**{p.key: p.value for p in model.metadata_props},
                                   'onward.loss_value': 'loss', 'onward.output_value': scores, 'onward.label_input': 'label'})
    return model


if __name__ == '__main__':
    onnx.save(add_training(onnx.load(sys.argv[1])), sys.argv[2])
