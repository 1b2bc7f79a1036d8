#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the training conformance kit on a runtime: a template for other implementations.

    run_cases.py [--program PATH] [CASE or GROUP...]

Replace `Runtime` by a class of your own with the same methods. The one here drives the program `onward`, one call per action, and keeps
the state in files. Needs the packages onnx and numpy.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))


class Failed(Exception):
    """The runtime refused a file or could not do an action."""


class Runtime:
    """One model that is being trained."""
    program = 'onward'

    def __init__(self, folder, scratch):
        """Opens folder/model.onnx; raises Failed where the file must not be trained."""
        self.scratch = scratch
        self.path = self.origin = os.path.join(folder, 'model.onnx')
        self.call('step', self.path, '-n', '0')

    def initialize(self):
        # Goes back to the values that the model was opened with.
        self.path, before = self.origin, self.path
        try:
            self.advance('-n', '0', '--initialize')
        except Failed:
            self.path = before
            raise

    def step(self, feeds, entry=None):
        """One iteration, or one entry of it; returns the outputs by name."""
        extra = [] if entry is None else ['--entry', str(entry)]
        return self.advance('-n', '1', *extra, *self.write(feeds, self.scratch))

    def infer(self, feeds):
        return self.infer_file(self.path, feeds, self.scratch)

    @classmethod
    def infer_file(cls, path, feeds, scratch):
        """Inference on a file that need not be trainable."""
        out = os.path.join(scratch, 'inferred')
        cls.call('run', path, '--output-dir', out, *cls.write(feeds, scratch))
        return read_folder(out)

    def state(self):
        """Every initializer by name; those of algorithms, too."""
        model = onnx.load(self.path)
        graphs = [model.graph] + [i.algorithm for i in model.training_info]
        return {t.name: numpy_helper.to_array(t, os.path.dirname(self.path)) for g in graphs for t in g.initializer}

    def reload(self):
        """Writes the model and reads it again."""
        self.origin = self.path

    def advance(self, *arguments):
        number = len(os.listdir(self.scratch))
        out, outputs = (os.path.join(self.scratch, f'{number}{end}') for end in ('.onnx', ''))
        self.call('step', self.path, '-o', out, '--output-dir', outputs, *arguments)
        self.path = out
        return read_folder(outputs)

    @staticmethod
    def write(feeds, scratch):
        arguments = []
        for i, (name, proto) in enumerate(feeds.items()):
            path = os.path.join(scratch, f'feed{i}.pb')
            with open(path, 'wb') as f:
                f.write(proto.SerializeToString())
            arguments += ['--input', f'{name}={path}']
        return arguments

    @classmethod
    def call(cls, *arguments):
        done = subprocess.run([cls.program, *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed((done.stderr or f'exit {done.returncode}').strip())


def read_folder(folder):
    values = {}
    for file in os.listdir(folder) if os.path.isdir(folder) else []:
        path, name = os.path.join(folder, file), file.rsplit('.', 1)[0]
        values[name] = np.load(path, allow_pickle=True) if file.endswith('.npy') else read_value(path, True)
    return values


# What every runner needs.

def read_value(path, sequence):
    proto = onnx.SequenceProto() if sequence else TensorProto()
    with open(path, 'rb') as f:
        proto.ParseFromString(f.read())
    return [numpy_helper.to_array(t) for t in proto.tensor_values] if sequence else proto


def declared(model, which, infer):
    """Inputs or outputs of the training graphs: the inference graph's, then those of each algorithm, each name once."""
    calls = any(n.op_type == 'GraphCall' for i in model.training_info for n in i.algorithm.node)
    lists = [] if calls and which == 'output' and not infer else [getattr(model.graph, which)]
    lists += [] if infer and which == 'output' else [getattr(i.algorithm, which) for i in model.training_info]
    return {v.name: v.type for values in lists for v in values}


def read_data(folder, stem, types):
    values = {}
    for i, (name, value_type) in enumerate(types.items()):
        path = os.path.join(folder, f'{stem}_{i}.pb')
        if os.path.exists(path):
            sequence = value_type.HasField('sequence_type')
            proto = onnx.SequenceProto() if sequence else TensorProto()
            with open(path, 'rb') as f:
                proto.ParseFromString(f.read())
            values[name] = proto
    return values


def arrays(proto):
    if isinstance(proto, onnx.SequenceProto):
        return [numpy_helper.to_array(t) for t in proto.tensor_values]
    return numpy_helper.to_array(proto)


def same(got, expected, facts):
    if isinstance(expected, list):
        return isinstance(got, list) and len(got) == len(expected) and all(same(g, e, facts) for g, e in zip(got, expected))
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape:
        return False
    if expected.dtype.kind in 'OUSb' or expected.dtype.kind in 'iu':
        return bool(np.all(got == expected))
    return np.allclose(got.astype(np.float64), expected.astype(np.float64), facts['rtol'], facts['atol'], equal_nan=True)


def compare(what, got, expected, facts):
    for name, proto in expected.items():
        value = arrays(proto)
        if name not in got:
            raise AssertionError(f'{what} {name!r} is missing')
        if not same(got[name], value, facts):
            raise AssertionError(f'{what} {name!r} is {got[name]}, expected {value}')


def check_drawn(state, facts, first):
    for name, drawn in facts.get('drawn', {}).items():
        values = np.asarray(state[name], np.float64)
        assert drawn['low'] <= values.min() and values.max() <= drawn['high'], f'{name!r} is out of its range'
        if 'deviation' in drawn:
            error = abs(values.mean() - drawn['mean']) / drawn['deviation'] * np.sqrt(values.size)
            assert error < 5, f'the mean of {name!r} is {values.mean()}'
            assert abs(values.std() / drawn['deviation'] - 1) < 5 / np.sqrt(2 * values.size), f'the deviation of {name!r} is {values.std()}'
        if drawn.get('repeats'):
            assert np.array_equal(first.setdefault(name, values), values), f'{name!r} is drawn anew although its node has a seed'


def act(runtime, action, feeds):
    words = action.split()
    if words[0] == 'step':
        return runtime.step(feeds, *map(int, words[1:]))
    if words[0] == 'infer':
        return runtime.infer(feeds)
    getattr(runtime, words[0])()
    return {}


def load(folder):
    """The model; without training_info where that is damaged."""
    with open(os.path.join(folder, 'model.onnx'), 'rb') as f:
        data = f.read()
    try:
        return onnx.ModelProto.FromString(data)
    except DecodeError:
        return onnx.ModelProto.FromString(data[:data.rindex(b'\xa2\x01')])


def check_inference(folder, facts, scratch, runtime_class):
    """What must not be trained may still have to infer."""
    model = load(folder)
    for i, action in enumerate(facts.get('actions', [])):
        data = os.path.join(folder, f'test_data_set_{i}')
        feeds = read_data(data, 'input', declared(model, 'input', False))
        try:
            got = runtime_class.infer_file(os.path.join(folder, 'model.onnx'), feeds, scratch)
            compare('output', got, read_data(data, 'output', declared(model, 'output', True)), facts)
        except (AssertionError, Failed) as error:
            return f'action {i} ({action}): {error}'
    return ''


def run_case(folder, runtime_class):
    """Returns what is wrong, '' if nothing is."""
    with open(os.path.join(folder, 'case.json')) as f:
        facts = json.load(f)
    scratch, opened = tempfile.mkdtemp(), False
    # A file that can only fail may be refused when it is opened.
    hopeless = facts['expect'] == 'run' and all(a.startswith('fail ') for a in facts['actions'])
    try:
        runtime = runtime_class(folder, scratch)
        if facts['expect'] == 'refuse':
            return 'is not refused'
        opened = True
        model = load(folder)
        first = {}
        for i, action in enumerate(facts['actions']):
            data = os.path.join(folder, f'test_data_set_{i}')
            feeds = read_data(data, 'input', declared(model, 'input', False))
            outputs = read_data(data, 'output', declared(model, 'output', action == 'infer'))
            try:
                if action.startswith('fail '):
                    try:
                        act(runtime, action[5:], feeds)
                        return f'action {i} ({action}) does not fail'
                    except Failed:
                        pass
                else:
                    compare('output', act(runtime, action, feeds), outputs, facts)
                with open(os.path.join(folder, f'state_{i + 1}.pb'), 'rb') as f:
                    state = onnx.GraphProto.FromString(f.read())
                compare('variable', runtime.state(), {t.name: t for t in state.initializer}, facts)
                if action == 'initialize':
                    check_drawn(runtime.state(), facts, first)
            except (AssertionError, Failed) as error:
                return f'action {i} ({action}): {error}'
        return ''
    except Failed as error:
        if facts['expect'] == 'refuse' and not opened:
            return check_inference(folder, facts, scratch, runtime_class)
        return '' if hopeless and not opened else f'is refused: {error}'
    finally:
        shutil.rmtree(scratch)


def find_cases(names):
    found = sorted(root for root, _, files in os.walk(os.path.join(HERE, 'cases')) if 'case.json' in files)
    return [c for c in found if not names or any(n in ('/'.join(c.split(os.sep)[-2:]), c.split(os.sep)[-2]) for n in names)]


def main():
    parser = argparse.ArgumentParser(description='Runs the training conformance kit.')
    parser.add_argument('--program', default='onward')
    parser.add_argument('names', nargs='*')
    options = parser.parse_args()
    Runtime.program = options.program
    failed = 0
    cases = find_cases(options.names)
    for folder in cases:
        wrong = run_case(folder, Runtime)
        failed += bool(wrong)
        if wrong:
            print('/'.join(folder.split(os.sep)[-2:]), wrong, sep='  ')
    print(f'{len(cases) - failed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
