// SPDX-License-Identifier: Apache-2.0
// Rows of an operator table, and their gradients, to be run by others.
#include <optional>
#include <utility>

#include "tests/support/case_draws.h"
#include "tests/support/case_graph.h"
#include "tests/support/op_case.h"

namespace onward {

CaseGraph GradientGraph(const OpCase& c, DType dtype) {
  return GradientGraph(c, dtype, DefaultEnvironment().rules());
}

CaseGraph GradientGraph(const OpCase& c, DType dtype, const RuleTable& rules) {
  Draws draws(c.name);
  CaseGraph found;
  for (size_t i = 0; i < c.args.size(); ++i) {
    if (IsFed(c.args[i])) found.feeds[ArgName(i)] = DrawArg(c.args[i], draws);
  }
  const Built built = Build(c, dtype, /*unknown=*/false);
  const std::vector<Tensor> ys =
      GraphEvaluation(built.forward, built.ys).Run(InType(found.feeds, dtype));
  for (size_t i = 0; i < ys.size(); ++i) {
    found.feeds[built.cotangents[i]] = DrawArg(Real(ys[i].shape()), draws);
  }
  found.feeds = InType(found.feeds, dtype);
  found.graph = Derive(built.graph, built.loss, built.xs, rules).graph;
  return found;
}

struct CaseRun::State {
  DType dtype;
  TensorMap feeds;  // double
  std::vector<std::pair<std::string, int64_t>> reals;
  std::optional<GraphEvaluation> evaluation;

  void BuildResults(const OpCase& c) {
    Graph graph;
    graph.opsets = {{"", kCanonicalOpset}, {std::string(kOnwardDomain), 1}};
    GraphBuilder b(&graph, &DefaultEnvironment().operators());
    std::vector<Expr> inputs;
    for (size_t i = 0; i < c.args.size(); ++i) {
      inputs.push_back(DeclareArg(b, c, i, dtype, /*unknown=*/false));
      const bool read = c.domain.empty() || IsDifferentiated(c, i);
      if (c.args[i].kind != Arg::Kind::kReal || !read) continue;
      reals.emplace_back(ArgName(i), c.args[i].shape.elements());
    }
    std::vector<std::string> names;
    for (const Expr& y : b.Ops(c.op, inputs, c.outputs, c.attributes, c.domain)) {
      names.push_back(y.name());
    }
    Must(b.status());
    evaluation.emplace(graph, names);
  }

  void BuildGradients(const OpCase& c, Draws& draws) {
    const Built built = Build(c, dtype, /*unknown=*/false);
    const std::vector<Tensor> ys =
        GraphEvaluation(built.forward, built.ys).Run(InType(feeds, dtype));
    for (size_t i = 0; i < ys.size(); ++i) {
      feeds[built.cotangents[i]] = DrawArg(Real(ys[i].shape()), draws);
      reals.emplace_back(built.cotangents[i], ys[i].elements());
    }
    const Gradients gradients = Derive(built.graph, built.loss, built.xs);
    evaluation.emplace(gradients.graph, gradients.values);
  }
};

CaseRun::CaseRun(const OpCase& c, DType dtype, Of of) : state_(std::make_unique<State>()) {
  state_->dtype = dtype;
  Draws draws(c.name);
  for (size_t i = 0; i < c.args.size(); ++i) {
    if (IsFed(c.args[i])) state_->feeds[ArgName(i)] = DrawArg(c.args[i], draws);
  }
  if (of == Of::kResults) {
    state_->BuildResults(c);
  } else {
    state_->BuildGradients(c, draws);
  }
}

CaseRun::~CaseRun() = default;

const std::vector<std::pair<std::string, int64_t>>& CaseRun::reals() const { return state_->reals; }

double CaseRun::At(const std::string& input, int64_t element) const {
  return state_->feeds.at(input).data<double>()[element];
}

void CaseRun::Set(const std::string& input, const std::vector<double>& values) {
  state_->feeds.at(input) = Doubles(state_->feeds.at(input).shape(), values);
}

std::vector<Tensor> CaseRun::Results() {
  return state_->evaluation->Run(InType(state_->feeds, state_->dtype));
}

std::vector<Tensor> CaseRun::With(const std::string& input, int64_t element, double value) {
  double& at = state_->feeds.at(input).data<double>()[element];
  const double usual = std::exchange(at, value);
  std::vector<Tensor> results = Results();
  at = usual;
  return results;
}

}  // namespace onward
