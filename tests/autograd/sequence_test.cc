// SPDX-License-Identifier: Apache-2.0
// Gradients of sequences and optionals against central differences, once and twice.
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/graph_case.h"

namespace onward::sequence_test {

Tensor Int(int64_t value) { return Tensor::Scalar<int64_t>(value); }
Tensor Bool(bool value) { return Tensor::Scalar<bool>(value); }

// One element is read twice.
constexpr char kMadeAndRead[] =
    R"(g (int64 p, double[2] x, double[3] w) => (double[2] y, double[3] z) {
  s = SequenceConstruct (x, w, x)
  first = SequenceAt (s, p)
  last = Constant <value = int64 {-1}> ()
  third = SequenceAt (s, last)
  y = Mul (first, third)
  one = Constant <value = int64 {1}> ()
  z0 = SequenceAt (s, one)
  z = Exp (z0)
})";

constexpr char kChanged[] =
    R"(g (int64 p, int64 q, double[2] x, double[2] w, double[2] u) => (double[2] y, double[2] z) {
  s0 = SequenceConstruct (x, w)
  x2 = Mul (x, x)
  s1 = SequenceInsert (s0, x2, p)
  u2 = Sin (u)
  s2 = SequenceInsert (s1, u2)
  s3 = SequenceErase (s2, q)
  s4 = SequenceErase (s2)
  zero = Constant <value = int64 {0}> ()
  one = Constant <value = int64 {1}> ()
  a = SequenceAt (s3, one)
  b = SequenceAt (s4, zero)
  y = Mul (a, b)
  z = SequenceAt (s3, p)
})";

constexpr char kSplitAndJoined[] =
    R"(g (double[5, 2] x, double[2] w) => (double[5, 2] y, double[2, 5] z, double[2] one) {
  lengths = Constant <value_ints = [2, 3]> ()
  s = SplitToSequence <axis = 0> (x, lengths)
  t = SequenceMap (s, w) <body = b (double[K, 2] e, double[2] f) => (double[K, 2] r) {
    m = Mul (e, f)
    r = Sin (m)
  }>
  y = ConcatFromSequence <axis = -2> (t)
  rows = SplitToSequence <axis = 0, keepdims = 0> (x)
  z = ConcatFromSequence <axis = 1, new_axis = 1> (rows)
  p = Constant <value = int64 {3}> ()
  one = SequenceAt (rows, p)
})";

// A loop that fills a sequence, and one that reads it.
constexpr char kCarried[] = R"(g (int64 n, double[2] x, double[2] w) => (double[2] y, double[K] z) {
  none = SequenceEmpty <dtype = 11> ()
  last, s = Loop (n, , x, none) <
    body = b (int64 i, bool c, double[2] v, seq(double[2]) l)
        => (bool more, double[2] next, seq(double[2]) l1) {
      more = Identity (c)
      m = Mul (v, w)
      next = Sin (m)
      l1 = SequenceInsert (l, next)
    }>
  zero = Mul (x, last)
  y = Loop (n, , zero) <
    body = f (int64 i, bool c, double[2] v) => (bool more, double[2] next) {
      more = Identity (c)
      e = SequenceAt (s, i)
      p = Mul (e, v)
      next = Add (p, w)
    }>
  z = ConcatFromSequence <axis = 0> (s)
})";

// Sequences through branches; each is used on one side.
constexpr char kBranches[] = R"(g (bool c, double[2] x, double[3] w) => (double[K] y, double[2] z) {
  s = SequenceConstruct (x, w)
  t = SequenceConstruct (w, x)
  zero = Constant <value = int64 {0}> ()
  r = If (c) <
    then_branch = a () => (seq(double[K]) p) { p = SequenceInsert (s, x) },
    else_branch = e () => (seq(double[K]) q) { q = Identity (t) }>
  y = ConcatFromSequence <axis = 0> (r)
  z0 = SequenceAt (s, zero)
  z = Exp (z0)
})";

constexpr char kOptional[] = R"(g (bool c, double[2] x, double[2] w) => (double[2] y) {
  o = Optional (x)
  has = OptionalHasElement (o)
  both = And (has, c)
  r = If (both) <
    then_branch = a () => (double[2] p) { e = OptionalGetElement (o) p = Mul (e, e) },
    else_branch = f () => (double[2] q) { q = Mul (w, w) }>
  e2 = OptionalGetElement (o)
  y = Mul (r, e2)
})";

// A loop that reads what it carries: of every iteration, the sequence as it was is needed.
constexpr char kReadWhileCarried[] =
    R"(g (int64 n, double[2] x, double[3] w) => (double[2] y, double[K] z) {
  start = SequenceConstruct (x, w)
  zero = Constant <value = int64 {0}> ()
  y, s = Loop (n, , x, start) <
    body = b (int64 i, bool c, double[2] v, seq(double[M]) l)
        => (bool more, double[2] next, seq(double[M]) l1) {
      more = Identity (c)
      e = SequenceAt (l, i)
      all = ConcatFromSequence <axis = 0> (l)
      mean = ReduceMean <keepdims = 1> (all)
      sq = Mul (e, mean)
      l0 = SequenceInsert (l, sq)
      l1 = SequenceInsert (l0, v, zero)
      first = SequenceAt (l, zero)
      next0 = Mul (first, v)
      next = Sin (next0)
    }>
  z = ConcatFromSequence <axis = 0> (s)
})";

