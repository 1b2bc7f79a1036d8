// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "trainer/make/bins.h"
#include "trainer/make/layers.h"
#include "trainer/make/make_model.h"

namespace onward {
namespace {

constexpr float kDropout = 0.1f;
constexpr double kFar = 3;  // deviations from where on inputs are drawn in
constexpr double kWidestEmbedding = 64;

// What the layers begin with.
struct Features {
  std::vector<Expr> parts;
  int64_t width = 0;
};

// A row of a table for each name, of the usual width: 1.6 * names^0.56.
void AddEmbeddings(const Expr& codes, const TablePreparation& table, Layers* layers,
                   Features* features) {
  int64_t column = 0;
  for (const ColumnPreparation& c : table.columns) {
    if (!c.is_code()) continue;
    const int64_t wide = std::llround(
        std::clamp(1.6 * std::pow(static_cast<double>(c.width()), 0.56), 1.0, kWidestEmbedding));
    const std::string name = absl::StrCat("embedding", column + 1, ".weight");
    const Expr rows = layers->Weight(name, {c.width(), wide}, std::sqrt(3.0));
    features->parts.push_back(Gather(rows, Gather(codes, layers->b().Int(column), 1), 0));
    features->width += wide;
    ++column;
  }
}

// Numbers, those of tables with their ranges beside them; those far out are drawn in:
// x / sqrt(1 + (x / far)^2).
absl::Status AddInput(size_t index, const FieldInfo& field, const Dataset& data, Layers* layers,
                      Features* features) {
  if (field.dtype == DType::kString || field.varies) {
    return absl::InvalidArgumentError(absl::StrCat(data.source(), ": '", field.name, "' is ",
                                                   field.varies ? "of any length" : "text",
                                                   ", and an mlp takes a fixed number of numbers"));
  }
  GraphBuilder& b = layers->b();
  ValueType type = ValueType::Of(field.dtype, field.shape);
  type.dims.insert(type.dims.begin(), Dim{-1, "N"});
  Expr x = b.Input(field.name, std::move(type));
  const Preparation* preparation = data.preparation();
  const bool table = preparation != nullptr && preparation->table;
  if (field.name == "codes" && table) {
    AddEmbeddings(x, *preparation->table, layers, features);
    return absl::OkStatus();
  }
  if (field.shape.rank() != 1) x = b.Op("Flatten", {x}, {{"axis", 1}});
  if (field.dtype != DType::kFloat) x = Cast(x, DType::kFloat);
  features->width += field.shape.elements();
  if (table && field.name == "x" && field.dtype == DType::kFloat) {
    ONWARD_ASSIGN_OR_RETURN(const NumberBins bins, FindBins(data, index, *preparation->table));
    if (bins.size() > 0) x = Concat({x, Binned(x, bins, &b)}, 1);
    features->width += bins.size();
  }
  features->parts.push_back(x / Sqrt(x * x / (kFar * kFar) + 1));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> OutputsFor(const Dataset& data) {
  if (data.classes() > 0) return std::max<int64_t>(2, data.classes());
  for (const FieldInfo& field : data.fields()) {
    if (field.is_label) return std::max<int64_t>(1, field.shape.elements());
  }
  return absl::InvalidArgumentError(
      absl::StrCat(data.source(), ": has no labels to make a model for"));
}

}  // namespace

absl::StatusOr<Model> MakeMlp(const MlpSpec& spec, const Dataset& data, uint64_t seed,
                              const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(const int64_t outputs, OutputsFor(data));
  Layers layers("mlp", seed, environment);
  Features features;
  const std::vector<FieldInfo> fields = data.fields();
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].is_label) continue;
    ONWARD_RETURN_IF_ERROR(AddInput(i, fields[i], data, &layers, &features));
  }
  if (features.parts.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(data.source(), ": has no inputs"));
  }
  Expr x = features.parts.size() == 1 ? features.parts[0] : Concat(features.parts, 1);
  int64_t width = features.width;
  for (size_t i = 0; i < spec.hidden.size(); ++i) {
    const std::string name = absl::StrCat("layer", i + 1);
    x = layers.Dropout(layers.Relu(layers.Linear(x, name, width, spec.hidden[i])), kDropout);
    width = spec.hidden[i];
  }
  return layers.Finish(layers.Linear(x, "head", width, outputs));
}

}  // namespace onward
