// SPDX-License-Identifier: Apache-2.0
// What the operators of ai.onnx.ml share, and the parts of the family; RegisterMlKernels calls
// them.
#ifndef ONWARD_CORE_OPS_ML_ML_H_
#define ONWARD_CORE_OPS_ML_ML_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/device/kernel.h"
#include "core/graph/attribute_lists.h"
#include "core/tensor/dispatch.h"

namespace onward {

// Unimplemented unless the inputs are float, double, int32 or int64.
absl::Status CheckNumbers(const KernelRequest& request);

// A vector is one row.
struct Rows {
  int64_t count = 0, width = 0;
};
absl::StatusOr<Rows> RowsOf(const Node& node, const Shape& shape);

// Rows in blocks that are the same whoever computes them, so that results do not depend on the
// number of threads.
class RowBlocks {
 public:
  // `cost` is the work of a row in additions.
  RowBlocks(int64_t rows, int64_t cost);
  int64_t slots() const { return slots_; }
  // The most rows of a block.
  int64_t height() const { return std::min(rows_, kHeight); }
  // Calls body(begin, end, slot); no two calls with one slot run at once.
  void For(absl::FunctionRef<void(int64_t begin, int64_t end, int64_t slot)> body) const;

 private:
  static constexpr int64_t kHeight = 64;
  int64_t rows_, slots_;
};

// The numbers of a tensor as T: its own memory where it holds T, else `buffer`.
template <typename T>
const T* NumbersAs(const Tensor& tensor, std::vector<T>* buffer) {
  if (tensor.dtype() == DTypeOf<T>::value) return tensor.data<T>();
  buffer->resize(static_cast<size_t>(tensor.elements()));
  DispatchNumeric(tensor.dtype(), [&]<typename U>() {
    const U* from = tensor.data<U>();
    for (size_t i = 0; i < buffer->size(); ++i) (*buffer)[i] = static_cast<T>(from[i]);
  });
  return buffer->data();
}

// out [rows, n] = x [rows, width] * weights [n, width] transposed
template <typename T>
void MultiplyRows(const T* x, int64_t rows, int64_t width, const T* weights, int64_t n, T* out);

enum class PostTransform { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };
PostTransform PostTransformOf(const Node& node);
// Of a row of two scores or more, and of PROBIT alone of one: that is how onnxruntime reads the
// standard, and every exporter was tried there.
template <typename T>
void ApplyPostTransform(PostTransform transform, int64_t n, T* row);
template <typename T>
T Logistic(T x);
template <typename T>
T Probit(T x);

// The classes of a classifier: numbers or names.
struct ClassLabels {
  std::vector<int64_t> numbers;
  std::vector<std::string> names;

  bool text() const { return !names.empty(); }
  int64_t size() const { return static_cast<int64_t>(text() ? names.size() : numbers.size()); }
  // label[i] of class classes[i]; a class beyond the labels is its own number.
  void Write(absl::Span<const int32_t> classes, Tensor* labels) const;
};
ClassLabels ClassLabelsOf(const Node& node, const std::string& numbers, const std::string& names);
// What a binary classifier with one score s makes of it; of LOGISTIC, the logistic of -s and s.
enum class SecondClass {
  kComplement,  // [1 - s, s]
  kOpposite,    // [-s, s]
};
template <typename T>
void SpreadScore(SecondClass second, PostTransform transform, T score, T* two);

void RegisterTreeKernels(KernelTable& table);
void RegisterLinearKernels(KernelTable& table);
void RegisterSvmKernels(KernelTable& table);
void RegisterFeatureKernels(KernelTable& table);  // scalers, imputers, extractors
void RegisterEncoderKernels(KernelTable& table);  // labels and categories
void RegisterMapKernels(KernelTable& table);      // dictionaries

}  // namespace onward

#endif  // ONWARD_CORE_OPS_ML_ML_H_
