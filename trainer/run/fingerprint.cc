// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/fingerprint.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "data/sha256.h"

namespace onward {
namespace {

constexpr size_t kBlock = 1024, kBlocks = 16;  // of one tensor
constexpr int64_t kExamples = 16;
constexpr size_t kDigits = 32;

std::string Short(const std::string& bytes) { return Sha256(bytes).substr(0, kDigits); }

void AddTensor(const Tensor& t, std::string* bytes) {
  absl::StrAppend(bytes, "\n", DTypeName(t.dtype()), t.shape().ToString());
  if (t.dtype() == DType::kString) {
    for (const std::string& text : t.values<std::string>()) absl::StrAppend(bytes, "\n", text);
    return;
  }
  // Small tensors whole; of large ones blocks at equal distances, the last one at the end.
  const auto* data = static_cast<const char*>(t.raw());
  const size_t size = t.bytes();
  if (size <= kBlock * kBlocks) {
    bytes->append(data, size);
    return;
  }
  for (size_t k = 0; k < kBlocks; ++k) {
    bytes->append(data + (size - kBlock) * k / (kBlocks - 1), kBlock);
  }
}

}  // namespace

absl::StatusOr<std::string> ModelFingerprint(const Model& model) {
  ONWARD_ASSIGN_OR_RETURN(const Graph graph, InferenceGraph(model));
  std::string bytes;
  for (const auto* values : {&graph.inputs, &graph.outputs}) {
    for (const NamedType& v : *values)
      absl::StrAppend(&bytes, v.name, " ", v.type.ToString(), "\n");
  }
  for (const Node& node : graph.nodes) absl::StrAppend(&bytes, ToText(node), "\n");
  for (const auto& [name, tensor] : graph.initializers) {
    bytes.append(name);
    AddTensor(tensor, &bytes);
  }
  return Short(bytes);
}

absl::StatusOr<std::string> DataFingerprint(const Dataset& data) {
  std::string bytes = Describe(data);
  for (const std::string& name : data.class_names()) absl::StrAppend(&bytes, "\n", name);
  const int64_t count = std::min(kExamples, data.size());
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < count; ++i) {
    indices.push_back(i * (data.size() - 1) / std::max<int64_t>(count - 1, 1));
  }
  std::vector<Tensor> batch;
  ONWARD_RETURN_IF_ERROR(data.Fill(indices, &batch));
  for (const Tensor& t : batch) AddTensor(t, &bytes);
  return Short(bytes);
}

std::string RunFingerprint(const TrainingSpec& spec, const TrainOptions& options,
                           const std::string& data_fingerprint) {
  std::string bytes =
      absl::StrCat(options.model_fingerprint, "\n", data_fingerprint, "\n", options.seed, " ",
                   options.batch, " ", options.shuffle, options.balance, options.drop_last);
  for (const TrainingEntry& entry : spec.entries) {
    for (const Node& node : entry.algorithm.nodes) absl::StrAppend(&bytes, "\n", ToText(node));
    for (const auto& [name, tensor] : entry.algorithm.initializers) {
      absl::StrAppend(&bytes, "\n", name);
      AddTensor(tensor, &bytes);
    }
  }
  return Short(bytes);
}

}  // namespace onward
