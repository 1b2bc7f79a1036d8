// SPDX-License-Identifier: Apache-2.0
// Gradients of If, Loop and Scan against central differences, once and twice.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/graph_case.h"

namespace onward::control_test {

Tensor Int(int64_t value) { return Tensor::Scalar<int64_t>(value); }
Tensor Bool(bool value) { return Tensor::Scalar<bool>(value); }
Tensor Reals(std::vector<double> values) {
  return Tensor::FromValues<double>({static_cast<int64_t>(values.size())}, values);
}

// The branch depends on the data.
constexpr char kBranch[] = R"(g (double[3] x, double[3] w) => (double[3] y) {
  s = ReduceSum <keepdims = 0> (x)
  zero = Constant <value = double {0}> ()
  c = Greater (s, zero)
  y = If (c) <
    then_branch = t () => (double[3] a) { a = Mul (x, w) },
    else_branch = e () => (double[3] b) { b0 = Exp (x) b = Mul (b0, b0) }>
})";

// What is captured comes from two levels out, and is used in both branches and outside.
constexpr char kNestedBranch[] =
    R"(g (double[2, 3] x, double[3, 2] w, bool p, bool q) => (double[2, 2] y, double[2, 3] z) {
  h = Tanh (x)
  r, z = If (p) <
    then_branch = t () => (double[2, 2] a, double[2, 3] az) {
      a1 = If (q) <
        then_branch = tt () => (double[2, 2] aa) { aa = MatMul (h, w) },
        else_branch = te () => (double[2, 2] ab) { ah = Mul (h, x) ab = MatMul (ah, w) }>
      a = Mul (a1, a1)
      az = Identity (h)
    },
    else_branch = e () => (double[2, 2] b, double[2, 3] bz) {
      bs = Softmax (h)
      b = MatMul (bs, w)
      bz = Transpose <perm = [1, 0]> (w)
    }>
  direct = MatMul (x, w)
  y = Add (r, direct)
})";

// The branches give results of different ranks.
constexpr char kRanks[] = R"(g (double[3] x, bool c) => (double y) {
  r = If (c) <
    then_branch = t () => (double[3] a) { a = Mul (x, x) },
    else_branch = e () => (double b) { b = ReduceSumSquare <keepdims = 0> (x) }>
  y = ReduceSum <keepdims = 0> (r)
})";

constexpr char kLoop[] =
    R"(g (int64 n, bool go, double[3] start, double[3] x, double[3] w) => (double[3] y, double[K, 3] all) {
  y, all = Loop (n, go, start) <
    body = b (int64 i, bool c, double[3] v) => (bool more, double[3] next, double[3] seen) {
      m = Mul (v, w)
      t = Tanh (m)
      next = Add (t, x)
      seen = Mul (next, v)
      limit = Constant <value = double {1.5}> ()
      top = ReduceMax <keepdims = 0> (next)
      more = Less (top, limit)
    }>
})";

// Only the scanned output matters; the state counts.
constexpr char kScannedOnly[] = R"(g (int64 n, double[4, 2] x, double[2] w) => (double[K, 2] all) {
  zero = Constant <value = int64 {0}> ()
  last, all = Loop (n, , zero) <
    body = b (int64 i, bool c, int64 k) => (bool more, int64 next, double[2] seen) {
      row = Gather (x, k)
      seen0 = Mul (row, w)
      fi = Cast <to = 11> (i)
      seen = Mul (seen0, fi)
      one = Constant <value = int64 {1}> ()
      next = Add (k, one)
      more = Identity (c)
    }>
})";

constexpr char kGrowing[] = R"(g (int64 n, double[2] x, double[1] w) => (double[M] y) {
  y = Loop (n, , x) <
    body = b (int64 i, bool c, double[K] v) => (bool more, double[K2] next) {
      more = Identity (c)
      s = Sin (v)
      p = Mul (s, w)
      m = ReduceMean <keepdims = 1> (v)
      next = Concat <axis = 0> (p, m)
    }>
})";

// A weight is handed from iteration to iteration unchanged; another is swapped.
constexpr char kCarriedWeights[] =
    R"(g (int64 n, double[2] a, double[2] b, double[2] w) => (double[2] x, double[2] y, double[2] z) {
  x, y, z = Loop (n, , a, b, w) <
    body = f (int64 i, bool c, double[2] p, double[2] q, double[2] u)
        => (bool more, double[2] r, double[2] s, double[2] u1) {
      more = Identity (c)
      r0 = Mul (q, u)
      r = Sin (r0)
      s = Identity (p)
      u1 = Identity (u)
    }>
})";

