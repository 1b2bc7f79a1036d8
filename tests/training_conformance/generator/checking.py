# SPDX-License-Identifier: Apache-2.0
"""Files that a checker has something to say about: some run, some must be refused."""
import numpy as np
from onnx import AttributeProto, TensorProto, helper

from .kit import TRAINING, case, refused

G = TRAINING + '.Gradient'
SCALE = 'm (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }'
ADD = 'a () => (float[2] n) { n = Add(W, x) }'


def scale_step(s, x):
    return dict(W=s.W + x, n=s.W + x, y=x * s.W)


@case('T-CHECK-1', findings=['dead-binding'])
def variable_that_nothing_reads(c):
    """A variable is assigned, but no graph reads it."""
    c.graph('m (float[2] x) => (float[2] y) <float[2] W = {1, 2}, float[2] D = {0, 0}> { y = Mul(x, W) }')
    c.entry('a () => (float[2] n, float[2] d) { n = Add(W, x) d = Neg(x) }', W='n', D='d')
    c.step(lambda s, x: dict(W=s.W + x, n=s.W + x, D=-x, d=-x, y=x * s.W), x=[1, 1])


@case('T-CHECK-1', findings=['dead-binding'])
def variable_bound_to_itself(c):
    """A binding that assigns a variable to itself does nothing."""
    c.graph(SCALE)
    info = c.entry('a () => (float[2] n) { n = Add(W, x) }', W='W')
    info.algorithm.output.append(helper.make_tensor_value_info('W', 1, [2]))
    c.start()
    c.actions.append('step')
    c.data.append((dict(x=[1, 1]), dict(y=[1, 2], n=[2, 3], W=[1, 2])))
    c.states.append(c.state)


@case('T-CHECK-2', findings=['unused-gradient'])
def gradient_of_a_weight_that_stays(c):
    """A gradient is taken for a weight that nothing updates: probably a forgotten binding."""
    c.graph('m (float[2] x) => (float[2] y) <float[2] W = {1, 2}, float[2] B = {0, 0}> { h = Mul(x, W) y = Add(h, B) }')
    c.entry(f'''a () => (float[2] n) {{ l = ReduceSum <keepdims = 0> (y)  gW, gB = {G} <xs = ["W", "B"], y = "l"> (W, B)
        n = Sub(W, gW)  b1 = Sub(B, gB) }}''', W='n')
    c.step(lambda s, x: dict(W=s.W - x, n=s.W - x, y=x * s.W + s.B), x=[1, 1])


@case('T-CHECK-2')
def gradient_that_is_an_output(c):
    """A gradient that is handed out may be of a weight that stays."""
    c.graph('m (float[2] x) => (float[2] y) <float[2] W = {1, 2}, float[2] B = {0, 0}> { h = Mul(x, W) y = Add(h, B) }')
    c.entry(f'''a () => (float[2] n, float[2] gB) {{ l = ReduceSum <keepdims = 0> (y)  gW, gB = {G} <xs = ["W", "B"], y = "l"> (W, B)
        n = Sub(W, gW) }}''', W='n')
    c.step(lambda s, x: dict(W=s.W - x, n=s.W - x, gB=[1, 1], y=x * s.W + s.B), x=[1, 1])


@case('T-CHECK-3', findings=['no-gradient-path'])
def weight_behind_a_step_function(c):
    """The only way from y to a trained weight leads through Round: the gradient is zero, always."""
    c.graph('m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { h = Mul(x, W) y = Round(h) }')
    c.entry(f'a () => (float[2] n) {{ l = ReduceSum <keepdims = 0> (y) g = {G} <xs = ["W"], y = "l"> (W) n = Sub(W, g) }}', W='n')
    c.step(lambda s, x: dict(W=s.W, n=s.W, y=np.round(x * s.W)), x=[1.4, 1.4])


