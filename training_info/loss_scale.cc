// SPDX-License-Identifier: Apache-2.0
#include "training_info/loss_scale.h"

#include <limits>

#include "absl/strings/str_cat.h"

namespace onward {
namespace {

constexpr char kScale[] = "onward_loss_scale";
constexpr char kGoodSteps[] = "onward_growth_steps";
constexpr char kSkippedSteps[] = "onward_skipped_steps";

Expr Float(GraphBuilder& b, double value) { return b.Constant(ScalarOf(DType::kFloat, value)); }

// A sum of absolute values is finite if and only if its terms are, unless they are larger
// than anything that could be learned from.
Expr AllFinite(GraphBuilder& b, const std::vector<Expr>& gradients) {
  std::vector<Expr> sums;
  for (const Expr& g : gradients) {
    sums.push_back(Cast(b.Op("ReduceL1", {Widened(g)}, {{"keepdims", 0}}), DType::kFloat));
  }
  const Expr sum = sums.size() == 1 ? sums[0] : b.Op("Sum", sums);
  return Less(sum, Float(b, std::numeric_limits<double>::infinity()));
}

// Variables of other types are not ours.
ScaleFacts FactsOf(const Tensor* scale, const Tensor* skipped) {
  const auto is = [](const Tensor* t, DType dtype) {
    return t != nullptr && t->dtype() == dtype && t->elements() == 1;
  };
  ScaleFacts facts;
  if (is(scale, DType::kFloat)) facts.scale = *scale->data<float>();
  if (is(skipped, DType::kInt64)) facts.skipped = *skipped->data<int64_t>();
  return facts;
}

std::optional<ScaleFacts> FactsOf(const TrainingModel& model) {
  const std::string name = model.model().Metadata(kMetaLossScale);
  if (name.empty()) return std::nullopt;
  const auto find = [&](const std::string& variable) -> const Tensor* {
    const auto it = model.variables().find(variable);
    return it == model.variables().end() ? nullptr : &it->second;
  };
  return FactsOf(find(name), find(kSkippedSteps));
}

}  // namespace

LossScale::LossScale(GraphBuilder& b, AlgorithmState* state) {
  scale_ = state->Add(b, kScale, ScalarOf(DType::kFloat, kStart)).name();
  growth_ = state->Add(b, kGoodSteps, Tensor::Scalar<int64_t>(0)).name();
  skipped_ = state->Add(b, kSkippedSteps, Tensor::Scalar<int64_t>(0)).name();
}

Expr LossScale::Scaled(const Expr& loss) const {
  return loss * CastLike(loss.builder().Value(scale_), loss);
}

std::vector<Expr> LossScale::Unscaled(GraphBuilder& b, std::vector<Expr> gradients) const {
  const Expr inverse = b.Op("Reciprocal", {b.Value(scale_)});
  for (Expr& g : gradients) g = g * CastLike(inverse, g);
  return gradients;
}

Expr LossScale::Judge(GraphBuilder& b, const std::vector<Expr>& gradients,
                      AlgorithmState* state) const {
  const Expr scale = b.Value(scale_), growth = b.Value(growth_), skipped = b.Value(skipped_);
  const Expr finite = AllFinite(b, gradients);
  const Expr counts = Or(finite, LessOrEqual(scale, Float(b, kSmallest)));
  const Expr grown = growth + b.Int(1), zero = b.Int(0);
  const Expr grows = Equal(grown, b.Int(kGrowthInterval));
  const Expr larger = scale * kGrowth;
  // It stays where it would overflow itself.
  const Expr next =
      Where(Less(larger, Float(b, std::numeric_limits<double>::infinity())), larger, scale);
  const auto bind = [&](const std::string& variable, const Expr& value) {
    state->Bind(variable, b.Named(value, b.UniqueName(absl::StrCat(variable, "__new"))).name());
  };
  bind(scale_, Where(counts, Where(grows, next, scale), scale * kBackoff));
  bind(growth_, Where(counts, Where(grows, zero, grown), zero));
  bind(skipped_, Where(counts, skipped, skipped + b.Int(1)));
  return counts;
}

std::optional<ScaleFacts> StoredScale(const Model& model, const TrainingSpec& spec) {
  const std::string name = model.Metadata(kMetaLossScale);
  if (name.empty()) return std::nullopt;
  return FactsOf(spec.FindInitializer(name), spec.FindInitializer(kSkippedSteps));
}

std::optional<int64_t> SkippedSteps(const TrainingModel& model) {
  const std::optional<ScaleFacts> facts = FactsOf(model);
  return facts.has_value() && facts->skipped >= 0 ? std::optional(facts->skipped) : std::nullopt;
}

double LossScaleNow(const TrainingModel& model) {
  const std::optional<ScaleFacts> facts = FactsOf(model);
  return facts.has_value() ? facts->scale : 0;
}

}  // namespace onward