constexpr char kNestedLoop[] =
    R"(g (int64 n, double[2] x, double[2] w) => (double[2] y, double[K, 2] all) {
  axis = Constant <value_ints = [0]> ()
  y, all = Loop (n, , x) <
    body = outer (int64 i, bool c, double[2] v) => (bool more, double[2] next, double[2] seen) {
      more = Identity (c)
      next, parts = Loop (i, , v) <
        body = inner (int64 j, bool d, double[2] u) => (bool again, double[2] sum, double[2] part) {
          again = Identity (d)
          t = Mul (u, w)
          t1 = Sin (t)
          sum = Add (t1, v)
          part = Mul (sum, x)
        }>
      seen = ReduceSum <keepdims = 0> (parts, axis)
    }>
})";

constexpr char kBranchInLoop[] = R"(g (int64 n, double[2] x, double[2] w) => (double[2] y) {
  y = Loop (n, , x) <
    body = b (int64 i, bool c, double[2] v) => (bool more, double[2] next) {
      more = Identity (c)
      two = Constant <value = int64 {2}> ()
      r = Mod (i, two)
      odd = Cast <to = 9> (r)
      next = If (odd) <
        then_branch = t () => (double[2] a) { a0 = Mul (v, w) a = Tanh (a0) },
        else_branch = e () => (double[2] b) { b = Add (v, x) }>
    }>
})";

constexpr char kLoopInBranch[] = R"(g (int64 n, bool p, double[2] x, double[2] w) => (double[2] y) {
  y = If (p) <
    then_branch = t () => (double[2] a) {
      a, all = Loop (n, , x) <
        body = b (int64 i, bool c, double[2] v) => (bool more, double[2] next, double[2] seen) {
          more = Identity (c)
          m = Mul (v, w)
          next = Sin (m)
          seen = Exp (v)
        }>
    },
    else_branch = e () => (double[2] b) { b = Identity (w) }>
})";

// Scan with states, slices on other axes and directions, a captured weight.
constexpr char kScan[] =
    R"(g (double[2, 4] x, double[4, 3] z, double[2] h, double[2, 2] w) => (double[2] y, double[2, 4] all, double[4, 3] other) {
  y, all, other = Scan (h, x, z) <num_scan_inputs = 2, scan_input_axes = [1, 0],
      scan_input_directions = [0, 1], scan_output_axes = [-1, 0], scan_output_directions = [1, 0],
    body = b (double[2] v, double[2] s, double[3] t) => (double[2] next, double[2] o, double[3] p) {
      r = MatMul (w, v)
      a = Add (r, s)
      next = Tanh (a)
      o = Mul (next, v)
      m = ReduceSum <keepdims = 1> (s)
      p = Mul (t, m)
    }>
})";

constexpr char kScanWithoutState[] = R"(g (double[3, 2] x, double[2] w) => (double[3, 2] y) {
  y = Scan (x) <num_scan_inputs = 1,
    body = b (double[2] s) => (double[2] o) { p = Mul (s, w) o = Sin (p) }>
})";

constexpr char kScanInScan[] =
    R"(g (double[3, 2, 2] x, double[2] h, double[2] w) => (double[2] y, double[3, 2, 2] all) {
  y, all = Scan (h, x) <num_scan_inputs = 1,
    body = b (double[2] v, double[2, 2] s) => (double[2] next, double[2, 2] o) {
      next, o = Scan (v, s) <num_scan_inputs = 1,
        body = f (double[2] u, double[2] r) => (double[2] u1, double[2] q) {
          m = Mul (u, w)
          a = Add (m, r)
          u1 = Tanh (a)
          q = Mul (u1, v)
        }>
    }>
})";

// A function whose body loops, called inside a loop.
constexpr char kFunctions[] = R"(<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
g (int64 n, double[2] x, double[2] w) => (double[2] y) {
  z = local.power (n, x, w)
  y = Loop (n, , z) <
    body = b (int64 i, bool c, double[2] v) => (bool more, double[2] next) {
      more = Identity (c)
      next = local.power (i, v, x)
    }>
}
<domain: "local", opset_import: ["" : 18]>
power (m, base, factor) => (result) {
  result = Loop (m, , base) <
    body = b (int64 i, bool c, double[2] v) => (bool more, double[2] next) {
      more = Identity (c)
      p = Mul (v, factor)
      next = Sin (p)
    }>
})";

