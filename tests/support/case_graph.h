// SPDX-License-Identifier: Apache-2.0
// A row of an operator table as a graph: built, differentiated and run. What the checks
// (check_case.cc) and runs (case_run.cc) of a row share. A failure throws, which gtest reports.
#ifndef ONWARD_TESTS_SUPPORT_CASE_GRAPH_H_
#define ONWARD_TESTS_SUPPORT_CASE_GRAPH_H_

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/differentiate.h"
#include "autograd/rule.h"
#include "core/graph/builder.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/op_case.h"
#include "tests/support/test_environment.h"

namespace onward {

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) throw std::runtime_error(value.status().ToString());
  return *std::move(value);
}

inline void Must(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

// Numbers, which are drawn in double, in another type; all else as it is.
Tensor InType(const Tensor& t, DType dtype);
TensorMap InType(const TensorMap& feeds, DType dtype);

bool IsFed(const Arg& arg);
bool IsDifferentiated(const OpCase& c, size_t i);
std::string ArgName(size_t i);
Expr DeclareArg(GraphBuilder& b, const OpCase& c, size_t i, DType dtype, bool unknown);

// sum over i of sum(values[i] * factors[i]), the factors being new inputs.
Expr WeightedSum(GraphBuilder& b, const std::vector<Expr>& values, const std::string& prefix,
                 std::vector<std::string>* factors);

// A row as a graph with a scalar loss: the sum of its outputs times cotangents,
// which are inputs.
struct Built {
  Graph forward;  // without the loss
  Graph graph;
  std::vector<std::string> ys, cotangents, xs;
  std::string loss;
};

Built Build(const OpCase& c, DType dtype, bool unknown);

// Values of a graph at given inputs.
class GraphEvaluation {
 public:
  GraphEvaluation(const Graph& graph, std::vector<std::string> wanted,
                  const Environment& environment = TestEnvironment());
  std::vector<Tensor> Run(const TensorMap& feeds);

 private:
  std::vector<std::string> wanted_;
  std::optional<Session> session_;
};

Gradients Derive(const Graph& graph, const std::string& y, const std::vector<std::string>& xs,
                 const RuleTable& rules = DefaultEnvironment().rules());

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_CASE_GRAPH_H_
