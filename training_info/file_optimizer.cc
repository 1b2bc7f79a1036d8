// SPDX-License-Identifier: Apache-2.0
#include "training_info/file_optimizer.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/spec.h"
#include "core/base/status.h"
#include "training_info/foreign_graph.h"

namespace onward {
namespace {

bool IsGiven(const std::string& input) {
  return input == "R" || input == "T" || input == "X" || input == "G";
}

std::optional<size_t> OutputFor(const Graph& graph, const std::string& input) {
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const std::string& name = graph.outputs[i].name;
    if (name == input + "_new" || name == input + "_out" || name == "new_" + input) return i;
  }
  return std::nullopt;
}

absl::Status Wrong(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("optimizer '", path, "': ", what));
}

bool HasInput(const Graph& graph, const std::string& name) {
  return std::any_of(graph.inputs.begin(), graph.inputs.end(),
                     [&](const NamedType& in) { return in.name == name; });
}

}  // namespace

absl::StatusOr<FileOptimizer> FileOptimizer::Read(const std::string& path) {
  FileOptimizer optimizer;
  optimizer.path_ = path;
  ONWARD_ASSIGN_OR_RETURN(optimizer.graph_, ReadForeignGraph(path));
  const Graph& graph = optimizer.graph_;
  for (const char* needed : {"X", "G"}) {
    if (!HasInput(graph, needed)) {
      return Wrong(path, absl::StrCat("it has no input '", needed,
                                      "'; it takes R (rate), T (steps done), X (the weight), G "
                                      "(its gradient) and states"));
    }
  }
  const std::optional<size_t> value = OutputFor(graph, "X");
  if (!value.has_value()) return Wrong(path, "it has no output 'X_new', the new weight");
  optimizer.value_ = {"X", *value};
  size_t used = 1;
  for (const NamedType& in : graph.inputs) {
    if (IsGiven(in.name)) continue;
    if (const std::optional<size_t> index = OutputFor(graph, in.name)) {
      optimizer.states_.push_back({in.name, *index});
      ++used;
    } else if (!graph.initializers.contains(in.name)) {
      return Wrong(path, absl::StrCat("input '", in.name, "' is no state, for there is no output '",
                                      in.name, "_new', and has no value"));
    }
  }
  if (used != graph.outputs.size()) {
    return Wrong(path, "each output is named after the input it renews: X_new for X");
  }
  return optimizer;
}

absl::Status FileOptimizer::CheckNumbers(const std::map<std::string, double>& numbers) const {
  std::vector<std::string> known = {"lr"};
  for (const NamedType& in : graph_.inputs) {
    const bool state = std::any_of(states_.begin(), states_.end(),
                                   [&](const Output& s) { return s.input == in.name; });
    if (!IsGiven(in.name) && !state) known.push_back(in.name);
  }
  for (const auto& [name, value] : numbers) {
    if (std::count(known.begin(), known.end(), name) == 0) {
      return UnknownWord(absl::StrCat("option of optimizer '", path_, "'"), name, known);
    }
  }
  return absl::OkStatus();
}

std::vector<StateTensor> FileOptimizer::States(const Shape& variable) const {
  std::vector<StateTensor> states;
  for (const Output& s : states_) {
    StateTensor state{.suffix = absl::StrCat("__", s.input), .shape = variable};
    const ValueType* type = graph_.TypeOf(s.input);
    if (type != nullptr && type->has_rank && type->rank() == 0) state.shape = Shape{};
    if (auto it = graph_.initializers.find(s.input); it != graph_.initializers.end()) {
      const auto values = ToDoubles(it->second);
      if (values.ok() && !values->empty()) state.initial = values->front();
    }
    states.push_back(std::move(state));
  }
  return states;
}

absl::StatusOr<std::vector<Expr>> FileOptimizer::Update(
    GraphBuilder& b, const Expr& lr, const Expr& step, const std::map<std::string, double>& numbers,
    const Variable& variable) const {
  Graph graph = graph_;
  ONWARD_RETURN_IF_ERROR(FitOpset(path_, b.graph(), &graph));
  std::vector<Expr> inputs;
  for (const NamedType& in : graph.inputs) {
    const auto state = std::find_if(states_.begin(), states_.end(),
                                    [&](const Output& s) { return s.input == in.name; });
    if (in.name == "R") {
      inputs.push_back(CastLike(lr, variable.value));
    } else if (in.name == "T") {
      inputs.push_back(step);
    } else if (in.name == "X") {
      inputs.push_back(variable.value);
    } else if (in.name == "G") {
      inputs.push_back(variable.gradient);
    } else if (state != states_.end()) {
      inputs.push_back(variable.states[state - states_.begin()]);
    } else if (auto it = numbers.find(in.name); it != numbers.end()) {
      const DType dtype = graph.initializers.at(in.name).dtype();
      inputs.push_back(b.Constant(ScalarOf(dtype, it->second)));
    } else {
      inputs.push_back({});
    }
  }
  ONWARD_ASSIGN_OR_RETURN(
      const std::vector<Expr> outputs,
      InsertGraph(graph, absl::StrCat(variable.value.name(), "__update__"), inputs, b));
  std::vector<Expr> updated = {outputs[value_.index]};
  for (const Output& s : states_) updated.push_back(outputs[s.index]);
  return updated;
}

}  // namespace onward
