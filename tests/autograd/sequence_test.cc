// SPDX-License-Identifier: Apache-2.0
// Gradients of sequences and optionals against central differences, once and twice.
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/graph_case.h"

namespace onward {
namespace {

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

// Twice fails where a loop carries a sequence: what it reads of it would have to be kept for
// every iteration.
std::vector<GraphCase> Cases() {
  return {
      {"MadeAndRead", kMadeAndRead, {{"p", Int(0)}}},
      {"MadeAndReadFromTheEnd", kMadeAndRead, {{"p", Int(-3)}}},
      {"Changed", kChanged, {{"p", Int(1)}, {"q", Int(0)}}},
      {"ChangedFromTheEnd", kChanged, {{"p", Int(-1)}, {"q", Int(-2)}}},
      {"SplitAndJoined", kSplitAndJoined, {}, /*twice=*/false},
      {"Carried", kCarried, {{"n", Int(3)}}, /*twice=*/false},
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

}  // namespace
}  // namespace onward
