// SPDX-License-Identifier: Apache-2.0
// A data set: numbered examples, each with one tensor per field, and the text
// form ("mnist:DIR?limit=1000") that names one on the command line.
#ifndef ONWARD_DATA_DATASET_H_
#define ONWARD_DATA_DATASET_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/dtype.h"
#include "core/base/shape.h"
#include "core/tensor/tensor.h"
#include "data/preparation.h"

namespace onward {

inline constexpr size_t kMostTextClasses = 10000;  // more are texts, not names

struct FieldInfo {
  std::string name;  // "x", "y", or the name of an .npz array
  DType dtype = DType::kUndefined;
  Shape shape;  // of one example: a batch has one axis more, in front
  bool is_label = false;
  bool varies = false;   // shape[0] is the most there is: a batch has what its longest needs
  bool by_name = false;  // for an input of the same name only
};

// Of `count` examples that have this shape.
Shape BatchShape(int64_t count, const Shape& example);

// What a data set's spec asks of training and not of evaluation, beside augmentation.
struct TrainingHints {
  bool balance = false;          // classes are taken equally often
  double mixup = 0, cutmix = 0;  // alpha of their Beta distributions; 0: none
  bool mixes() const { return mixup > 0 || cutmix > 0; }
};

// Immutable once made; all functions may be called from several threads. What wraps another
// data set derives from DatasetView (dataset_view.h), which hands everything on.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  // Labels come last. At most one field is the label.
  virtual std::vector<FieldInfo> fields() const = 0;
  // Makes *batch hold one tensor [indices.size(), ...] per field, in the order
  // of fields(). Tensors already in *batch that have the right type and shape
  // are overwritten in place. An index outside [0, size()) is an error.
  virtual absl::Status Fill(absl::Span<const int64_t> indices,
                            std::vector<Tensor>* batch) const = 0;
  // The same for training: example i in the random variation that keys[i] decides, it alone
  // (random.h). By default an example has no variations.
  virtual absl::Status FillVaried(absl::Span<const int64_t> indices, absl::Span<const uint64_t>,
                                  std::vector<Tensor>* batch) const {
    return Fill(indices, batch);
  }
  // Whether every row of a batch depends on its own example alone and has the shape that
  // fields() says, so that threads may fill a batch in parts.
  virtual bool rows_are_independent() const { return true; }
  // Whether it pays to read ahead of the step: files, decoding.
  virtual bool reads_slowly() const { return false; }
  // Whether examples are decoded, as pictures are: having them all takes as long as an epoch.
  virtual bool decodes() const { return false; }
  virtual TrainingHints hints() const { return {}; }
  // What the user should know of how the data was read, one sentence each.
  virtual std::vector<std::string> notes() const { return {}; }
  // What was done to the raw data; null where nothing was, or it is not known.
  virtual const Preparation* preparation() const { return nullptr; }
  // How labels that are numbers were standardised.
  virtual Standard target() const { return {}; }

  // Every label is below classes(), and a negative one means "ignore". 0 means
  // regression or no label.
  virtual int64_t classes() const = 0;
  // classes() names, or none.
  virtual std::vector<std::string> class_names() const = 0;
  // Whether the data itself calls its classes so. Otherwise labels are numbers that mean
  // the same in other data sets, and class_names() are those numbers.
  virtual bool names_classes() const { return false; }
  // The class labels of all examples in order, int64 [size(), ...]; empty where there are
  // none.
  virtual Tensor class_labels() const { return Tensor(); }
  // For messages: what the data was read from, and where one example stands in it.
  virtual std::string source() const { return "the data"; }
  virtual std::string place(int64_t example) const {
    return absl::StrCat("example ", example, " of ", source());
  }
};

enum class Split { kTrain, kTest };

// What the model says of the data that it meets.
struct DataContext {
  // Done to the data, in the place of what would suit it best; null or empty: nothing is known.
  const Preparation* preparation = nullptr;
  std::optional<Shape> picture_size = std::nullopt;  // that it takes: height, width; for messages
  bool made_for_data = false;    // the model is going to be made for this very data
  bool labels_optional = false;  // the data may lack labels
};

// Opens the data set that `spec` names. `split` is what data sets that come in
// two halves use where the spec does not say: kTrain for --data, kTest for
// --eval. DataSpecHelp() describes the forms and options.
absl::StatusOr<std::unique_ptr<Dataset>> ParseDataSpec(absl::string_view spec, Split split,
                                                       const DataContext& context = {});

// Whether the spec takes a share of its data for training (split=0.8, fold=1/5), so that opened
// with kTest it is the rest.
bool IsSplitSpec(absl::string_view spec);

// The forms of a data spec and their options, for --help.
std::string DataSpecHelp();

// "60000 examples, x float [1, 28, 28], y int64 [], 10 classes".
std::string Describe(const Dataset& dataset);

// `t` as another numeric type. Integers too large for `dtype`, and numbers with
// a fraction where `dtype` is an integer type, are errors.
absl::StatusOr<Tensor> ConvertTensor(const Tensor& t, DType dtype);

}  // namespace onward

#endif  // ONWARD_DATA_DATASET_H_
