// SPDX-License-Identifier: Apache-2.0
#include "training_info/author_update.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/rename.h"
#include "optimizers/clip.h"
#include "training_info/author_groups.h"
#include "training_info/averages.h"
#include "training_info/file_optimizer.h"

namespace onward {
namespace {

Tensor Filled(DType dtype, const Shape& shape, double value) {
  if (value == 0) return Tensor::Zeros(dtype, shape);
  Tensor t(dtype, shape);
  const Tensor one = ScalarOf(dtype, value);
  const size_t width = DTypeBits(dtype) / 8;
  for (int64_t i = 0; i < t.elements(); ++i)
    std::copy_n(one.data<char>(), width, t.data<char>() + i * width);
  return t;
}

DType Wide(DType dtype) { return IsHalf(dtype) ? DType::kFloat : dtype; }

class UpdateWriter {
 public:
  UpdateWriter(const UpdateRequest& request, AlgorithmState* state, Graph* work)
      : options_(request.options),
        base_{options_.optimizer, options_.optimizer_file, options_.optimizer_numbers},
        request_(request),
        graph_(request.graph),
        trained_(request.trained),
        state_(*state),
        work_(work),
        b_(work, &request.environment.operators(), "update") {}

  absl::StatusOr<WrittenUpdate> Write() {
    if (base_.is_file()) {
      ONWARD_ASSIGN_OR_RETURN(file_, FileOptimizer::Read(base_.file));
    }
    std::vector<std::string> names;
    for (const TrainedWeight& t : trained_) names.push_back(t.name);
    ONWARD_ASSIGN_OR_RETURN(const std::vector<WeightGroup> groups,
                            GroupWeights(options_, base_, file_, request_.weights, graph_, names));
    WriteRate();
    ONWARD_RETURN_IF_ERROR(b_.status());
    std::vector<Expr> grads = Judged();
    Accumulate(grads);
    const size_t begin = work_->nodes.size();
    AddVariables(Clipped(Means(std::move(grads))), groups);
    updated_.resize(trained_.size());
    for (const WeightGroup& group : groups) ONWARD_RETURN_IF_ERROR(Update(group));
    CollectNew();
    ONWARD_RETURN_IF_ERROR(b_.status());
    if (due_.defined()) {
      BindIfDue(begin);
    } else {
      BindAlways();
    }
    ONWARD_RETURN_IF_ERROR(b_.status());
    return WrittenUpdate{rate_.name(), GroupsOf(groups, names)};
  }

 private:
  std::vector<GroupFacts> GroupsOf(const std::vector<WeightGroup>& groups,
                                   const std::vector<std::string>& names) const {
    std::vector<GroupFacts> facts;
    for (const WeightGroup& group : groups) {
      std::string own = OwnOptions(options_, base_, group);
      if (own.empty()) continue;
      facts.push_back({std::move(own), {}});
      for (const size_t i : group.members) facts.back().weights.push_back(names[i]);
    }
    return facts;
  }

  // The schedule counts updates, and so does the optimizer.
  void WriteRate() {
    const int first = file_.has_value() ? 0 : FirstStep(base_.spec);
    step_ = state_.Add(b_, kStepVariable, Tensor::Scalar<int64_t>(first));
    const Expr count = first == 0 ? step_ : step_ - b_.Int(first);
    rate_ = b_.Named(BuildSchedule(b_, options_.schedule, base_.lr(), count, trained_[0].dtype),
                     b_.UniqueName("learning_rate"));
  }

  // The gradients as they are, and whether the step counts: always, but for overflows.
  std::vector<Expr> Judged() {
    std::vector<Expr> grads;
    for (const std::string& g : request_.gradients) grads.push_back(b_.Value(g));
    if (!request_.scale.has_value()) return grads;
    grads = request_.scale->Unscaled(b_, std::move(grads));
    const std::vector<Binding> statistics = state_.bindings();
    due_ = request_.scale->Judge(b_, grads, &state_);
    for (size_t i = 0; i < statistics.size(); ++i) {
      const Expr kept =
          Where(due_, b_.Value(statistics[i].value), b_.Value(statistics[i].variable));
      state_.bindings()[i].value =
          b_.Named(kept, b_.UniqueName(absl::StrCat(statistics[i].variable, "__new"))).name();
    }
    return grads;
  }