// Every iteration maps the elements of what it carries.
constexpr char kMappedWhileCarried[] =
    R"(g (int64 n, double[2] x, double[3] w, double[1] u) => (double[K] y) {
  start = SequenceConstruct (x, w)
  s = Loop (n, , start) <
    body = b (int64 i, bool c, seq(double[M]) l) => (bool more, seq(double[M]) l1) {
      more = Identity (c)
      l1 = SequenceMap (l, u) <body = f (double[M] e, double[1] k) => (double[M] r) {
        m = Mul (e, k)
        r = Sin (m)
      }>
    }>
  y = ConcatFromSequence <axis = 0> (s)
})";

// An inner loop fills a sequence, and the outer one carries it on.
constexpr char kNestedCarried[] = R"(g (int64 n, double[2] x, double[2] w) => (double[K] y) {
  none = SequenceConstruct (x)
  s = Loop (n, , none) <
    body = outer (int64 i, bool c, seq(double[2]) l) => (bool more, seq(double[2]) l1) {
      more = Identity (c)
      l1 = Loop (i, , l) <
        body = inner (int64 j, bool d, seq(double[2]) k) => (bool again, seq(double[2]) k1) {
          again = Identity (d)
          e = SequenceAt (k, j)
          m = Mul (e, w)
          t = Sin (m)
          k1 = SequenceInsert (k, t)
        }>
    }>
  y = ConcatFromSequence <axis = 0> (s)
})";

// Empty in the first iteration.
constexpr char kCarriedOptional[] = R"(g (int64 n, double[2] x, double[2] w) => (double[2] y) {
  none = Optional <type = double[2]> ()
  y, last = Loop (n, , x, none) <
    body = b (int64 i, bool c, double[2] v, optional(double[2]) o)
        => (bool more, double[2] next, optional(double[2]) o1) {
      more = Identity (c)
      has = OptionalHasElement (o)
      f = If (has) <
        then_branch = t () => (double[2] a) { a0 = OptionalGetElement (o) a = Sin (a0) },
        else_branch = e () => (double[2] b0) { b0 = Identity (w) }>
      next = Mul (v, f)
      o1 = Optional (next)
    }>
})";

constexpr char kScanCaptures[] =
    R"(g (double[2, 3] x, double[4, 2] z, double[2] h, double[2] w) => (double[2] y, double[2, 3] all, double[3, 2] back) {
  s = SequenceConstruct (w, h, w)
  t = Transpose (x)
  zero = Constant <value = int64 {0}> ()
  one = Constant <value = int64 {1}> ()
  y, i, all, back = Scan (h, zero, x, t) <num_scan_inputs = 2, scan_input_axes = [1, 0],
      scan_input_directions = [0, 1], scan_output_axes = [-1, 0], scan_output_directions = [0, 1],
    body = b (double[2] v, int64 k, double[2] a, double[2] d)
        => (double[2] next, int64 k1, double[2] o, double[2] p) {
      e = SequenceAt (s, k)
      m = Mul (e, v)
      r = Add (m, a)
      next = Tanh (r)
      k1 = Add (k, one)
      o = Mul (next, e)
      p = Mul (d, r)
    }>
})";

std::vector<GraphCase> Cases() {
  return {
      {"MadeAndRead", kMadeAndRead, {{"p", Int(0)}}},
      {"MadeAndReadFromTheEnd", kMadeAndRead, {{"p", Int(-3)}}},
      {"Changed", kChanged, {{"p", Int(1)}, {"q", Int(0)}}},
      {"ChangedFromTheEnd", kChanged, {{"p", Int(-1)}, {"q", Int(-2)}}},
      {"SplitAndJoined", kSplitAndJoined},
      {"Carried", kCarried, {{"n", Int(3)}}},
      {"ReadWhileCarried", kReadWhileCarried, {{"n", Int(3)}}},
      {"ReadWhileCarriedNoTrips", kReadWhileCarried, {{"n", Int(0)}}},
      {"MappedWhileCarried", kMappedWhileCarried, {{"n", Int(2)}}},
      {"NestedCarried", kNestedCarried, {{"n", Int(3)}}},
      {"CarriedOptional", kCarriedOptional, {{"n", Int(3)}}},
      {"ScanCaptures", kScanCaptures},
      {"BranchesThen", kBranches, {{"c", Bool(true)}}},
      {"BranchesElse", kBranches, {{"c", Bool(false)}}},
      {"OptionalThen", kOptional, {{"c", Bool(true)}}},
      {"OptionalElse", kOptional, {{"c", Bool(false)}}},
  };
}

class SequenceGradient : public testing::TestWithParam<GraphCase> {};

TEST_P(SequenceGradient, IsThatOfDifferences) { CheckGraphCase(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Autograd, SequenceGradient, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace onward::sequence_test
