// SPDX-License-Identifier: Apache-2.0
#include "training_info/author_update.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/rename.h"
#include "optimizers/clip.h"
#include "training_info/file_optimizer.h"

namespace onward {
namespace {

constexpr char kStepVariable[] = "onward_step";

// Weights that one optimizer with the same options updates.
struct Part {
  int group = -1;  // of the options; -1: none
  bool decays = true;
  OptimizerChoice optimizer;
  std::vector<size_t> members;  // indices of the trained weights
};

Tensor Filled(DType dtype, const Shape& shape, double value) {
  if (value == 0) return Tensor::Zeros(dtype, shape);
  Tensor t(dtype, shape);
  const Tensor one = ScalarOf(dtype, value);
  const size_t width = DTypeBits(dtype) / 8;
  for (int64_t i = 0; i < t.elements(); ++i)
    std::copy_n(one.data<char>(), width, t.data<char>() + i * width);
  return t;
}

// Follows a weight through changes of shape and type to the node that computes with it.
const Node* ReaderOf(const Graph& graph, std::string value) {
  for (const Node& node : graph.nodes) {
    const auto it = std::find(node.inputs.begin(), node.inputs.end(), value);
    if (it == node.inputs.end()) continue;
    const bool passes = it == node.inputs.begin() &&
                        (node.Is("Reshape") || node.Is("Identity") || node.Is("Cast") ||
                         node.Is("Unsqueeze") || node.Is("Squeeze"));
    if (!passes) return &node;
    value = node.outputs[0];
  }
  return nullptr;
}

// Whether a unit of the layer is a column of the weight: MatMul and Gemm have [in, out].
bool UnitsLast(const Graph& graph, const std::string& weight) {
  const Node* reader = ReaderOf(graph, weight);
  return reader != nullptr &&
         (reader->Is("MatMul") || (reader->Is("Gemm") && reader->Int("transB", 0) == 0));
}

class UpdateWriter {
 public:
  UpdateWriter(const AuthorOptions& options, const WeightChoice& weights, const Graph& graph,
               const std::vector<std::string>& trained, const Environment& environment, Graph* work)
      : options_(options),
        base_{options.optimizer, options.optimizer_file, options.optimizer_numbers},
        weights_(weights),
        graph_(graph),
        trained_(trained),
        work_(work),
        b_(work, &environment.operators(), "update") {}

  absl::StatusOr<WrittenUpdate> Write(const std::vector<std::string>& gradients) {
    if (base_.is_file()) {
      ONWARD_ASSIGN_OR_RETURN(file_, FileOptimizer::Read(base_.file));
    }
    ONWARD_ASSIGN_OR_RETURN(std::vector<Part> parts, Parts());
    const int first = file_.has_value() ? 0 : FirstStep(base_.spec);
    const std::string step_name = b_.UniqueName(kStepVariable);
    AddState(step_name, Tensor::Scalar<int64_t>(first));
    step_ = b_.Value(step_name);
    const Expr count = first == 0 ? step_ : step_ - b_.Int(first);
    const DType dtype = graph_.initializers.at(trained_[0]).dtype();
    rate_ = b_.Named(BuildSchedule(b_, options_.schedule, base_.lr(), count, dtype),
                     b_.UniqueName("learning_rate"));
    written_.rate = rate_.name();
    ONWARD_RETURN_IF_ERROR(b_.status());
    AddVariables(Clipped(gradients), parts);
    updated_.resize(trained_.size());
    for (const Part& part : parts) ONWARD_RETURN_IF_ERROR(Update(part));
    Bind();
    const Expr next = b_.Named(step_ + b_.Int(1), b_.UniqueName(absl::StrCat(step_name, "__new")));
    written_.bindings.push_back({step_name, next.name()});
    ONWARD_RETURN_IF_ERROR(b_.status());
    return std::move(written_);
  }

