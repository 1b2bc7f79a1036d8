// SPDX-License-Identifier: Apache-2.0
#include "data/text/sequences.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/status.h"
#include "data/dataset_view.h"
#include "data/padded.h"
#include "data/text/read_text.h"

namespace onward {
namespace {

// The padded tokens, and what else is known of the texts.
class Texts : public DatasetView {
 public:
  Texts(std::shared_ptr<const Dataset> padded, Sequences sequences)
      : DatasetView(std::move(padded)), sequences_(std::move(sequences)) {}
  bool reads_slowly() const override { return true; }
  TrainingHints hints() const override { return sequences_.hints; }
  std::string place(int64_t example) const override { return sequences_.place(example); }
  const Preparation* preparation() const override { return sequences_.preparation.get(); }

 protected:
  Sequences sequences_;
};

// Its padded field is input_ids, with kNoToken where there is none.
class LabelledDataset : public Texts {
 public:
  LabelledDataset(std::shared_ptr<const Dataset> padded, Sequences sequences, TextLabels labels)
      : Texts(std::move(padded), std::move(sequences)), labels_(std::move(labels)) {}

  std::vector<FieldInfo> fields() const override {
    std::vector<FieldInfo> all = base().fields();
    for (const char* name : {"attention_mask", "token_type_ids"}) {
      all.push_back(all[0]);
      all.back().name = name;
      all.back().by_name = true;
    }
    if (labels_.labels.defined()) {
      const Shape& shape = labels_.labels.shape();
      all.push_back({"y", labels_.labels.dtype(), Shape(shape.dims().subspan(1)), true});
    }
    return all;
  }

  absl::Status Fill(absl::Span<const int64_t> indices, std::vector<Tensor>* batch) const override {
    batch->resize(1);
    ONWARD_RETURN_IF_ERROR(base().Fill(indices, batch));
    Tensor& ids = (*batch)[0];
    Tensor mask(DType::kInt64, ids.shape());
    for (int64_t i = 0; i < ids.elements(); ++i) {
      int64_t& id = ids.data<int64_t>()[i];
      mask.data<int64_t>()[i] = id != kNoToken ? 1 : 0;
      if (id == kNoToken) id = sequences_.pad;
    }
    Tensor types = Tensor::Zeros(DType::kInt64, ids.shape());
    batch->push_back(std::move(mask));
    batch->push_back(std::move(types));
    if (labels_.labels.defined()) batch->push_back(LabelsOf(indices));
    return absl::OkStatus();
  }
  absl::Status FillVaried(absl::Span<const int64_t> indices, absl::Span<const uint64_t>,
                          std::vector<Tensor>* batch) const override {
    return Fill(indices, batch);
  }

  int64_t classes() const override { return labels_.classes; }
  std::vector<std::string> class_names() const override { return labels_.class_names; }
  bool names_classes() const override { return !labels_.class_names.empty(); }
  // A copy: whoever asks may renumber it.
  Tensor class_labels() const override {
    return labels_.classes > 0 ? labels_.labels.Clone() : Tensor();
  }
  Standard target() const override { return labels_.target; }

 private:
  Tensor LabelsOf(absl::Span<const int64_t> indices) const {
    const Tensor& all = labels_.labels;
    Shape shape = all.shape();
    const size_t bytes = all.bytes() / static_cast<size_t>(shape[0]);
    shape[0] = static_cast<int64_t>(indices.size());
    Tensor labels(all.dtype(), shape);
    for (size_t i = 0; i < indices.size(); ++i) {
      std::memcpy(labels.data<char>() + i * bytes,
                  all.data<char>() + static_cast<size_t>(indices[i]) * bytes, bytes);
    }
    return labels;
  }

  TextLabels labels_;
};

// All tokens of an example but `front` at the beginning and `back` at the end.
auto ReadTokens(const Sequences& sequences, size_t front, size_t back) {
  return [tokens = sequences.tokens, front, back](int64_t example) -> absl::StatusOr<Tensor> {
    ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> all, tokens(example));
    const size_t count = all.size() - std::min(all.size(), front + back);
    return Tensor::FromValues<int64_t>(
        {static_cast<int64_t>(count)},
        absl::MakeConstSpan(all).subspan(std::min(front, all.size()), count));
  };
}

PaddedOptions OptionsOf(const Sequences& sequences, int64_t classes) {
  PaddedOptions options;
  options.source = sequences.source;
  options.size = sequences.count;
  options.longest = sequences.preparation->text->length;
  options.classes = classes;
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> NextTokens(Sequences sequences, int64_t vocabulary) {
  std::vector<PaddedField> fields(2);
  fields[0].name = "x";
  fields[0].padding = static_cast<double>(sequences.pad);
  fields[0].read = ReadTokens(sequences, 0, 1);
  fields[1].name = "y";
  fields[1].padding = static_cast<double>(kNoToken);
  fields[1].is_label = true;
  fields[1].read = ReadTokens(sequences, 1, 0);
  ONWARD_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> padded,
                          MakePaddedDataset(std::move(fields), OptionsOf(sequences, vocabulary)));
  return std::make_unique<Texts>(std::move(padded), std::move(sequences));
}

absl::StatusOr<std::unique_ptr<Dataset>> LabelledTexts(Sequences sequences, TextLabels labels) {
  std::vector<PaddedField> fields(1);
  fields[0].name = "input_ids";
  fields[0].padding = static_cast<double>(kNoToken);
  fields[0].read = ReadTokens(sequences, 0, 0);
  ONWARD_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> padded,
                          MakePaddedDataset(std::move(fields), OptionsOf(sequences, 0)));
  return std::make_unique<LabelledDataset>(std::move(padded), std::move(sequences),
                                           std::move(labels));
}

}  // namespace onward