@case('T-CHECK-3', findings=['no-gradient-path'])
def trained_weight_that_y_does_not_read(c):
    """y does not depend on a weight that is trained by its gradient."""
    c.graph('m (float[2] x) => (float[2] y) <float[2] W = {1, 2}, float[2] U = {3, 4}> { h = Mul(x, W) y = Add(h, U) }')
    c.entry(f'''a () => (float[2] n, float[2] u) {{ l = ReduceSum <keepdims = 0> (h)
        gW, gU = {G} <xs = ["W", "U"], y = "l"> (W, U)  n = Sub(W, gW)  u = Sub(U, gU) }}''', W='n', U='u')
    c.step(lambda s, x: dict(W=s.W - x, n=s.W - x, U=s.U, u=s.U, y=x * s.W + s.U), x=[1, 1])


@refused('T-CHECK-4', findings='bad-types')
def convolution_with_wrong_channels(c):
    """A Conv whose weights are for another number of channels, in the inference graph."""
    c.graph('m (float[N, 3, 4, 4] x) => (float[N, 1, 3, 3] y) <float[1, 2, 2, 2] W = {1, 2, 3, 4, 5, 6, 7, 8}> { y = Conv(x, W) }')
    c.entry('a () => (float[1, 2, 2, 2] n) { n = Neg(W) }', W='n')


@refused('T-CHECK-4', findings='bad-types')
def convolution_with_wrong_channels_in_the_algorithm(c):
    """The same in the algorithm."""
    c.graph('m (float[N, 3, 4, 4] x) => (float[N, 3, 4, 4] y) <float[1, 2, 2, 2] W = {1, 2, 3, 4, 5, 6, 7, 8}> { y = Neg(x) }')
    c.entry('a () => (float[1, 2, 2, 2] n) { k = Conv(x, W) s = ReduceSum <keepdims = 0> (k) n = Add(W, s) }', W='n')


@case('T-CHECK-4', findings=['bad-types'])
def product_of_wrong_shapes(c):
    """A MatMul of shapes that do not fit, in the algorithm."""
    c.graph('m (float[2, 3] x) => (float[2, 3] y) <float[2, 3] W = {1, 2, 3, 4, 5, 6}> { y = Mul(x, W) }')
    c.entry('a () => (float[2, 3] n) { n = MatMul(W, x) }', W='n')
    c.checked = False
    c.fail(x=[[1, 2, 3], [4, 5, 6]])


@case('T-CHECK-4', findings=['bad-types'])
def addition_of_two_types(c):
    """An Add of float and double, in the algorithm."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n) <double[2] K = {1, 2}> { n = Add(W, K) }', W='n')
    c.checked = False
    c.fail(x=[1, 1])


@case('T-CHECK-4', findings=['bad-types'])
def product_of_wrong_shapes_in_a_branch(c):
    """A branch that could not run, and is not taken."""
    c.checked = False
    c.graph(SCALE)
    c.entry('''a () => (float[2] n) <bool odd = {0}, float[3, 2] K = {1, 2, 3, 4, 5, 6}> {
        n = If (odd) <then_branch = t () => (float[2] p) { p = MatMul(x, K) },
                      else_branch = e () => (float[2] q) { q = Add(W, x) }> }''', W='n')
    c.step(scale_step, x=[1, 1])


@case('T-CHECK-5', findings=['declared-type'])
def declared_shape_is_wrong(c):
    """An output of the algorithm declares another shape than is computed: it runs, and a checker says so."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n, float[3] k) { n = Add(W, x) k = Neg(x) }', W='n')
    c.step(lambda s, x: dict(W=s.W + x, n=s.W + x, k=-x, y=x * s.W), x=[1, 1])


@case('T-CHECK-6', findings=['ir-version'])
def functions_below_ir_8(c):
    """Functions need IR version 8."""
    c.checked = False
    c.graph(SCALE + '<domain: "local", opset_import: ["" : 13]> plus (a, b) => (c) { c = Add(a, b) }', ir=7, opset=13)
    c.entry('a () => (float[2] n) { n = local.plus(W, x) }', W='n')
    c.step(scale_step, x=[1, 1])