 private:
  absl::Status CheckPatterns() const {
    std::vector<std::string> patterns;
    for (const ParameterGroup& group : options_.groups) patterns.push_back(group.pattern);
    for (const std::string& pattern : options_.no_decay) {
      if (pattern != kNormPattern) patterns.push_back(pattern);
    }
    for (const std::string& pattern : patterns) {
      if (std::none_of(trained_.begin(), trained_.end(), [&](const std::string& name) {
            return weights_.Means(pattern, name, graph_);
          })) {
        return weights_.NoMatch(pattern, graph_);
      }
    }
    return absl::OkStatus();
  }

  // The first group whose pattern means the weight.
  int GroupOf(const std::string& weight) const {
    for (size_t i = 0; i < options_.groups.size(); ++i) {
      if (weights_.Means(options_.groups[i].pattern, weight, graph_)) return static_cast<int>(i);
    }
    return -1;
  }

  bool Decays(const std::string& weight) const {
    return std::none_of(options_.no_decay.begin(), options_.no_decay.end(),
                        [&](const std::string& pattern) {
                          return pattern == kNormPattern ? IsNormalizationWeight(graph_, weight)
                                                         : weights_.Means(pattern, weight, graph_);
                        });
  }

  absl::StatusOr<std::vector<Part>> Parts() const {
    ONWARD_RETURN_IF_ERROR(CheckPatterns());
    std::vector<Part> parts;
    for (size_t i = 0; i < trained_.size(); ++i) {
      const int group = GroupOf(trained_[i]);
      const bool decays = Decays(trained_[i]);
      auto part = std::find_if(parts.begin(), parts.end(), [&](const Part& p) {
        return p.group == group && p.decays == decays;
      });
      if (part == parts.end()) {
        ONWARD_ASSIGN_OR_RETURN(OptimizerChoice own, OptimizerOf(group, decays));
        parts.push_back({group, decays, std::move(own), {}});
        part = parts.end() - 1;
      }
      part->members.push_back(i);
    }
    return parts;
  }

  absl::StatusOr<OptimizerChoice> OptimizerOf(int group, bool decays) const {
    OptimizerChoice choice = base_;
    if (group >= 0) {
      const ParameterGroup& g = options_.groups[group];
      auto own = Specialized(choice, g.options);
      if (!own.ok()) return Annotate(own.status(), absl::StrCat("group '", g.pattern, "'"));
      choice = *std::move(own);
    }
    if (!decays) {
      auto own = Specialized(choice, {{"weight_decay", "0"}});
      if (!own.ok()) return Annotate(own.status(), "no-decay");
      choice = *std::move(own);
    }
    if (file_.has_value()) ONWARD_RETURN_IF_ERROR(file_->CheckNumbers(choice.numbers));
    if (base_.lr() == 0 && choice.lr() != 0) {
      return absl::InvalidArgumentError(
          "a group cannot have a learning rate where the base rate is 0: give a base rate, and "
          "freeze what shall not learn");
    }
    return choice;
  }

  std::vector<Expr> Clipped(const std::vector<std::string>& gradients) {
    std::vector<Expr> grads;
    for (const std::string& g : gradients) grads.push_back(b_.Value(g));
    if (options_.clip_adaptive > 0) {
      for (size_t i = 0; i < grads.size(); ++i) {
        grads[i] = ClipByUnitNorm(b_, b_.Value(trained_[i]), grads[i],
                                  UnitsLast(graph_, trained_[i]), options_.clip_adaptive);
      }
    }
    if (options_.clip_value > 0) grads = ClipByValue(b_, std::move(grads), options_.clip_value);
    if (options_.clip_norm > 0) grads = ClipByGlobalNorm(b_, std::move(grads), options_.clip_norm);
    return grads;
  }

  std::vector<StateTensor> StatesOf(const OptimizerChoice& choice, const Shape& shape) const {
    return file_.has_value() ? file_->States(shape) : States(choice.spec, shape);
  }

