// SPDX-License-Identifier: Apache-2.0
// LinearRegressor and LinearClassifier.
#include <Eigen/Core>
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/graph/attribute_lists.h"
#include "core/ops/ml/ml.h"
#include "core/ops/movement/movement.h"

namespace onward {

template <typename T>
void MultiplyRows(const T* x, int64_t rows, int64_t width, const T* weights, int64_t n, T* out) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Eigen::Map<Matrix>(out, rows, n).noalias() =
      Eigen::Map<const Matrix>(x, rows, width) *
      Eigen::Map<const Matrix>(weights, n, width).transpose();
}
template void MultiplyRows(const float*, int64_t, int64_t, const float*, int64_t, float*);
template void MultiplyRows(const double*, int64_t, int64_t, const double*, int64_t, double*);

namespace {

template <typename T>
struct Linear {
  std::vector<T> weights, bias;  // [targets, width] and perhaps more, [targets] or empty
  int64_t targets = 1;
  PostTransform transform = PostTransform::kNone;

  void Score(const T* x, int64_t rows, int64_t width, T* scores) const {
    MultiplyRows(x, rows, width, weights.data(), targets, scores);
    if (bias.empty()) return;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < targets; ++j) scores[i * targets + j] += bias[j];
    }
  }
};

template <typename T>
absl::StatusOr<Linear<T>> LinearOf(const Node& node, int64_t targets) {
  const std::vector<float> weights = FloatsOf(node, "coefficients"),
                           bias = FloatsOf(node, "intercepts");
  Linear<T> linear;
  linear.targets = targets;
  if (!bias.empty() && static_cast<int64_t>(bias.size()) != targets) {
    return NodeError(node, absl::StrCat("intercepts has ", bias.size(), " values for ", targets));
  }
  linear.weights.assign(weights.begin(), weights.end());
  linear.bias.assign(bias.begin(), bias.end());
  linear.transform = PostTransformOf(node);
  return linear;
}

// Rows of coefficients are as long as the input's, and what is left over is not used: files like
// that are about, and onnxruntime runs them.
template <typename T>
absl::Status CheckWidth(const Node& node, Rows rows, const Linear<T>& linear) {
  const int64_t given = static_cast<int64_t>(linear.weights.size());
  if (rows.width <= given / linear.targets) return absl::OkStatus();
  return NodeError(node, absl::StrCat("has ", given, " coefficients for ", linear.targets,
                                      " times ", rows.width, " features"));
}

template <typename T>
absl::StatusOr<Kernel> MakeRegressor(const KernelRequest& request) {
  ONWARD_ASSIGN_OR_RETURN(Linear<T> made,
                          LinearOf<T>(request.node, request.node.Int("targets", 1)));
  Kernel kernel;
  kernel.run = [linear = std::make_shared<const Linear<T>>(std::move(made)),
                node = KeepNode(request.node),
                slot = OutputSlot(request, 0)](const KernelCall& call) -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(const Rows rows, RowsOf(*node, call.inputs[0]->shape()));
    ONWARD_RETURN_IF_ERROR(CheckWidth(*node, rows, *linear));
    const int64_t n = linear->targets;
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, Shape{rows.count, n}));
    std::vector<T> buffer, results;
    const T* x = NumbersAs<T>(*call.inputs[0], &buffer);
    T* y = output->data<T>();
    if (output->dtype() != DTypeOf<T>::value) {
      results.resize(static_cast<size_t>(rows.count * n));
      y = results.data();
    }
    RowBlocks(rows.count, rows.width * n).For([&](int64_t begin, int64_t end, int64_t) {
      linear->Score(x + begin * rows.width, end - begin, rows.width, y + begin * n);
      for (int64_t i = begin; i < end; ++i) ApplyPostTransform(linear->transform, n, y + i * n);
    });
    if (!results.empty()) std::copy(results.begin(), results.end(), output->data<float>());
    return absl::OkStatus();
  };
  return kernel;
}

absl::StatusOr<Kernel> MakeLinearRegressor(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  ONWARD_RETURN_IF_ERROR(CheckNumbers(request));
  return request.inputs[0].dtype == DType::kFloat ? MakeRegressor<float>(request)
                                                  : MakeRegressor<double>(request);
}

