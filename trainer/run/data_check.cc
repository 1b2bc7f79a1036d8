// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/data_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/attribute_lists.h"
#include "core/tensor/finite.h"

namespace onward {
namespace {

constexpr int64_t kQuickBytes = 64 << 20;  // as tensors
constexpr int64_t kPieceBytes = 4 << 20;   // of these at a time
constexpr int64_t kInputBytesAtOnce = 16 << 20;
constexpr int64_t kDecoded = 64, kFewest = 16;

struct BadNumber {
  int64_t row = 0;
  double value = 0;
};

// The first number of a tensor [rows, ...] that is not finite.
std::optional<BadNumber> FirstBad(const Tensor& t) {
  if (!IsFloating(t.dtype()) || t.shape().rank() == 0 || AllFinite(t)) return std::nullopt;
  const auto values = ToDoubles(t);
  if (!values.ok()) return std::nullopt;
  const size_t each = values->size() / static_cast<size_t>(t.shape()[0]);
  for (size_t i = 0; i < values->size(); ++i) {
    if (std::isfinite((*values)[i])) continue;
    return BadNumber{static_cast<int64_t>(i / each), (*values)[i]};
  }
  return std::nullopt;
}

absl::Status CheckLabels(const Tensor& labels, const LabelRange& range, const Batch& batch,
                         const Dataset& data, const std::string& field) {
  if (range.classes == 0 || !IsInteger(labels.dtype()) || labels.shape().rank() == 0) {
    return absl::OkStatus();
  }
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> values, ToInts(labels));
  const size_t each = values.size() / static_cast<size_t>(std::max<int64_t>(labels.shape()[0], 1));
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t least = range.negative ? std::numeric_limits<int64_t>::min() : 0;
    if (values[i] == range.ignored || (values[i] >= least && values[i] < range.classes)) continue;
    const std::string found = absl::StrCat(data.source(), ": '", field, "' of ",
                                           data.place(batch.indices[i / each]), " is ", values[i]);
    if (values[i] < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          found,
          ", which is no class; where it means that there is none, say so to the loss: "
          "--loss cross_entropy:ignore_index=",
          values[i]));
    }
    return absl::InvalidArgumentError(absl::StrCat(found, ", but output '", range.output, "' has ",
                                                   range.classes, " classes, 0 to ",
                                                   range.classes - 1));
  }
  return absl::OkStatus();
}

int64_t ExampleBytes(const Dataset& data) {
  int64_t bytes = 1;
  for (const FieldInfo& field : data.fields()) {
    bytes += static_cast<int64_t>(TensorBytes(field.dtype, field.shape));
  }
  return bytes;
}

// How many examples are looked at. What is decoded was looked at when it was opened, and its
// numbers are finite.
int64_t Extent(const Dataset& data, bool all) {
  const int64_t most = all ? data.size() : std::max(kFewest, kQuickBytes / ExampleBytes(data));
  return std::min(data.size(), data.decodes() ? std::min(most, kDecoded) : most);
}

}  // namespace

int64_t ExamplesAtOnce(const Dataset& data) {
  return std::clamp<int64_t>(kInputBytesAtOnce / std::max<int64_t>(ExampleBytes(data), 1), 1, 256);
}

std::string BadPlace(const Batch& batch, const Dataset& data) {
  const std::vector<FieldInfo> fields = data.fields();
  for (size_t k = 0; k < batch.tensors.size() && k < fields.size(); ++k) {
    const std::optional<BadNumber> bad = FirstBad(batch.tensors[k]);
    if (!bad.has_value()) continue;
    return absl::StrCat("; '", fields[k].name, "' of ",
                        data.place(batch.indices[static_cast<size_t>(bad->row)]), " is ",
                        bad->value);
  }
  return "";
}

absl::Status CheckData(const Dataset& data, const Feeding& feeding,
                       const std::vector<LabelRange>& ranges, const DataCheck& check) {
  const std::vector<FieldInfo> fields = data.fields();
  const int64_t extent = Extent(data, check.all);
  const int64_t piece = std::max(kFewest, kPieceBytes / ExampleBytes(data));
  Batch batch;
  for (int64_t start = 0; start < extent; start += piece) {
    batch.indices.resize(static_cast<size_t>(std::min(piece, extent - start)));
    std::iota(batch.indices.begin(), batch.indices.end(), start);
    ONWARD_RETURN_IF_ERROR(data.Fill(batch.indices, &batch.tensors));
    const std::string bad = check.finite ? BadPlace(batch, data) : "";
    if (!bad.empty()) {
      return absl::OutOfRangeError(
          absl::StrCat(data.source(), ": holds numbers that are not finite", bad));
    }
    for (const LabelRange& range : ranges) {
      const int field = feeding.FieldOf(range.label);
      if (field < 0) continue;
      ONWARD_RETURN_IF_ERROR(CheckLabels(batch.tensors[static_cast<size_t>(field)], range, batch,
                                         data, fields[static_cast<size_t>(field)].name));
    }
  }
  return absl::OkStatus();
}

bool HandlesNan(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (node.Is("IsNaN") || node.Is("Imputer", kMlDomain)) return true;
    bool inside = false;
    ForEachBody(node, [&](const std::string&, const Graph& body) { inside |= HandlesNan(body); });
    if (inside) return true;
  }
  return false;
}

}  // namespace onward
