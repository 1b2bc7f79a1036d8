# SPDX-License-Identifier: Apache-2.0
"""What the cases of the kit are written with.

A case is a function that states a model (in ONNX text), its training entries and, for every action, what has to come out of it. The
expectation is a Python function in numpy and float64, written by hand beside the model; no runtime takes part. `write` turns a
case into its folder, with the same bytes each time.
"""
import json
import os
from types import SimpleNamespace

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

HEADER = '<ir_version: {ir}, opset_import: ["" : {opset}, "ai.onnx.preview.training" : 1, "local" : 1]>'
TRAINING = 'ai.onnx.preview.training'
CASES = []

# How far a result may be from the exact one, by the coarsest element type that a case computes in.
TOLERANCES = {
    TensorProto.DOUBLE: (1e-9, 1e-12),
    TensorProto.FLOAT: (1e-4, 1e-6),
    TensorProto.FLOAT16: (4e-3, 1e-3),
    TensorProto.BFLOAT16: (3e-2, 1e-2),
}


def f32(value):
    """An attribute of ONNX: 0.9 is 0.89999998."""
    return float(np.float32(value))


def case(*rules, expect='run', findings=()):
    """Registers a case: its group is the file's name, its name the function's, its description the doc string."""
    def register(function):
        group = function.__module__.rsplit('.', 1)[-1]
        CASES.append((group, function.__name__, rules, expect, list(findings), function))
        return function
    return register


def refused(*rules, findings):
    """A file that must not be trained; `findings` is what Onward's checker calls the reasons."""
    findings = [findings] if isinstance(findings, str) else list(findings)
    return case(*rules, expect='refuse', findings=findings)


def wide(array):
    """Numbers as float64, everything else as it is."""
    array = np.asarray(array)
    return array.astype(np.float64) if array.dtype.kind in 'fV' or 'float' in array.dtype.name else array


def typed(values, elem_type):
    if elem_type == TensorProto.STRING:
        return np.asarray(values, dtype=object)
    return np.asarray(values).astype(helper.tensor_dtype_to_np_dtype(elem_type))