// With one row of coefficients: is it the second class?
template <typename T>
int32_t BestClass(const T* scores, int64_t n) {
  if (n == 1) return scores[0] > 0 ? 1 : 0;
  return static_cast<int32_t>(std::max_element(scores, scores + n) - scores);
}

template <typename T>
void Classify(const Linear<T>& linear, bool two, const T* x, Rows rows, float* results,
              int32_t* classes) {
  const int64_t n = linear.targets, width = two ? 2 : n;
  const RowBlocks blocks(rows.count, rows.width * n);
  const int64_t height = blocks.height() * n;
  std::vector<T> scratch(static_cast<size_t>(blocks.slots() * (height + width)));
  blocks.For([&](int64_t begin, int64_t end, int64_t slot) {
    T* scores = scratch.data() + slot * (height + width);
    T* row = scores + height;
    linear.Score(x + begin * rows.width, end - begin, rows.width, scores);
    for (int64_t i = begin; i < end; ++i, scores += n) {
      classes[i] = BestClass(scores, n);
      if (two) {
        SpreadScore(SecondClass::kComplement, linear.transform, scores[0], row);
      } else {
        std::copy(scores, scores + n, row);
        ApplyPostTransform(linear.transform, n, row);
      }
      std::copy(row, row + width, results + i * width);
    }
  });
}

template <typename T>
absl::StatusOr<Kernel> MakeClassifier(const KernelRequest& request, ClassLabels labels) {
  const Node& node = request.node;
  const int64_t given = LengthOf(node, "intercepts");
  const int64_t targets = given > 0 ? given : std::max<int64_t>(1, labels.size());
  ONWARD_ASSIGN_OR_RETURN(Linear<T> made, LinearOf<T>(node, targets));
  const bool two = targets == 1 && labels.size() == 2;
  Kernel kernel;
  kernel.run = [linear = std::make_shared<const Linear<T>>(std::move(made)), two,
                labels = std::move(labels), kept = KeepNode(node),
                label_slot = OutputSlot(request, 0),
                slot = OutputSlot(request, 1)](const KernelCall& call) -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(const Rows rows, RowsOf(*kept, call.inputs[0]->shape()));
    ONWARD_RETURN_IF_ERROR(CheckWidth(*kept, rows, *linear));
    const Shape shape{rows.count, two ? 2 : linear->targets};
    std::vector<T> buffer;
    const T* x = NumbersAs<T>(*call.inputs[0], &buffer);
    std::vector<int32_t> classes(static_cast<size_t>(rows.count));
    Tensor unwanted = slot.wanted() ? Tensor() : Tensor(DType::kFloat, shape);
    Tensor* output = &unwanted;
    if (slot.wanted()) {
      ONWARD_ASSIGN_OR_RETURN(output, slot.Get(call, shape));
    }
    Classify(*linear, two, x, rows, output->data<float>(), classes.data());
    if (!label_slot.wanted()) return absl::OkStatus();
    ONWARD_ASSIGN_OR_RETURN(Tensor * label, label_slot.Get(call, Shape{rows.count}));
    labels.Write(classes, label);
    return absl::OkStatus();
  };
  return kernel;
}

absl::StatusOr<Kernel> MakeLinearClassifier(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1, 0));
  ONWARD_RETURN_IF_ERROR(CheckNumbers(request));
  ClassLabels labels = ClassLabelsOf(request.node, "classlabels_ints", "classlabels_strings");
  return request.inputs[0].dtype == DType::kFloat
             ? MakeClassifier<float>(request, std::move(labels))
             : MakeClassifier<double>(request, std::move(labels));
}

}  // namespace

void RegisterLinearKernels(KernelTable& table) {
  const std::string types = "float, double, int32, int64";
  table.Add("LinearRegressor", {"eigen", 1, MakeLinearRegressor, types}, kMlDomain);
  table.Add("LinearClassifier", {"eigen", 1, MakeLinearClassifier, types}, kMlDomain);
}

}  // namespace onward