@case('T-CHECK-6', findings=['ir-version'])
def overloaded_functions_below_ir_10(c):
    """Functions are overloaded since IR version 10."""
    c.checked = False
    c.graph(SCALE + '<domain: "local", opset_import: ["" : 18]> plus (a, b) => (c) { c = Add(a, b) }', ir=9, opset=18)
    c.model.functions[0].overload = 'two'
    info = c.entry('a () => (float[2] n) { n = local.plus(W, x) }', W='n')
    info.algorithm.node[0].overload = 'two'
    c.step(scale_step, x=[1, 1])


@case('T-CHECK-6', findings=['ir-version'])
def opset_beyond_the_ir(c):
    """Opset 21 came with IR version 10; the file says 8."""
    c.graph(SCALE, ir=8, opset=21)
    c.entry(ADD, W='n')
    c.step(scale_step, x=[1, 1])


@case('T-CHECK-6')
def ir_newer_than_the_opset(c):
    """A newer IR version than the opset's release is fine."""
    c.graph(SCALE, ir=13, opset=15)
    c.entry(ADD, W='n')
    c.step(scale_step, x=[1, 1])


@refused('T-CHECK-7', findings='no-opset')
def training_domain_not_imported(c):
    """Gradient is used, but ai.onnx.preview.training is not imported."""
    c.graph(SCALE)
    c.entry(f'a () => (float[2] n) {{ l = ReduceSum <keepdims = 0> (y) g = {G} <xs = ["W"], y = "l"> (W) n = Sub(W, g) }}', W='n')
    kept = [o for o in c.model.opset_import if o.domain != TRAINING]
    del c.model.opset_import[:]
    c.model.opset_import.extend(kept)


@refused('T-CHECK-7', findings='no-opset')
def training_domain_not_imported_for_a_branch(c):
    """Gradient is used in branches of an If alone, but ai.onnx.preview.training is not imported."""
    c.graph(SCALE)
    c.entry(f'''a () => (float[2] n) <bool up = {{1}}> {{ l = ReduceSum <keepdims = 0> (y)
        n = If (up) <then_branch = t () => (float[2] p) {{ g = {G} <xs = ["W"], y = "l"> (W) p = Sub(W, g) }},
                     else_branch = e () => (float[2] q) {{ q = Identity(W) }}> }}''', W='n')
    kept = [o for o in c.model.opset_import if o.domain != TRAINING]
    del c.model.opset_import[:]
    c.model.opset_import.extend(kept)


@case('T-CHECK-7', findings=['opset-version'])
def domain_of_functions_not_imported(c):
    """A function of the file is called, but its domain is not imported."""
    c.checked = False
    c.graph(SCALE + '<domain: "own", opset_import: ["" : 18]> twice (a) => (b) { b = Add(a, a) }')
    c.entry('a () => (float[2] n) { t = own.twice(x) n = Add(W, t) }', W='n')
    c.step(lambda s, x: dict(W=s.W + 2 * x, n=s.W + 2 * x, y=x * s.W), x=[1, 1])


@case('T-CHECK-7', findings=['opset-version'])
def function_that_imports_nothing(c):
    """A function uses operators of a domain that it does not import."""
    c.checked = False
    c.graph(SCALE + '<domain: "local", opset_import: ["" : 18]> twice (a) => (b) { b = Add(a, a) }')
    del c.model.functions[0].opset_import[:]
    c.entry('a () => (float[2] n) { t = local.twice(x) n = Add(W, t) }', W='n')
    c.step(lambda s, x: dict(W=s.W + 2 * x, n=s.W + 2 * x, y=x * s.W), x=[1, 1])