  // Adds the gradients to what came since the last update, and says whether one is due.
  void Accumulate(const std::vector<Expr>& grads) {
    if (options_.accumulate <= 1) return;
    const Expr counts = due_;
    const auto if_counts = [&](const Expr& now, const Expr& before) {
      return counts.defined() ? Where(counts, now, before) : now;
    };
    const Expr calls = state_.Add(b_, kCallsVariable, Tensor::Scalar<int64_t>(0));
    const Expr called = calls + b_.Int(1);
    const Expr full = Equal(called, b_.Int(options_.accumulate));
    due_ = counts.defined() ? And(counts, full) : full;
    BindNew(calls, Where(due_, b_.Int(0), if_counts(called, calls)));
    for (size_t i = 0; i < grads.size(); ++i) {
      const TrainedWeight& t = trained_[i];
      const Shape& shape = graph_.initializers.at(t.name).shape();
      const Expr sum =
          state_.Add(b_, absl::StrCat(t.name, "__sum"), Tensor::Zeros(Wide(t.dtype), shape));
      BindNew(sum, Where(due_, b_.Scalar(0, sum), if_counts(sum + CastLike(grads[i], sum), sum)));
      sums_.push_back(sum);
    }
  }

  // What the update goes by. The last sum is computed here again: kept for this, it would be
  // written in every step.
  std::vector<Expr> Means(std::vector<Expr> grads) {
    for (size_t i = 0; i < sums_.size(); ++i) {
      const Expr sum = sums_[i] + CastLike(grads[i], sums_[i]);
      grads[i] =
          CastLike(sum / static_cast<double>(options_.accumulate), b_.Value(trained_[i].variable));
    }
    return grads;
  }

  std::vector<Expr> Clipped(std::vector<Expr> grads) {
    if (options_.clip_adaptive > 0) {
      for (size_t i = 0; i < grads.size(); ++i) {
        grads[i] = ClipByUnitNorm(b_, b_.Value(trained_[i].variable), grads[i],
                                  UnitsLast(graph_, trained_[i].name), options_.clip_adaptive);
      }
    }
    if (options_.clip_value > 0) grads = ClipByValue(b_, std::move(grads), options_.clip_value);
    if (options_.clip_norm > 0) grads = ClipByGlobalNorm(b_, std::move(grads), options_.clip_norm);
    return grads;
  }

  std::vector<StateTensor> StatesOf(const OptimizerChoice& choice, const Shape& shape) const {
    return file_.has_value() ? file_->States(shape) : States(choice.spec, shape);
  }

  void AddVariables(const std::vector<Expr>& grads, const std::vector<WeightGroup>& groups) {
    std::vector<const OptimizerChoice*> optimizers(trained_.size());
    for (const WeightGroup& group : groups) {
      for (size_t i : group.members) optimizers[i] = &group.optimizer;
    }
    for (size_t i = 0; i < trained_.size(); ++i) {
      const TrainedWeight& t = trained_[i];
      Variable v{b_.Value(t.variable), grads[i], {}};
      for (const StateTensor& s :
           StatesOf(*optimizers[i], graph_.initializers.at(t.name).shape())) {
        v.states.push_back(
            state_.Add(b_, absl::StrCat(t.name, s.suffix), Filled(t.dtype, *s.shape, s.initial)));
      }
      variables_.push_back(std::move(v));
    }
  }

  absl::Status Update(const WeightGroup& group) {
    const double base = base_.lr();
    const double factor = base == 0 ? 1 : group.optimizer.lr() / base;
    const Expr rate = factor == 1 ? rate_ : rate_ * factor;
    std::vector<std::vector<Expr>> updated;
    std::vector<Variable> members;
    for (size_t i : group.members) members.push_back(variables_[i]);
    if (file_.has_value()) {
      for (const Variable& v : members) {
        ONWARD_ASSIGN_OR_RETURN(updated.emplace_back(),
                                file_->Update(b_, rate, step_, group.optimizer.numbers, v));
      }
    } else {
      ONWARD_RETURN_IF_ERROR(BuildUpdate(b_, group.optimizer.spec, rate, step_, members, &updated));
    }
    for (size_t k = 0; k < group.members.size(); ++k) updated_[group.members[k]] = updated[k];
    return absl::OkStatus();
  }

  // What an update assigns, in the order of the file.
  void CollectNew() {
    for (size_t i = 0; i < trained_.size(); ++i) {
      const TrainedWeight& t = trained_[i];
      new_.emplace_back(t.variable, updated_[i][0]);
      for (size_t s = 0; s < variables_[i].states.size(); ++s) {
        new_.emplace_back(variables_[i].states[s].name(), updated_[i][1 + s]);
      }
    }
    for (size_t i = 0; i < trained_.size(); ++i) {
      const TrainedWeight& t = trained_[i];
      if (t.variable != t.name) {
        new_.emplace_back(t.name, Cast(updated_[i][0], graph_.initializers.at(t.name).dtype()));
      }
    }
    if (options_.ema > 0) {
      for (size_t i = 0; i < trained_.size(); ++i) AddAverage(trained_[i], updated_[i][0]);
    }
  }

