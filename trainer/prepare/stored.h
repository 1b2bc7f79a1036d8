// SPDX-License-Identifier: Apache-2.0
// The preparation (data/preparation.h) that a model's file keeps.
#ifndef ONWARD_TRAINER_PREPARE_STORED_H_
#define ONWARD_TRAINER_PREPARE_STORED_H_

#include "absl/status/statusor.h"
#include "core/onnx_io/model.h"
#include "data/preparation.h"

namespace onward {

// An empty one where the file says nothing.
absl::StatusOr<Preparation> StoredPreparation(const Model& model);
// An empty one is removed.
void StorePreparation(const Preparation& preparation, Model* model);

}  // namespace onward

#endif  // ONWARD_TRAINER_PREPARE_STORED_H_
