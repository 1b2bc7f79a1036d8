// SPDX-License-Identifier: Apache-2.0
// Models with adapters: merged, without them, and adapters in files of their own.
//
// Such a file is an ONNX model without nodes. Its initializers are the A and B of each adapter,
// with the metadata of adapter.h, and, marked kLoraWhole, weights that were trained whole beside
// them.
#ifndef ONWARD_TRAINING_INFO_ADAPTERS_FILES_H_
#define ONWARD_TRAINING_INFO_ADAPTERS_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/onnx_io/model.h"
#include "training_info/adapters/adapter.h"
#include "training_info/adapters/merge.h"

namespace onward {

// Metadata of a file of adapters: what they are.
inline constexpr char kMetaAdapters[] = "onward.adapters";
inline constexpr char kMetaLora[] = "lora";

// Of the inference graph.
absl::StatusOr<std::vector<Adapter>> AdaptersOf(const Model& model);

struct MergedModel {
  Model model;  // without training; where there are no adapters, as it was
  Merged merged;
};
absl::StatusOr<MergedModel> WithAdaptersMerged(const Model& model, MergeMode mode,
                                               const Environment& environment);

// The adapters of a model as a file of their own, with what trained whole beside them.
absl::StatusOr<Model> AdaptersApart(const Model& trained);

struct AppliedModel {
  Model model;
  std::vector<std::string> notes;
};
// The model with the adapters of such a file as nodes, and its whole weights. It may be the one
// that training began with, or any that has weights of these names and shapes.
absl::StatusOr<AppliedModel> WithAdapters(const Model& model, const Model& adapters,
                                          const Environment& environment);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_ADAPTERS_FILES_H_
