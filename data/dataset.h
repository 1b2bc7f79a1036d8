// SPDX-License-Identifier: Apache-2.0
// A data set: numbered examples, each with one tensor per field, and the text
// form ("mnist:DIR?limit=1000") that names one on the command line.
#ifndef ONWARD_DATA_DATASET_H_
#define ONWARD_DATA_DATASET_H_

#include <cstdint>
#include <memory>
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

namespace onward {

struct FieldInfo {
  std::string name;  // "x", "y", or the name of an .npz array
  DType dtype = DType::kUndefined;
  Shape shape;  // of one example: a batch has one axis more, in front
  bool is_label = false;
};

// Immutable once made; all functions may be called from several threads.
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

// Opens the data set that `spec` names. `split` is what data sets that come in
// two halves use where the spec does not say: kTrain for --data, kTest for
// --eval. DataSpecHelp() describes the forms and options.
absl::StatusOr<std::unique_ptr<Dataset>> ParseDataSpec(absl::string_view spec, Split split);

// The forms of a data spec and their options, for --help.
std::string DataSpecHelp();

// "60000 examples, x float [1, 28, 28], y int64 [], 10 classes".
std::string Describe(const Dataset& dataset);

// `t` as another numeric type. Integers too large for `dtype`, and numbers with
// a fraction where `dtype` is an integer type, are errors.
absl::StatusOr<Tensor> ConvertTensor(const Tensor& t, DType dtype);

}  // namespace onward

#endif  // ONWARD_DATA_DATASET_H_
