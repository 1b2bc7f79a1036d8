// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/builder.h"
#include "core/graph/rename.h"
#include "training_info/initializers/layer.h"
#include "training_info/surgery/surgery.h"

namespace onward {
namespace {

constexpr double kTokenDeviation = 0.02;
constexpr double kSlope = 0.25;  // nn.PReLU's

double BoundOf(int64_t fan) {
  return 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, fan)));
}

// How one weight begins, by its layer and what was chosen for matrices.
class Beginning {
 public:
  Beginning(GraphBuilder& b, const InitSpec& spec, const WeightLayer& layer, std::string name)
      : b_(b), spec_(spec), layer_(layer), weight_(layer.matrix), name_(std::move(name)) {}

  Expr Value() const {
    switch (layer_.role) {
      case WeightRole::kMatrix: return DrawWeight(b_, spec_, weight_, name_);
      case WeightRole::kBias: return is_default() ? Within(weight_.fan_in) : Filled(0);
      case WeightRole::kRecurrentInput:
        return is_default() ? Within(layer_.hidden_size) : DrawWeight(b_, spec_, weight_, name_);
      case WeightRole::kRecurrentState: return RecurrentState();
      case WeightRole::kRecurrentBias: return RecurrentBias();
      case WeightRole::kEmbedding:
        return DrawNormal(b_, weight_.dtype, weight_.shape, 0, OptionOf(spec_, "embedding_std"),
                          name_);
      case WeightRole::kScale: return Filled(1);
      case WeightRole::kShift: return Filled(0);
      case WeightRole::kSlope: return Filled(kSlope);
      case WeightRole::kToken:
        return DrawNormal(b_, weight_.dtype, weight_.shape, 0, kTokenDeviation, name_);
      case WeightRole::kAdapterDown: return Within(weight_.fan_in);
      case WeightRole::kAdapterUp: return Filled(0);
    }
    return Filled(0);
  }

 private:
  bool is_default() const { return spec_.name == "default"; }
  Expr Filled(double value) const { return Fill(b_, weight_.dtype, weight_.shape, value, name_); }
  // Uniform up to 1/sqrt(fan), either way.
  Expr Within(int64_t fan) const { return Within(fan, weight_.shape); }
  Expr Within(int64_t fan, const Shape& shape) const {
    return DrawUniform(b_, weight_.dtype, shape, -BoundOf(fan), BoundOf(fan), name_);
  }

  Expr RecurrentState() const {
    if (is_default()) return Within(layer_.hidden_size);
    const bool fitted = spec_.name.starts_with("kaiming") || spec_.name.starts_with("xavier");
    const bool orthogonal = fitted && OptionOf(spec_, "recurrent") == 0;
    return orthogonal ? DrawOrthogonal(b_, weight_, name_) : DrawWeight(b_, spec_, weight_, name_);
  }

  // Gates stand side by side, [directions, gates * hidden_size] of one bias or of two. The gate
  // that keeps the state is the third of LSTM's (i, o, f, c) and the first of GRU's (z, r, h); the
  // number it begins with stands in the first of the two biases.
  Expr RecurrentBias() const {
    const int64_t gate = layer_.op == "LSTM" ? 2 : 0;
    const double kept = layer_.op == "LSTM"  ? OptionOf(spec_, "forget_bias")
                        : layer_.op == "GRU" ? OptionOf(spec_, "update_bias")
                                             : 0;
    const int64_t h = layer_.hidden_size;
    const bool fits = weight_.shape.rank() == 2 && weight_.shape[1] >= (gate + 1) * h;
    if (kept == 0 || !fits) return is_default() ? Within(h) : Filled(0);
    const auto others = [&](int64_t columns) {
      const Shape shape = {weight_.shape[0], columns};
      return is_default() ? Within(h, shape) : Fill(b_, weight_.dtype, shape, 0, name_);
    };
    std::vector<Expr> parts;
    if (gate > 0) parts.push_back(others(gate * h));
    parts.push_back(Fill(b_, weight_.dtype, {weight_.shape[0], h}, kept, name_));
    const int64_t behind = weight_.shape[1] - (gate + 1) * h;
    if (behind > 0) parts.push_back(others(behind));
    return parts.size() == 1 ? parts[0] : Concat(std::move(parts), 1);
  }

  GraphBuilder& b_;
  const InitSpec& spec_;
  const WeightLayer& layer_;
  const WeightMatrix& weight_;
  const std::string name_;
};

// States start uniform; a scalar keeps its exact value as a constant.
Expr StateValue(GraphBuilder& b, const Tensor& start, const std::string& name) {
  const auto numbers = ToDoubles(start);
  if (start.elements() == 1 || !numbers.ok() || numbers->empty())
    return b.Op("Constant", {}, {{"value", start.Clone()}}, "", name);
  return Fill(b, start.dtype(), start.shape(), numbers->front(), name);
}

}  // namespace

absl::Status AddInitialization(const Graph& graph, const std::vector<std::string>& weights,
                               const std::vector<std::pair<std::string, Tensor>>& states,
                               const InitSpec& spec, const OperatorSet& operators,
                               TrainingEntry* entry) {
  ONWARD_RETURN_IF_ERROR(CheckInit(spec));
  Graph& init = entry->initialization;
  init.name = "initialization";
  init.opsets = graph.opsets;
  GraphBuilder b(&init, &operators, "init");
  Renaming renamed;
  // The last node of what a variable begins with gives a value of this name. Where a random node is
  // the last one, its draws go by that name (core/device/plan/random.h).
  const auto bind = [&](const std::string& variable, const std::string& value, const Expr& start,
                        const Tensor& like) {
    if (start.name() != value) renamed[start.name()] = value;
    init.outputs.push_back({value, ValueType::Of(like.dtype(), like.shape())});
    entry->initialization_bindings.push_back({variable, value});
  };
  // All of these before any value that is named after one.
  std::vector<std::string> values;
  for (const std::string& name : weights) values.push_back(b.UniqueName(name + "__init"));
  for (const auto& [name, start] : states) values.push_back(b.UniqueName(name + "__init"));
  auto value = values.begin();
  const LayerFinder layers(graph);
  for (const std::string& name : weights) {
    const WeightLayer layer = layers.Find(name);
    const Expr start = Beginning(b, spec, layer, *value + "__draw").Value();
    bind(name, *value++, start, graph.initializers.at(name));
  }
  for (const auto& [name, start] : states) {
    bind(name, *value, StateValue(b, start, *value + "__start"), start);
    ++value;
  }
  ONWARD_RETURN_IF_ERROR(b.status());
  RenameEverywhere(renamed, &init);
  return absl::OkStatus();
}

}  // namespace onward
