// SPDX-License-Identifier: Apache-2.0
#include "trainer/prepare/stored.h"

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "training_info/export.h"

namespace onward {

absl::StatusOr<Preparation> StoredPreparation(const Model& model) {
  auto preparation = ParsePreparation(model.Metadata(kMetaPreparation));
  if (preparation.ok()) return preparation;
  return Annotate(preparation.status(),
                  absl::StrCat("'", model.path(), "': metadata ", kMetaPreparation));
}

void StorePreparation(const Preparation& preparation, Model* model) {
  model->SetMetadata(kMetaPreparation, PreparationText(preparation));
}

}  // namespace onward
