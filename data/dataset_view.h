// SPDX-License-Identifier: Apache-2.0
// A data set that is another one but for what a derived class changes.
#ifndef ONWARD_DATA_DATASET_VIEW_H_
#define ONWARD_DATA_DATASET_VIEW_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"

namespace onward {

class DatasetView : public Dataset {
 public:
  explicit DatasetView(std::shared_ptr<const Dataset> base) : base_(std::move(base)) {}

  int64_t size() const override { return base_->size(); }
  std::vector<FieldInfo> fields() const override { return base_->fields(); }
  absl::Status Fill(absl::Span<const int64_t> indices, std::vector<Tensor>* batch) const override {
    return base_->Fill(indices, batch);
  }
  absl::Status FillVaried(absl::Span<const int64_t> indices, absl::Span<const uint64_t> keys,
                          std::vector<Tensor>* batch) const override {
    return base_->FillVaried(indices, keys, batch);
  }
  bool rows_are_independent() const override { return base_->rows_are_independent(); }
  bool reads_slowly() const override { return base_->reads_slowly(); }
  bool decodes() const override { return base_->decodes(); }
  TrainingHints hints() const override { return base_->hints(); }
  std::vector<std::string> notes() const override { return base_->notes(); }
  const Preparation* preparation() const override { return base_->preparation(); }
  Standard target() const override { return base_->target(); }
  int64_t classes() const override { return base_->classes(); }
  std::vector<std::string> class_names() const override { return base_->class_names(); }
  bool names_classes() const override { return base_->names_classes(); }
  Tensor class_labels() const override { return base_->class_labels(); }
  std::string source() const override { return base_->source(); }
  std::string place(int64_t example) const override { return base_->place(example); }

 protected:
  const Dataset& base() const { return *base_; }

 private:
  std::shared_ptr<const Dataset> base_;
};

}  // namespace onward

#endif  // ONWARD_DATA_DATASET_VIEW_H_
