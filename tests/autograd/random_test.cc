// SPDX-License-Identifier: Apache-2.0
// 200 random graphs of smooth operators, branches, loops and scans, nested, against central
// differences.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/case_draws.h"
#include "tests/support/graph_case.h"

namespace onward::random_test {

constexpr int kGraphs = 200;
constexpr int kMaxDepth = 3;

// All values are vectors of three.
class RandomGraph {
 public:
  explicit RandomGraph(const std::string& name) : draws_(name) {}

  std::string Text() {
    std::vector<std::string> values = {"x", "w"};
    left_ = 5 + static_cast<int>(draws_.Below(36));
    std::string nodes;
    while (left_ > 0) absl::StrAppend(&nodes, Nodes(0, &values));
    return absl::StrCat("g (int64 n, double[3] x, double[3] w) => (double[3] y) {\n",
                        "zero = Constant <value = double {0}> ()\n",
                        "axis = Constant <value_ints = [0]> ()\n", nodes, "y = Identity (",
                        values.back(), ")\n}");
  }

 private:
  std::string New() { return absl::StrCat("v", next_++); }
  const std::string& Any(const std::vector<std::string>& values) {
    // Rather a late one, so that graphs are deep.
    const int64_t from = draws_.Below(2) == 0 ? 0 : static_cast<int64_t>(values.size()) / 2;
    return values[from + draws_.Below(static_cast<int64_t>(values.size()) - from)];
  }

  // One more value, however many nodes that takes.
  std::string Nodes(int depth, std::vector<std::string>* values) {
    --left_;
    const int64_t kind = draws_.Below(10);
    if (depth < kMaxDepth && left_ > 3) {
      if (kind == 0) return Branch(depth, values);
      if (kind == 1) return Loop(depth, values);
      if (kind == 2) return Scan(depth, values);
    }
    const std::string out = New(), a = Any(*values), b = Any(*values);
    values->push_back(out);
    static const char* const kUnary[] = {"Tanh", "Sin", "Sigmoid", "Neg", "Softplus"};
    static const char* const kBinary[] = {"Add", "Sub", "Mul"};
    if (kind < 6) return absl::StrCat(out, " = ", kUnary[draws_.Below(5)], " (", a, ")\n");
    // Bounded, so that loops do not run away.
    const std::string inner = New();
    return absl::StrCat(inner, " = ", kBinary[draws_.Below(3)], " (", a, ", ", b, ")\n", out,
                        " = Tanh (", inner, ")\n");
  }

  // The nodes of a body; the last value is what it gives.
  std::string Body(int depth, std::vector<std::string> values, std::string* result) {
    std::string nodes;
    const int64_t count = 1 + draws_.Below(4);
    for (int64_t i = 0; i < count; ++i) absl::StrAppend(&nodes, Nodes(depth + 1, &values));
    *result = values.back();
    return nodes;
  }

  std::string Branch(int depth, std::vector<std::string>* values) {
    const std::string out = New(), sum = New(), condition = New();
    std::string a, b;
    const std::string then_nodes = Body(depth, *values, &a);
    const std::string else_nodes = Body(depth, *values, &b);
    const std::string text = absl::StrCat(
        sum, " = ReduceSum <keepdims = 0> (", Any(*values), ")\n", condition, " = Greater (", sum,
        ", zero)\n", out, " = If (", condition, ") <then_branch = ", New(), " () => (double[3] ", a,
        ") {\n", then_nodes, "}, else_branch = ", New(), " () => (double[3] ", b, ") {\n",
        else_nodes, "}>\n");
    values->push_back(out);
    return text;
  }

  std::string Loop(int depth, std::vector<std::string>* values) {
    const std::string last = New(), all = New(), sum = New(), out = New(), state = New(), i = New(),
                      c = New(), more = New(), seen = New();
    const std::string start = Any(*values);
    std::vector<std::string> inside = *values;
    inside.push_back(state);
    std::string next;
    const std::string nodes = Body(depth, inside, &next);
    const std::string text =
        absl::StrCat(last, ", ", all, " = Loop (n, , ", start, ") <body = ", New(), " (int64 ", i,
                     ", bool ", c, ", double[3] ", state, ") => (bool ", more, ", double[3] ", next,
                     ", double[3] ", seen, ") {\n", nodes, more, " = Identity (", c, ")\n", seen,
                     " = Mul (", next, ", ", state, ")\n}>\n", sum, " = ReduceSum <keepdims = 0> (",
                     all, ", axis)\n", out, " = Add (", sum, ", ", last, ")\n");
    values->push_back(out);
    return text;
  }

  std::string Scan(int depth, std::vector<std::string>* values) {
    const std::string last = New(), all = New(), sum = New(), out = New(), state = New(),
                      slice = New(), a = New(), b = New(), both = New(), seen = New();
    const int64_t in = draws_.Below(2), back = draws_.Below(2);
    std::vector<std::string> inside = *values;
    inside.push_back(state);
    inside.push_back(slice);
    std::string next;
    const std::string nodes = Body(depth, inside, &next);
    const std::string text = absl::StrCat(
        a, " = Unsqueeze (", Any(*values), ", axis)\n", b, " = Unsqueeze (", Any(*values),
        ", axis)\n", both, " = Concat <axis = 0> (", a, ", ", b, ", ", a, ")\n", last, ", ", all,
        " = Scan (", Any(*values), ", ", both, ") <num_scan_inputs = 1, scan_input_axes = [0], ",
        "scan_input_directions = [", in, "], scan_output_axes = [1], scan_output_directions = [",
        back, "], body = ", New(), " (double[3] ", state, ", double[3] ", slice, ") => (double[3] ",
        next, ", double[3] ", seen, ") {\n", nodes, seen, " = Mul (", next, ", ", slice, ")\n}>\n");
    values->push_back(out);
    return absl::StrCat(text, sum, " = ReduceSum <keepdims = 0> (", all, ", axis)\n", out,
                        " = Add (", sum, ", ", last, ")\n");
  }

  Draws draws_;
  int next_ = 0, left_ = 0;
};

TEST(RandomGraphs, HaveTheGradientsOfDifferences) {
  for (int i = 0; i < kGraphs; ++i) {
    const std::string name = absl::StrCat("graph", i);
    GraphCase c{name, RandomGraph(name).Text(), {{"n", Tensor::Scalar<int64_t>(i % 4)}}};
    c.twice = i % 4 == 1;
    SCOPED_TRACE(c.text);
    CheckGraphCase(c);
    if (HasFailure()) return;
  }
}

}  // namespace onward::random_test