class Case:
    def __init__(self, folder):
        self.folder = folder
        self.model = None
        self.actions = []
        self.data = []       # per action: (feeds, outputs) or None
        self.states = []     # per action, and one before the first
        self.drawn = {}
        self.files = {}      # external data
        self.tail = b''       # appended to the model's bytes
        self.tolerance = None
        self.checked = True  # whether onnx's own checker takes the combined model
        self.state = None

    # The file.

    def graph(self, text, ir=10, opset=18):
        """The inference graph; functions may follow it."""
        self.model = parser.parse_model(HEADER.format(ir=ir, opset=opset) + text)
        return self.model.graph

    def entry(self, text=None, update=None, init=None, start=None, **updates):
        """One TrainingInfoProto; bindings as {variable: value} or [(variable, value)]."""
        info = self.model.training_info.add()
        if text is not None:
            info.algorithm.CopyFrom(parser.parse_graph(text))
        if init is not None:
            info.initialization.CopyFrom(parser.parse_graph(init))
        update = updates if update is None else update
        for bindings, field in ((update, info.update_binding), (start or {}, info.initialization_binding)):
            for key, value in bindings.items() if isinstance(bindings, dict) else bindings:
                field.add(key=key, value=value)
        return info

    def hold(self, graph, name, values, elem_type=TensorProto.FLOAT):
        """An initializer that the text has no notation for."""
        tensor = numpy_helper.from_array(typed(values, elem_type), name)
        for known in graph.initializer:
            if known.name == name:
                known.CopyFrom(tensor)
                return known
        graph.initializer.append(tensor)
        return graph.initializer[-1]

    def externalise(self, tensor, location, offset=0):
        """Moves a tensor's bytes into a file beside the model."""
        array = numpy_helper.to_array(tensor)
        data = self.files.get(location, b'').ljust(offset, b'\0') + array.tobytes()
        self.files[location] = data
        for field in ('raw_data', 'float_data', 'double_data', 'int32_data', 'int64_data', 'uint64_data'):
            tensor.ClearField(field)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (('location', location), ('offset', offset), ('length', array.nbytes)):
            tensor.external_data.add(key=key, value=str(value))

    # What is done with it.

    def start(self):
        if self.state is not None:
            return
        bound = {b.key for i in self.model.training_info
                 for b in list(i.update_binding) + list(i.initialization_binding)}
        graphs = [self.model.graph] + [i.algorithm for i in self.model.training_info]
        held = {t.name: t for g in graphs for t in g.initializer}
        self.types = {name: t.data_type for name, t in held.items()}
        external = {name: self.files[e['location']][int(e['offset']):int(e['offset']) + int(e['length'])]
                    for name, t in held.items() if t.data_location == TensorProto.EXTERNAL
                    for e in [{x.key: x.value for x in t.external_data}]}
        self.state = {}
        self.constants = {}
        for name, t in held.items():
            if name in external:
                array = np.frombuffer(external[name], helper.tensor_dtype_to_np_dtype(t.data_type)).reshape(t.dims)
            else:
                array = numpy_helper.to_array(t)
            (self.state if name in bound else self.constants)[name] = wide(array)
        self.states.append(self.state)

    def act(self, action, expected, feeds):
        """`expected(state, **feeds)` gives the new values of variables and the outputs, by name."""
        self.start()
        self.actions.append(action)
        now = {**self.constants, **self.state}
        new = expected(SimpleNamespace(**now), **{k: wide_feed(v) for k, v in feeds.items()}) if expected else {}
        unknown = [k for k in new if k not in self.state and k not in self.outputs(action)]
        assert not unknown, f'{self.folder}: no such variable or output: {unknown}'
        outputs = {k: v for k, v in new.items() if k in self.outputs(action)}
        self.state = {**self.state, **{k: v for k, v in new.items() if k in self.state and k not in outputs}}
        self.data.append((feeds, outputs))
        self.states.append(self.state)

    def step(self, expected, entry=None, **feeds):
        self.act('step' if entry is None else f'step {entry}', expected, feeds)

    def steps(self, expected, **feeds):
        """One step per element of the lists."""
        for i in range(max(len(v) for v in feeds.values())):
            self.act('step', expected, {k: v[i] for k, v in feeds.items()})

    def repeat(self, count, expected, **feeds):
        for _ in range(count):
            self.act('step', expected, feeds)

    def initialize(self, **new):
        self.act('initialize', lambda s: new, {})

    def infer(self, expected, **feeds):
        self.act('infer', expected, feeds)

    def fail(self, what='step', **feeds):
        """An action that must fail and leave every variable as it was."""
        self.act(f'fail {what}', None, feeds)

    def reload(self):
        """The model is written, read again, and goes on."""
        self.act('reload', None, {})

    # Names and types of the training graph.

    def joined(self, which):
        """Inputs or outputs over all entries, in the standard's order, each once."""
        infos = self.model.training_info
        calls = any(n.op_type == 'GraphCall' for i in infos for n in i.algorithm.node)
        lists = [] if calls else [getattr(self.model.graph, which)]
        lists += [getattr(i.algorithm, which) for i in infos]
        return {v.name: v.type for values in lists for v in values}

    def outputs(self, action):
        return {v.name: v.type for v in self.model.graph.output} if action == 'infer' else self.joined('output')

    def inputs(self):
        return {**{v.name: v.type for v in self.model.graph.input}, **self.joined('input')}

    def check_combined(self):
        """onnx's checker on the inference graph followed by each algorithm."""
        for info in self.model.training_info:
            combined = onnx.ModelProto()
            combined.CopyFrom(self.model)
            del combined.training_info[:]
            g, a = combined.graph, info.algorithm
            g.input.extend(a.input)
            g.initializer.extend(a.initializer)
            g.sparse_initializer.extend(a.sparse_initializer)
            known = {o.name for o in g.output}
            g.output.extend(o for o in a.output if o.name not in known)
            g.node.extend(a.node)
            onnx.checker.check_model(combined)

    # The folder.

    def write(self, rules, expect, findings, about):
        if expect == 'run':
            self.start()
            if self.checked and not self.files:
                self.check_combined()
        files = {'model.onnx': self.model.SerializeToString(deterministic=True) + self.tail, **self.files}
        rtol, atol = self.tolerance or self.natural_tolerance()
        facts = {'about': about, 'rules': list(rules), 'expect': expect, 'findings': findings}
        if self.actions or expect == 'run':
            # Of what must not be trained inference may be asked for, and nothing else.
            assert expect == 'run' or set(self.actions) == {'infer'}
            facts.update(actions=self.actions, rtol=rtol, atol=atol)
            if self.drawn:
                facts['drawn'] = self.drawn
            for i, state in enumerate(self.states if expect == 'run' else []):
                files[f'state_{i}.pb'] = self.state_bytes(state)
            for i, (feeds, outputs) in enumerate(self.data):
                self.write_data(f'test_data_set_{i}', self.actions[i], feeds, outputs, files)
        files['case.json'] = (json.dumps(facts, indent=1, ensure_ascii=False) + '\n').encode()
        for name, data in files.items():
            path = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'wb') as out:
                out.write(data)

    def natural_tolerance(self):
        floats = [t for t in getattr(self, 'types', {}).values() if t in TOLERANCES]
        floats += [v.type.tensor_type.elem_type for v in self.model.graph.input
                   if v.type.tensor_type.elem_type in TOLERANCES]
        order = [TensorProto.BFLOAT16, TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE]
        return TOLERANCES[next((t for t in order if t in floats), TensorProto.FLOAT)]

    def state_bytes(self, state):
        """A GraphProto whose initializers are the variables, sorted by name."""
        graph = onnx.GraphProto(name='state')
        for name in sorted(set(state) - set(self.drawn)):
            graph.initializer.append(numpy_helper.from_array(typed(state[name], self.types[name]), name))
        return graph.SerializeToString(deterministic=True)

    def write_data(self, folder, action, feeds, outputs, files):
        for stem, values, declared in (('input', feeds, self.inputs()), ('output', outputs, self.outputs(action))):
            # Numbers follow the places in the list of the training graph, so there may be gaps.
            for i, (name, value_type) in enumerate(declared.items()):
                if name in values:
                    files[f'{folder}/{stem}_{i}.pb'] = value_bytes(name, values[name], value_type)


def wide_feed(value):
    return [wide(v) for v in value] if isinstance(value, list) and value and isinstance(value[0], np.ndarray) else wide(value)


def value_bytes(name, value, value_type):
    if value_type.HasField('sequence_type'):
        elem = value_type.sequence_type.elem_type.tensor_type.elem_type
        proto = onnx.SequenceProto(name=name, elem_type=onnx.SequenceProto.TENSOR)
        for item in value:
            proto.tensor_values.append(numpy_helper.from_array(typed(item, elem)))
    else:
        proto = numpy_helper.from_array(typed(value, value_type.tensor_type.elem_type), name)
    return proto.SerializeToString(deterministic=True)
