// SPDX-License-Identifier: Apache-2.0
// Values back into files. Only initializers change; everything else stays byte
// for byte.
#ifndef ONWARD_TRAINING_INFO_EXPORT_H_
#define ONWARD_TRAINING_INFO_EXPORT_H_

#include "absl/status/statusor.h"
#include "core/onnx_io/model.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "training_info/spec.h"
#include "training_info/surgery/surgery.h"

namespace onward {

// The forms in which models are written (DESIGN section 5): the oldest opset, and
// the IR version that knows training_info (7) and functions (8).
inline constexpr int kOldestWrittenOpset = 18;
inline constexpr int kWrittenIr = 8;

// Metadata that says what the classes of a model are called, as a JSON list in the order of
// its outputs. Who uses the plain model needs it too, so InferenceOnly leaves it.
inline constexpr char kMetaClasses[] = "onward.classes";
// Likewise what is done to raw data before the model sees it (data/preparation.h).
inline constexpr char kMetaPreparation[] = "onward.preparation";

// The model with these values in its initializers (inference graph and
// algorithms). A variable without a place in the model is an error.
absl::StatusOr<Model> WithVariables(const Model& model, const Variables& variables);

// The plain inference model: no training_info, nothing that only training needs.
Model InferenceOnly(const Model& model);

// SetInferenceMode for the nodes of a file; everything else stays byte for byte.
absl::StatusOr<ModeChange> ToInferenceMode(Model* model);

// What is handed on to be served: InferenceOnly, in inference mode.
struct PlainModel {
  Model model;
  ModeChange change;  // where the trained file was in training mode
};
absl::StatusOr<PlainModel> ExportPlain(const Model& trained);

// The values of `trained`'s initializers in a copy of `original`, where names,
// types and shapes agree; `original` keeps its opset and all the rest. Weights
// that `original` holds in Constant nodes are replaced there, copies that were tied
// to a weight follow it, and nodes that shared a tensor with others get the one they
// were trained with. An error if nothing corresponds or a trained weight has no place.
absl::StatusOr<Model> ExportLike(const Model& trained, const Model& original,
                                 const Environment& environment);

// Adds an entry to model.training_info, and the functions it calls.
void AddTrainingEntry(const TrainingEntry& entry, Model* model);

// Puts the nodes and update bindings of `entry` in the place of those of training_info[number],
// whose algorithm keeps the rest and gets the initializers and outputs that are new.
void SetAlgorithm(int number, const TrainingEntry& entry, Model* model);

// A model holding `graph`, with the producer, documentation and metadata of
// `like`.
Model RebuildLike(const Model& like, const Graph& graph, int ir_version);

// The values of these initializers, each in memory of its own. They leave the model: values that
// nobody else has are moved, not copied, and what stands for them in the model and in `graphs`,
// which were read from it, is the result's memory from now on.
absl::StatusOr<Variables> TakeVariables(const std::set<std::string>& names,
                                        const std::vector<Graph*>& graphs, Model* model);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_EXPORT_H_