  // A' = decay*A + (1 - decay)*X', X' being the new weight.
  void AddAverage(const TrainedWeight& t, const Expr& value) {
    const Tensor& weight = graph_.initializers.at(t.name);
    const Expr average = state_.AddLike(b_, absl::StrCat(t.name, "__ema"), t.name,
                                        RoundedTo(Wide(weight.dtype()), weight), kAverageOfKey);
    new_.emplace_back(average.name(),
                      average * options_.ema + CastLike(value, average) * (1 - options_.ema));
  }

  std::string NewName(const std::string& variable) {
    return b_.UniqueName(absl::StrCat(variable, "__new"));
  }
  void BindNew(const Expr& variable, const Expr& value) {
    state_.Bind(variable.name(), b_.Named(value, NewName(variable.name())).name());
  }

  // New names in place rather than by Identity nodes, so that an optimizer's result is
  // directly what gets bound.
  void BindAlways() {
    Renaming renamed;
    for (const auto& [variable, value] : new_) {
      const std::string name = NewName(variable);
      renamed[value.name()] = name;
      state_.Bind(variable, name);
    }
    RenameEverywhere(renamed, work_);
    BindNew(step_, step_ + b_.Int(1));
  }

  // The nodes from `begin` on become a branch of an If, whose other branch leaves everything as
  // it is.
  void BindIfDue(size_t begin) {
    new_.emplace_back(step_.name(), step_ + b_.Int(1));
    Graph update, keep;
    update.name = "update";
    keep.name = "keep";
    const auto first = work_->nodes.begin() + static_cast<int64_t>(begin);
    update.nodes.assign(std::make_move_iterator(first),
                        std::make_move_iterator(work_->nodes.end()));
    work_->nodes.erase(first, work_->nodes.end());
    absl::flat_hash_set<std::string> inside;  // and not yet an output
    for (const Node& node : update.nodes) inside.insert(node.outputs.begin(), node.outputs.end());
    Node branch;
    branch.op_type = "If";
    branch.name = "update_if_due";
    branch.inputs = {due_.name()};
    const auto identity = [&](const std::string& value, const std::string& name, Graph* body) {
      Node node;
      node.op_type = "Identity";
      node.inputs = {value};
      node.outputs = {b_.UniqueName(name)};
      body->nodes.push_back(node);
      return node.outputs[0];
    };
    for (const auto& [variable, value] : new_) {
      const ValueType type = *work_->TypeOf(variable);
      const bool own = inside.erase(value.name()) > 0;
      update.outputs.push_back(
          {own ? value.name() : identity(value.name(), absl::StrCat(variable, "__due"), &update),
           type});
      keep.outputs.push_back({identity(variable, absl::StrCat(variable, "__kept"), &keep), type});
      branch.outputs.push_back(NewName(variable));
      state_.Bind(variable, branch.outputs.back());
    }
    branch.attributes["then_branch"] = std::make_shared<const Graph>(std::move(update));
    branch.attributes["else_branch"] = std::make_shared<const Graph>(std::move(keep));
    const std::vector<std::string> outputs = branch.outputs;
    b_.Append(std::move(branch));
    for (size_t i = 0; i < outputs.size(); ++i) {
      work_->types[outputs[i]] = *work_->TypeOf(new_[i].first);
    }
  }

  const AuthorOptions& options_;
  const OptimizerChoice base_;
  const UpdateRequest& request_;
  const Graph& graph_;
  const std::vector<TrainedWeight>& trained_;
  AlgorithmState& state_;
  Graph* work_;
  GraphBuilder b_;
  std::optional<FileOptimizer> file_;
  Expr step_, rate_;
  Expr due_;                // whether this step updates anything; not defined: every step does
  std::vector<Expr> sums_;  // of gradients since the last update; none: every step is one
  std::vector<Variable> variables_;
  std::vector<std::vector<Expr>> updated_;         // of each weight, then its states
  std::vector<std::pair<std::string, Expr>> new_;  // variable, what an update makes of it
};

}  // namespace

absl::StatusOr<WrittenUpdate> WriteUpdate(const UpdateRequest& request, AlgorithmState* state,
                                          Graph* work) {
  return UpdateWriter(request, state, work).Write();
}

}  // namespace onward