  void AddVariables(const std::vector<Expr>& grads, const std::vector<Part>& parts) {
    std::vector<const OptimizerChoice*> optimizers(trained_.size());
    for (const Part& part : parts) {
      for (size_t i : part.members) optimizers[i] = &part.optimizer;
    }
    for (size_t i = 0; i < trained_.size(); ++i) {
      const Tensor& weight = graph_.initializers.at(trained_[i]);
      Variable v{b_.Value(trained_[i]), grads[i], {}};
      names_.push_back({trained_[i]});
      for (const StateTensor& s : StatesOf(*optimizers[i], weight.shape())) {
        const std::string name = b_.UniqueName(absl::StrCat(trained_[i], s.suffix));
        AddState(name, Filled(weight.dtype(), *s.shape, s.initial));
        v.states.push_back(b_.Value(name));
        names_.back().push_back(name);
      }
      variables_.push_back(std::move(v));
    }
  }

  absl::Status Update(const Part& part) {
    const double base = base_.lr();
    const double factor = base == 0 ? 1 : part.optimizer.lr() / base;
    const Expr rate = factor == 1 ? rate_ : rate_ * factor;
    std::vector<std::vector<Expr>> updated;
    std::vector<Variable> members;
    for (size_t i : part.members) members.push_back(variables_[i]);
    if (file_.has_value()) {
      for (const Variable& v : members) {
        ONWARD_ASSIGN_OR_RETURN(updated.emplace_back(),
                                file_->Update(b_, rate, step_, part.optimizer.numbers, v));
      }
    } else {
      ONWARD_RETURN_IF_ERROR(BuildUpdate(b_, part.optimizer.spec, rate, step_, members, &updated));
    }
    for (size_t k = 0; k < part.members.size(); ++k) updated_[part.members[k]] = updated[k];
    return absl::OkStatus();
  }

  // New names in place rather than by Identity nodes, so that an optimizer's result is
  // directly what gets bound.
  void Bind() {
    Renaming renamed;
    for (size_t i = 0; i < updated_.size(); ++i) {
      for (size_t j = 0; j < updated_[i].size(); ++j) {
        const std::string name = b_.UniqueName(absl::StrCat(names_[i][j], "__new"));
        renamed[updated_[i][j].name()] = name;
        written_.bindings.push_back({names_[i][j], name});
      }
    }
    RenameEverywhere(renamed, work_);
  }

  void AddState(const std::string& name, Tensor start) {
    work_->types[name] = ValueType::Of(start.dtype(), start.shape());
    work_->initializers.emplace(name, start);
    written_.states.emplace_back(name, std::move(start));
  }

  const AuthorOptions& options_;
  const OptimizerChoice base_;
  const WeightChoice& weights_;
  const Graph& graph_;
  const std::vector<std::string>& trained_;
  Graph* work_;
  GraphBuilder b_;
  std::optional<FileOptimizer> file_;
  Expr step_, rate_;
  std::vector<Variable> variables_;
  std::vector<std::vector<std::string>> names_;  // of a variable and its states
  std::vector<std::vector<Expr>> updated_;
  WrittenUpdate written_;
};

}  // namespace

bool IsNormalizationWeight(const Graph& graph, const std::string& weight) {
  const Node* reader = ReaderOf(graph, weight);
  return reader != nullptr && absl::EndsWith(reader->op_type, "Normalization") &&
         reader->inputs[0] != weight;
}

absl::StatusOr<WrittenUpdate> WriteUpdate(const AuthorOptions& options, const WeightChoice& weights,
                                          const Graph& graph,
                                          const std::vector<std::string>& trained,
                                          const std::vector<std::string>& gradients,
                                          const Environment& environment, Graph* work) {
  return UpdateWriter(options, weights, graph, trained, environment, work).Write(gradients);
}

}  // namespace onward