@refused('T-CHECK-7', findings='unknown-operator')
def operator_of_a_later_opset(c):
    """An operator that the imported opset does not have."""
    c.graph('m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }', ir=8, opset=17)
    c.entry('a () => (float[2] n) { t = Mish(x) n = Add(W, t) }', W='n')


@refused('T-CHECK-7', findings='unknown-operator')
def operator_that_does_not_exist(c):
    """A misspelt operator."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n) { n = Addd(W, x) }', W='n')


@case('T-CHECK-7', findings=['opset-version'])
def version_of_the_training_domain(c):
    """ai.onnx.preview.training has one version, 1."""
    c.checked = False
    c.graph(SCALE)
    for o in c.model.opset_import:
        if o.domain == TRAINING:
            o.version = 2
    c.entry(ADD, W='n')
    c.step(scale_step, x=[1, 1])


@refused('T-CHECK-8', findings=['undefined-output'])
def output_that_nothing_produces(c):
    """The algorithm lists an output that nothing produces."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n, float[2] ghost) { n = Add(W, x) }', W='n')


@refused('T-CHECK-8', findings=['no-output', 'bad-node'])
def node_without_outputs(c):
    """A node of the algorithm has no outputs."""
    c.graph(SCALE)
    info = c.entry(ADD, W='n')
    info.algorithm.node.append(helper.make_node('Neg', ['x'], []))


@refused('T-CHECK-8', findings=['bad-node'])
def attribute_that_does_not_exist(c):
    """A node of the algorithm has an attribute that its operator lacks."""
    c.graph(SCALE)
    c.entry('a () => (float[2] n) { n = Add <axis = 1> (W, x) }', W='n')


@refused('T-CHECK-8', findings=['no-name'])
def input_without_a_name(c):
    """An input of the algorithm has no name, so that nothing can be fed for it."""
    c.graph(SCALE)
    info = c.entry(ADD, W='n')
    info.algorithm.input.append(helper.make_tensor_value_info('', 1, [2]))


@refused('T-CHECK-8', findings=['stray-reference'])
def reference_outside_of_a_function(c):
    """An attribute refers to one of the call, but its node is in no function."""
    c.graph('m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }')
    info = c.entry('a () => (float[2] n) { t = LeakyRelu(x) n = Add(W, t) }', W='n')
    reference = info.algorithm.node[0].attribute.add(name='alpha', type=AttributeProto.FLOAT)
    reference.ref_attr_name = 'slope'


@refused('T-CHECK-8', findings=['unreadable-graph'])
def element_type_that_does_not_exist(c):
    """An initializer of the algorithm has an element type that the standard does not know: nothing can be said of the rest."""
    c.graph(SCALE)
    info = c.entry(ADD, W='n')
    info.algorithm.initializer.append(TensorProto(name='K', data_type=99, dims=[1], raw_data=b'\0\0\0\0'))


@refused('T-CHECK-8', findings=['bad-function'])
def function_that_calls_itself(c):
    """Functions may not be recursive."""
    c.graph(SCALE + '<domain: "local", opset_import: ["" : 18, "local" : 1]> again (a) => (b) { b = local.again(a) }')
    c.entry('a () => (float[2] n) { t = local.again(x) n = Add(W, t) }', W='n')


@refused('T-CHECK-8', findings=['duplicate-function'])
def function_defined_twice(c):
    """Two functions of one name."""
    c.graph(SCALE + '<domain: "local", opset_import: ["" : 18]> twice (v) => (w) { w = Add(v, v) }')
    c.model.functions.append(c.model.functions[0])
    c.entry(ADD, W='n')


@case('T-CHECK-9', findings=['non-finite-value'])
def variable_with_nan(c):
    """A variable that holds NaN: its steps can only fail."""
    c.graph('m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }')
    c.hold(c.model.graph, 'W', [1, np.nan])
    c.entry(ADD, W='n')
    c.fail(x=[1, 1])