// The gradient sees the mask of the forward pass, whichever it was; so does its own gradient.
constexpr char kDropoutInLoop[] = R"(
m (double[30] x, double[30] w, int64 n) => (double[30] y) {
  ratio = Constant <value = float {0.4}> ()
  on = Constant <value = bool {1}> ()
  y = Loop (n, , x) <
    body = b (int64 i, bool c, double[30] v) => (bool more, double[30] next) {
      more = Identity (c)
      p = Mul (v, w)
      d = Dropout (p, ratio, on)
      s = Sin (d)
      next = Add (s, x)
    }>
})";

constexpr char kDrawsInScan[] = R"(
m (double[3, 8] x, double[8] w, double[8] h) => (double[8] last, double[3, 8] all) {
  on = Constant <value = bool {1}> ()
  last, all = Scan <num_scan_inputs = 1, scan_input_directions = [1],
    body = b (double[8] v, double[8] s) => (double[8] next, double[8] out) {
      r = RandomUniformLike (s)
      p = Mul (v, r)
      q = Mul (p, w)
      d = Dropout (q, , on)
      t = Sin (d)
      next = Add (t, s)
      out = Mul (next, r)
    }> (h, x)
})";

// Each branch draws other numbers, of other kinds and shapes.
constexpr char kDrawsInBranches[] = R"(
m (bool p, double[6] x, double[6] w) => (double[6] y, double[K] z) {
  on = Constant <value = bool {1}> ()
  y, z = If (p) <
    then_branch = t () => (double[6] a, double[K] az) {
      a0 = Mul (x, w)
      a1, mask = Dropout (a0, , on)
      a2 = Sin (a1)
      r = RandomNormalLike (x)
      a = Mul (a2, r)
      k = Cast <to = 11> (mask)
      az = Mul (k, x)
    },
    else_branch = e () => (double[6] b, double[K] bz) {
      r2 = RandomUniform <dtype = 11, shape = [2, 6], low = 0.5, high = 1.5> ()
      half = Constant <value = double {0.5}> ()
      some = Less (r2, half)
      p0 = Mul (r2, x)
      p1 = Exp (p0)
      axis = Constant <value_ints = [0]> ()
      b = ReduceSum <keepdims = 0> (p1, axis)
      positive = Constant <value = double[6] {0.1, 0.9, 0.5, 0.4, 0.6, 0.7}> ()
      kept = Bernoulli <dtype = 9> (positive)
      bz = Compress <axis = 0> (w, kept)
    }>
})";

// The shape of what is drawn is not known beforehand.
constexpr char kShapelessDrawInBranch[] = R"(
m (bool p, double[6] x, int64[K] kept) => (double y) {
  on = Constant <value = bool {1}> ()
  some = Gather (x, kept)
  d = If (p) <
    then_branch = t () => (double[M] a) { a0 = Mul (some, some) a = Dropout (a0, , on) },
    else_branch = e () => (double[M] b) { b = Sin (some) }>
  y = ReduceSum <keepdims = 0> (d)
})";

// A branch within a loop, a loop within that, and the draws of all three.
constexpr char kDrawsInNestedBodies[] = R"(
m (int64 n, double[5] x, double[5] w) => (double[5] y) {
  on = Constant <value = bool {1}> ()
  ratio = Constant <value = float {0.3}> ()
  y = Loop (n, , x) <
    body = b (int64 i, bool c, double[5] v) => (bool more, double[5] next) {
      more = Identity (c)
      two = Constant <value = int64 {2}> ()
      r = Mod (i, two)
      odd = Cast <to = 9> (r)
      noise = RandomNormalLike <scale = 0.1> (v)
      u = Add (v, noise)
      next = If (odd) <
        then_branch = t () => (double[5] a) { a0 = Mul (u, w) a1 = Dropout (a0, ratio, on) a = Sin (a1) },
        else_branch = e () => (double[5] f) {
          two2 = Constant <value = int64 {2}> ()
          trips = Add (i, two2)
          f = Loop (trips, , u) <
            body = inner (int64 j, bool d, double[5] q) => (bool again, double[5] q1) {
              again = Identity (d)
              g = RandomUniformLike (q)
              m = Mul (q, g)
              o = Dropout (m, ratio, on)
              s = Sin (o)
              q1 = Add (s, w)
            }>
        }>
    }>
})";

