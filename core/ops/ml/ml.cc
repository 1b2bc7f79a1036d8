// SPDX-License-Identifier: Apache-2.0
#include "core/ops/ml/ml.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/ops/cpu/register.h"

namespace onward {
namespace {

constexpr int64_t kWorthAThread = 32768;  // additions

template <typename T>
void Softmax(int64_t n, bool keep_zeros, T* row) {
  const T largest = *std::max_element(row, row + n);
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    // Scores that are zero stay so and take no part.
    const bool counts = !keep_zeros || std::abs(row[i]) > T(1e-7);
    row[i] = counts ? std::exp(row[i] - largest) : row[i] * std::exp(-largest);
    sum += row[i];
  }
  if (sum == T(0)) return;
  for (int64_t i = 0; i < n; ++i) row[i] /= sum;
}

}  // namespace

absl::Status CheckNumbers(const KernelRequest& request) {
  for (const ValueSpec& input : request.inputs) {
    switch (input.dtype) {
      case DType::kFloat:
      case DType::kDouble:
      case DType::kInt32:
      case DType::kInt64: continue;
      default:
        return NodeUnimplemented(
            request.node, absl::StrCat("no kernel for ", std::string(DTypeName(input.dtype))));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Rows> RowsOf(const Node& node, const Shape& shape) {
  if (shape.rank() == 1) return Rows{1, shape[0]};
  if (shape.rank() == 2) return Rows{shape[0], shape[1]};
  return NodeError(node,
                   absl::StrCat("takes features as [C] or [N, C], got shape ", shape.ToString()));
}

RowBlocks::RowBlocks(int64_t rows, int64_t cost) : rows_(rows), slots_(1) {
  const bool small = rows < kWorthAThread / std::max<int64_t>(1, cost);
  if (!small) slots_ = std::clamp<int64_t>((rows + kHeight - 1) / kHeight, 1, Threads());
}

void RowBlocks::For(absl::FunctionRef<void(int64_t begin, int64_t end, int64_t slot)> body) const {
  ParallelItems((rows_ + kHeight - 1) / kHeight, slots_, [&](int64_t item, int64_t slot) {
    body(item * kHeight, std::min(rows_, (item + 1) * kHeight), slot);
  });
}

PostTransform PostTransformOf(const Node& node) {
  const std::string name = node.String("post_transform", "NONE");
  if (name == "SOFTMAX") return PostTransform::kSoftmax;
  if (name == "LOGISTIC") return PostTransform::kLogistic;
  if (name == "SOFTMAX_ZERO") return PostTransform::kSoftmaxZero;
  if (name == "PROBIT") return PostTransform::kProbit;
  return PostTransform::kNone;
}

template <typename T>
T Logistic(T x) {
  const T small = std::exp(-std::abs(x));
  return x >= 0 ? T(1) / (T(1) + small) : small / (T(1) + small);
}

// sqrt(2) * erfinv(2x - 1), with Winitzki's approximation of erfinv, as onnxruntime has it.
template <typename T>
T Probit(T p) {
  const T x = T(2) * p - T(1);
  const T log = std::log((T(1) - x) * (T(1) + x));
  const T a = T(2) / (T(3.14159) * T(0.147)) + T(0.5) * log;
  const T root = std::sqrt(-a + std::sqrt(a * a - log / T(0.147)));
  return T(1.41421356) * (x < 0 ? -root : root);
}

template <typename T>
void ApplyPostTransform(PostTransform transform, int64_t n, T* row) {
  switch (transform) {
    case PostTransform::kNone: return;
    case PostTransform::kProbit: std::transform(row, row + n, row, Probit<T>); return;
    case PostTransform::kLogistic:
      if (n > 1) std::transform(row, row + n, row, Logistic<T>);
      return;
    case PostTransform::kSoftmax:
    case PostTransform::kSoftmaxZero:
      if (n > 1) Softmax(n, transform == PostTransform::kSoftmaxZero, row);
      return;
  }
}

template <typename T>
void SpreadScore(SecondClass second, PostTransform transform, T score, T* two) {
  if (transform == PostTransform::kProbit) {
    two[1] = Probit(score);
    two[0] = T(1) - two[1];
  } else if (transform == PostTransform::kLogistic) {
    two[1] = Logistic(score);
    two[0] = Logistic(-score);
  } else {
    two[1] = score;
    two[0] = second == SecondClass::kComplement ? T(1) - score : -score;
  }
}

template float Logistic(float);
template double Logistic(double);
template float Probit(float);
template double Probit(double);
template void ApplyPostTransform(PostTransform, int64_t, float*);
template void ApplyPostTransform(PostTransform, int64_t, double*);
template void SpreadScore(SecondClass, PostTransform, float, float*);
template void SpreadScore(SecondClass, PostTransform, double, double*);

ClassLabels ClassLabelsOf(const Node& node, const std::string& numbers, const std::string& names) {
  return {node.Ints(numbers), node.Strings(names)};
}

void ClassLabels::Write(absl::Span<const int32_t> classes, Tensor* labels) const {
  for (size_t i = 0; i < classes.size(); ++i) {
    const int32_t c = classes[i];
    if (labels->dtype() == DType::kString) {
      labels->data<std::string>()[i] =
          c < static_cast<int64_t>(names.size()) ? names[c] : absl::StrCat(c);
    } else {
      labels->data<int64_t>()[i] = c < static_cast<int64_t>(numbers.size()) ? numbers[c] : c;
    }
  }
}

void RegisterMlKernels(KernelTable& table) {
  RegisterTreeKernels(table);
  RegisterLinearKernels(table);
  RegisterSvmKernels(table);
  RegisterFeatureKernels(table);
  RegisterEncoderKernels(table);
  RegisterMapKernels(table);
}

}  // namespace onward
