// SPDX-License-Identifier: Apache-2.0
#include "trainer/make/bins.h"

#include <algorithm>
#include <cmath>

#include "absl/types/span.h"
#include "core/base/status.h"

namespace onward {
namespace {

constexpr int64_t kMostBins = 16;     // of a number
constexpr int64_t kFewestInBin = 16;  // examples
constexpr int64_t kMostBinsOfAll = 4096;
constexpr int64_t kMostLookedAt = 20000;  // examples

// Places in x of what is a number, not a name.
std::vector<int64_t> NumberColumns(const TablePreparation& table) {
  std::vector<int64_t> columns;
  int64_t at = 0;
  for (const ColumnPreparation& c : table.columns) {
    if (c.is_code()) continue;
    for (int64_t i = 0; i < c.width(); ++i, ++at) {
      if (c.kind != ColumnKind::kText) columns.push_back(at);
    }
  }
  return columns;
}

// The values of these columns, each sorted.
absl::StatusOr<std::vector<std::vector<float>>> SortedValues(const Dataset& data, size_t field,
                                                             const std::vector<int64_t>& columns) {
  const int64_t count = std::min(data.size(), kMostLookedAt);
  std::vector<int64_t> examples;
  for (int64_t i = 0; i < count; ++i) examples.push_back(i * data.size() / count);
  std::vector<Tensor> batch;
  ONWARD_RETURN_IF_ERROR(data.Fill(examples, &batch));
  const int64_t width = batch[field].shape()[1];
  std::vector<std::vector<float>> values(columns.size());
  for (size_t c = 0; c < columns.size(); ++c) {
    const float* x = batch[field].data<float>() + columns[c];
    for (int64_t i = 0; i < count; ++i) values[c].push_back(x[i * width]);
    std::sort(values[c].begin(), values[c].end());
  }
  return values;
}

// Where the ranges begin and end.
std::vector<float> Edges(const std::vector<float>& sorted, int64_t bins) {
  std::vector<float> edges;
  const auto last = static_cast<int64_t>(sorted.size()) - 1;
  for (int64_t i = 0; i <= bins; ++i) {
    const float edge = sorted[i * last / bins];
    if (edges.empty() || edge > edges.back()) edges.push_back(edge);
  }
  return edges;
}

float Through(float x, float low, float width) { return std::clamp((x - low) / width, 0.0f, 1.0f); }

void AddBin(int64_t column, float low, float high, const std::vector<float>& values,
            NumberBins* bins) {
  const float width = high - low;
  double sum = 0, squares = 0;
  for (float v : values) {
    const double through = Through(v, low, width);
    sum += through;
    squares += through * through;
  }
  const double mean = sum / static_cast<double>(values.size());
  const double variance = squares / static_cast<double>(values.size()) - mean * mean;
  if (!(width > 0) || variance < 1e-12) return;
  bins->column.push_back(column);
  bins->low.push_back(low);
  bins->width.push_back(width);
  bins->mean.push_back(static_cast<float>(mean));
  bins->deviation.push_back(static_cast<float>(std::sqrt(variance)));
}

}  // namespace

absl::StatusOr<NumberBins> FindBins(const Dataset& data, size_t field,
                                    const TablePreparation& table) {
  NumberBins bins;
  const std::vector<int64_t> columns = NumberColumns(table);
  const int64_t each =
      std::min({kMostBins, data.size() / kFewestInBin,
                kMostBinsOfAll / std::max<int64_t>(1, static_cast<int64_t>(columns.size()))});
  if (each < 2 || columns.empty()) return bins;
  ONWARD_ASSIGN_OR_RETURN(const auto values, SortedValues(data, field, columns));
  for (size_t c = 0; c < columns.size(); ++c) {
    const std::vector<float> edges = Edges(values[c], each);
    // One range is the number itself.
    for (size_t i = 0; edges.size() > 2 && i + 1 < edges.size(); ++i) {
      AddBin(columns[c], edges[i], edges[i + 1], values[c], &bins);
    }
  }
  return bins;
}

Expr Binned(const Expr& x, const NumberBins& bins, GraphBuilder* b) {
  const auto row = [&](const std::vector<float>& values) {
    return b->Constant(Tensor::FromValues<float>({bins.size()}, absl::MakeConstSpan(values)));
  };
  const auto number = [&](float value) { return b->Constant(Tensor::Scalar<float>(value)); };
  const Expr picked = Gather(x, b->Ints(bins.column), 1);
  const Expr through =
      b->Op("Clip", {(picked - row(bins.low)) / row(bins.width), number(0), number(1)});
  return (through - row(bins.mean)) / row(bins.deviation);
}

}  // namespace onward