// Three loops, the innermost of which draws numbers of changing shapes.
constexpr char kDrawsInThreeLoops[] = R"(
m (int64 n, double[2] x, double[1] w) => (double y) {
  on = Constant <value = bool {1}> ()
  last = Loop (n, , x) <
    body = b (int64 i, bool c, double[A] v) => (bool more, double[A] next) {
      more = Identity (c)
      next = Loop (i, , v) <
        body = b2 (int64 i2, bool c2, double[B] v2) => (bool more2, double[B] next2) {
          more2 = Identity (c2)
          k = Loop (n, , v2) <
            body = b3 (int64 i3, bool c3, double[C] v3) => (bool more3, double[C] next3) {
              more3 = Identity (c3)
              d = Dropout (v3, , on)
              s = Sin (d)
              next3 = Concat <axis = 0> (s, w)
            }>
          next2 = Mul (k, w)
        }>
    }>
  y = ReduceSumSquare <keepdims = 0> (last)
})";

// A Scan that hands out what its branch drew; one that cannot, since a loop in it drew as often
// as the data says.
constexpr char kDrawsInBranchOfScan[] = R"(
m (bool p, double[3, 4] x, double[4] w, double[4] h) => (double[4] last, double[4, 3] all) {
  on = Constant <value = bool {1}> ()
  last, all = Scan <num_scan_inputs = 1, scan_output_axes = [1], scan_output_directions = [1],
    body = b (double[4] v, double[4] s) => (double[4] next, double[4] out) {
      q = Mul (v, w)
      d = If (p) <
        then_branch = t () => (double[4] a) { a = Dropout (q, , on) },
        else_branch = e () => (double[4] f) { f = Mul (q, s) }>
      t2 = Sin (d)
      next = Add (t2, s)
      out = Mul (next, w)
    }> (h, x)
})";

constexpr char kDrawsInLoopOfScan[] = R"(
m (int64 n, double[3, 4] x, double[4] w, double[4] h) => (double[4] last, double[4, 3] all) {
  last, count, all = Scan <num_scan_inputs = 1, scan_input_directions = [1], scan_output_axes = [1],
    body = b (double[4] v, int64 k, double[4] s) => (double[4] next, int64 k1, double[4] out) {
      one = Constant <value = int64 {1}> ()
      k1 = Add (k, one)
      next = Loop (k, , v) <
        body = inner (int64 j, bool d, double[4] q) => (bool again, double[4] q1) {
          again = Identity (d)
          g = RandomUniformLike (q)
          m = Mul (q, g)
          q1 = Add (m, w)
        }>
      out = Mul (next, s)
    }> (h, n, x)
})";

constexpr char kDrawsInScanOfLoop[] = R"(
m (int64 n, double[3, 4] x, double[4] w) => (double[4, 3] y) {
  start = Transpose (x)
  on = Constant <value = bool {1}> ()
  y = Loop (n, , start) <
    body = outer (int64 i, bool c, double[4, 3] v) => (bool more, double[4, 3] next) {
      more = Identity (c)
      last, all = Scan <num_scan_inputs = 1, scan_output_axes = [1], scan_output_directions = [1],
        body = b (double[4] h, double[4] s) => (double[4] h1, double[4] o) {
          d = Dropout (s, , on)
          p = Mul (d, h)
          h1 = Sin (p)
          o = Add (h1, s)
        }> (w, x)
      next = Mul (all, v)
    }>
})";

constexpr char kDrawsInMap[] = R"(
m (double[3] x, double[2] w) => (double[K] y) {
  on = Constant <value = bool {1}> ()
  s = SequenceConstruct (x, w)
  t = SequenceMap (s) <body = b (double[M] e) => (double[M] r) {
    d = Dropout (e, , on)
    r0 = Mul (d, e)
    r = Sin (r0)
  }>
  y = ConcatFromSequence <axis = 0> (t)
})";

// Dropout that does not train draws nothing, however deep it stands.
constexpr char kNoDraws[] = R"(
m (int64 n, bool p, double[3] x, double[3] w) => (double[3] y) {
  y = Loop (n, , x) <
    body = b (int64 i, bool c, double[3] v) => (bool more, double[3] next) {
      more = Identity (c)
      next = If (p) <
        then_branch = t () => (double[3] a) { a0 = Mul (v, w) a = Dropout (a0) },
        else_branch = e () => (double[3] f) { f = Identity (w) }>
    }>
})";

std::vector<GraphCase> Cases() {
  std::vector<GraphCase> cases = {
      {"BranchThen", kBranch, {{"x", Reals({1, -0.5, 0.7})}}},
      {"BranchElse", kBranch, {{"x", Reals({-1, 0.5, -0.7})}}},
      {"RanksThen", kRanks, {{"c", Bool(true)}}},
      {"RanksElse", kRanks, {{"c", Bool(false)}}},
      {"LoopNoTrips", kLoop, {{"n", Int(0)}, {"go", Bool(true)}}},
      {"LoopNotStarted", kLoop, {{"n", Int(3)}, {"go", Bool(false)}}},
      {"LoopThree", kLoop, {{"n", Int(3)}, {"go", Bool(true)}, {"x", Reals({0.1, 0.2, -0.3})}}},
      {"LoopLeftEarly",
       kLoop,
       {{"n", Int(50)},
        {"go", Bool(true)},
        {"start", Reals({0.1, 0.2, 0.3})},
        {"x", Reals({0.3, 0.9, 0.5})},
        {"w", Reals({0.4, 0.9, 0.6})}}},
      {"ScannedOnly", kScannedOnly, {{"n", Int(4)}}},
      {"Growing", kGrowing, {{"n", Int(4)}}},
      {"GrowingNoTrips", kGrowing, {{"n", Int(0)}}},
      {"CarriedWeights", kCarriedWeights, {{"n", Int(5)}}},
      {"NestedLoop", kNestedLoop, {{"n", Int(4)}}},
      {"BranchInLoop", kBranchInLoop, {{"n", Int(5)}}},
      {"LoopInBranchThen", kLoopInBranch, {{"n", Int(3)}, {"p", Bool(true)}}},
      {"LoopInBranchElse", kLoopInBranch, {{"n", Int(3)}, {"p", Bool(false)}}},
      {"Scan", kScan},
      {"ScanWithoutState", kScanWithoutState},
      {"ScanInScan", kScanInScan},
      {"Functions", kFunctions, {{"n", Int(3)}}},
      {"DropoutInLoop", kDropoutInLoop, {{"n", Int(3)}}},
      {"DrawsInScan", kDrawsInScan},
      {"DrawsInThen", kDrawsInBranches, {{"p", Bool(true)}}},
      {"DrawsInElse", kDrawsInBranches, {{"p", Bool(false)}}},
      {"ShapelessDrawInThen",
       kShapelessDrawInBranch,
       {{"p", Bool(true)}, {"kept", Tensor::FromValues<int64_t>({3}, {0, 5, -2})}}},
      {"ShapelessDrawInElse",
       kShapelessDrawInBranch,
       {{"p", Bool(false)}, {"kept", Tensor::FromValues<int64_t>({2}, {1, -1})}}},
      {"DrawsInNestedBodies", kDrawsInNestedBodies, {{"n", Int(4)}}},
      {"DrawsInNestedBodiesNoTrips", kDrawsInNestedBodies, {{"n", Int(0)}}},
      {"DrawsInThreeLoops", kDrawsInThreeLoops, {{"n", Int(3)}}},
      {"DrawsInBranchOfScanThen", kDrawsInBranchOfScan, {{"p", Bool(true)}}},
      {"DrawsInBranchOfScanElse", kDrawsInBranchOfScan, {{"p", Bool(false)}}},
      {"DrawsInLoopOfScan", kDrawsInLoopOfScan, {{"n", Int(1)}}},
      {"DrawsInScanOfLoop", kDrawsInScanOfLoop, {{"n", Int(2)}}},
      {"DrawsInMap", kDrawsInMap},
      {"NoDraws", kNoDraws, {{"n", Int(2)}, {"p", Bool(true)}}},
  };
  for (const bool p : {false, true}) {
    for (const bool q : {false, true}) {
      cases.push_back({std::string("NestedBranch") + (p ? "Then" : "Else") + (q ? "Then" : "Else"),
                       kNestedBranch,
                       {{"p", Bool(p)}, {"q", Bool(q)}}});
    }
  }
  return cases;
}

class ControlGradient : public testing::TestWithParam<GraphCase> {};

TEST_P(ControlGradient, IsThatOfDifferences) { CheckGraphCase(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Autograd, ControlGradient, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace onward::control_test
