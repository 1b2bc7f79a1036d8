// SPDX-License-Identifier: Apache-2.0
// SVMRegressor and SVMClassifier.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/graph/attribute_lists.h"
#include "core/ops/ml/ml.h"
#include "core/ops/ml/svm.h"
#include "core/ops/movement/movement.h"

namespace onward {
namespace {

template <typename T>
struct Machine {
  SvmKernel kernel;
  std::vector<T> vectors;       // [count, width]: support vectors, or of a linear machine, classes
  std::vector<T> coefficients;  // of support vectors
  std::vector<T> rho;
  int64_t count = 0, width = 0;
};

template <typename T>
std::vector<T> As(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

// Support vectors, `count` of them; none: the coefficients are `rows` vectors of weights.
template <typename T>
absl::StatusOr<Machine<T>> MachineOf(const Node& node, int64_t count, int64_t rows) {
  Machine<T> machine;
  const std::vector<float> supports = FloatsOf(node, "support_vectors"),
                           coefficients = FloatsOf(node, "coefficients");
  machine.rho = As<T>(FloatsOf(node, "rho"));
  if (machine.rho.empty()) return NodeError(node, "rho is empty");
  const bool linear = count == 0;
  if (!linear) {
    ONWARD_ASSIGN_OR_RETURN(machine.kernel, SvmKernelOf(node));
  }
  const std::vector<float>& vectors = linear ? coefficients : supports;
  machine.count = linear ? rows : count;
  const int64_t size = static_cast<int64_t>(vectors.size());
  if (size == 0 || machine.count > size || size % machine.count != 0) {
    return NodeError(node, absl::StrCat(linear ? "coefficients" : "support_vectors", " has ", size,
                                        " numbers for ", machine.count, " vectors"));
  }
  machine.width = size / machine.count;
  machine.vectors = As<T>(vectors);
  if (!linear) machine.coefficients = As<T>(coefficients);
  return machine;
}

absl::Status CheckWidth(const Node& node, Rows rows, int64_t width) {
  if (rows.width == width) return absl::OkStatus();
  return NodeError(
      node, absl::StrCat("its vectors have ", width, " features, the input has ", rows.width));
}

template <typename T>
T Dot(const T* a, const T* b, int64_t n) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

template <typename T>
absl::StatusOr<Kernel> MakeRegressor(const KernelRequest& request) {
  const Node& node = request.node;
  ONWARD_ASSIGN_OR_RETURN(Machine<T> made, MachineOf<T>(node, node.Int("n_supports", 0), 1));
  if (!made.coefficients.empty() && static_cast<int64_t>(made.coefficients.size()) != made.count) {
    return NodeError(node, absl::StrCat("coefficients has ", made.coefficients.size(),
                                        " values for ", made.count, " support vectors"));
  }
  Kernel kernel;
  kernel.run = [machine = std::make_shared<const Machine<T>>(std::move(made)),
                one_class = node.Int("one_class", 0) != 0, kept = KeepNode(node),
                slot = OutputSlot(request, 0)](const KernelCall& call) -> absl::Status {
    const Machine<T>& m = *machine;
    ONWARD_ASSIGN_OR_RETURN(const Rows rows, RowsOf(*kept, call.inputs[0]->shape()));
    ONWARD_RETURN_IF_ERROR(CheckWidth(*kept, rows, m.width));
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, Shape{rows.count, 1}));
    std::vector<T> buffer;
    const T* x = NumbersAs<T>(*call.inputs[0], &buffer);
    const RowBlocks blocks(rows.count, m.width * m.count);
    const int64_t scratch = blocks.height() * m.count;
    std::vector<T> values(static_cast<size_t>(blocks.slots() * scratch));
    float* y = output->data<float>();
    blocks.For([&](int64_t begin, int64_t end, int64_t slot_number) {
      T* kernels = values.data() + slot_number * scratch;
      m.kernel.Apply(x + begin * m.width, end - begin, m.width, m.vectors.data(), m.count, kernels);
      for (int64_t i = begin; i < end; ++i, kernels += m.count) {
        const T sum =
            m.coefficients.empty() ? kernels[0] : Dot(kernels, m.coefficients.data(), m.count);
        const T score = sum + m.rho[0];
        y[i] = static_cast<float>(!one_class ? score : score > 0 ? T(1) : T(-1));
      }
    });
    return absl::OkStatus();
  };
  return kernel;
}

absl::StatusOr<Kernel> MakeSvmRegressor(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  ONWARD_RETURN_IF_ERROR(CheckNumbers(request));
  return request.inputs[0].dtype == DType::kFloat ? MakeRegressor<float>(request)
                                                  : MakeRegressor<double>(request);
}

template <typename T>
struct Classifier {
  Machine<T> machine;
  ClassLabels labels;
  std::vector<int64_t> begins;  // of the support vectors of each class, and the end
  std::vector<float> prob_a, prob_b;
  PostTransform transform = PostTransform::kNone;
  int64_t classes = 1, pairs = 0, results = 1;
  bool pairwise = false, all_positive = false;

  bool probable() const { return pairwise && !prob_a.empty(); }
  // Numbers that the work on a row needs beside its kernels.
  int64_t scratch() const { return pairs + classes * (2 * classes + 3) + 2; }

  int32_t Finish(const T* kernels, double* work, float* result) const {
    double* scores = work;
    double* votes = scores + std::max(pairs, classes);
    int32_t best = 0;
    int64_t n = classes;
    if (pairwise) {
      std::fill(votes, votes + classes, 0.0);
      ScorePairs(kernels, scores, votes);
      best = static_cast<int32_t>(std::max_element(votes, votes + classes) - votes);
      n = pairs;
    } else {
      for (int64_t c = 0; c < classes; ++c) {
        scores[c] = static_cast<double>(kernels[c] + machine.rho[0]);
      }
      best = BestOfLinear(scores);
    }
    if (probable()) {
      Probabilities(scores, votes + classes, votes);
      scores = votes;
      n = classes;
    }
    if (n == 1 && results == 2) {
      // As onnxruntime has it: a softmax of one score is no softmax.
      const bool soft =
          transform == PostTransform::kSoftmax || transform == PostTransform::kSoftmaxZero;
      double two[2];
      SpreadScore(soft ? SecondClass::kComplement : SecondClass::kOpposite, transform, scores[0],
                  two);
      std::copy(two, two + 2, result);
    } else {
      ApplyPostTransform(transform, n, scores);
      std::copy(scores, scores + n, result);
    }
    return best;
  }

  // Of two classes, a positive score means the second, as onnxruntime has it.
  int32_t BestOfLinear(const double* scores) const {
    const auto best = static_cast<int32_t>(std::max_element(scores, scores + classes) - scores);
    if (labels.size() > 2) return best;
    if (labels.size() < 2) return scores[best] > 0 ? 1 : 0;
    const double enough = all_positive ? 0.5 : 0;
    return scores[best] > enough || (all_positive && scores[best] == enough) ? 1 : best;
  }

  void ScorePairs(const T* kernels, double* scores, double* votes) const {
    const T* c = machine.coefficients.data();
    int64_t pair = 0;
    for (int64_t i = 0; i < classes; ++i) {
      for (int64_t j = i + 1; j < classes; ++j, ++pair) {
        const T first = Dot(kernels + begins[i], c + (j - 1) * machine.count + begins[i],
                            begins[i + 1] - begins[i]);
        const T second =
            Dot(kernels + begins[j], c + i * machine.count + begins[j], begins[j + 1] - begins[j]);
        scores[pair] = static_cast<double>(first + second + machine.rho[pair]);
        votes[scores[pair] > 0 ? i : j] += 1;
      }
    }
  }

  void Probabilities(const double* scores, double* work, double* probabilities) const {
    double* table = work;
    int64_t pair = 0;
    for (int64_t i = 0; i < classes; ++i) {
      for (int64_t j = i + 1; j < classes; ++j, ++pair) {
        table[i * classes + j] = PairProbability(scores[pair], prob_a[pair], prob_b[pair]);
        table[j * classes + i] = 1 - table[i * classes + j];
      }
    }
    CouplePairs(classes, table, work + classes * classes, probabilities);
  }
};

template <typename T>
absl::StatusOr<Classifier<T>> ClassifierOf(const Node& node) {
  Classifier<T> made;
  made.labels = ClassLabelsOf(node, "classlabels_ints", "classlabels_strings");
  made.classes = std::max<int64_t>(1, made.labels.size());
  made.transform = PostTransformOf(node);
  made.begins = {0};
  for (const int64_t vectors : node.Ints("vectors_per_class")) {
    made.begins.push_back(made.begins.back() + std::clamp<int64_t>(vectors, 0, INT32_MAX));
  }
  made.pairwise = made.begins.back() > 0;
  ONWARD_ASSIGN_OR_RETURN(made.machine, MachineOf<T>(node, made.begins.back(), made.classes));
  made.results = made.classes;
  const std::vector<float> coefficients = FloatsOf(node, "coefficients");
  made.all_positive =
      std::all_of(coefficients.begin(), coefficients.end(), [](float c) { return c >= 0; });
  if (!made.pairwise) return made;
  const int64_t k = made.classes;
  made.pairs = k * (k - 1) / 2;
  made.prob_a = FloatsOf(node, "prob_a");
  made.prob_b = FloatsOf(node, "prob_b");
  const auto wrong = [&](const char* what, size_t size, int64_t expected) {
    return NodeError(node, absl::StrCat(what, " has ", size, " values, expected ", expected));
  };
  if (k < 2) return NodeError(node, "has support vectors of classes, but not two labels");
  if (static_cast<int64_t>(made.begins.size()) != k + 1) {
    return wrong("vectors_per_class", made.begins.size() - 1, k);
  }
  if (static_cast<int64_t>(coefficients.size()) != (k - 1) * made.machine.count) {
    return wrong("coefficients", coefficients.size(), (k - 1) * made.machine.count);
  }
  if (static_cast<int64_t>(made.machine.rho.size()) < made.pairs) {
    return wrong("rho", made.machine.rho.size(), made.pairs);
  }
  if (!made.prob_a.empty()) {
    if (static_cast<int64_t>(made.prob_a.size()) < made.pairs) {
      return wrong("prob_a", made.prob_a.size(), made.pairs);
    }
    if (made.prob_b.size() != made.prob_a.size()) {
      return wrong("prob_b", made.prob_b.size(), made.pairs);
    }
  }
  made.results = made.probable() || k == 2 ? k : made.pairs;
  return made;
}

template <typename T>
absl::StatusOr<Kernel> MakeClassifier(const KernelRequest& request) {
  ONWARD_ASSIGN_OR_RETURN(Classifier<T> made, ClassifierOf<T>(request.node));
  Kernel kernel;
  kernel.run = [classifier = std::make_shared<const Classifier<T>>(std::move(made)),
                kept = KeepNode(request.node), label_slot = OutputSlot(request, 0),
                slot = OutputSlot(request, 1)](const KernelCall& call) -> absl::Status {
    const Machine<T>& m = classifier->machine;
    ONWARD_ASSIGN_OR_RETURN(const Rows rows, RowsOf(*kept, call.inputs[0]->shape()));
    ONWARD_RETURN_IF_ERROR(CheckWidth(*kept, rows, m.width));
    std::vector<T> buffer;
    const T* x = NumbersAs<T>(*call.inputs[0], &buffer);
    const int64_t n = classifier->results;
    Tensor unwanted = slot.wanted() ? Tensor() : Tensor(DType::kFloat, Shape{rows.count, n});
    Tensor* output = &unwanted;
    if (slot.wanted()) {
      ONWARD_ASSIGN_OR_RETURN(output, slot.Get(call, Shape{rows.count, n}));
    }
    std::vector<int32_t> classes(static_cast<size_t>(rows.count));
    const RowBlocks blocks(rows.count, m.width * m.count);
    const int64_t block = blocks.height() * m.count, scratch = classifier->scratch();
    std::vector<T> values(static_cast<size_t>(blocks.slots() * block));
    std::vector<double> work(static_cast<size_t>(blocks.slots() * scratch));
    float* results = output->data<float>();
    blocks.For([&](int64_t begin, int64_t end, int64_t slot_number) {
      T* kernels = values.data() + slot_number * block;
      m.kernel.Apply(x + begin * m.width, end - begin, m.width, m.vectors.data(), m.count, kernels);
      for (int64_t i = begin; i < end; ++i, kernels += m.count) {
        classes[i] =
            classifier->Finish(kernels, work.data() + slot_number * scratch, results + i * n);
      }
    });
    if (!label_slot.wanted()) return absl::OkStatus();
    ONWARD_ASSIGN_OR_RETURN(Tensor * label, label_slot.Get(call, Shape{rows.count}));
    classifier->labels.Write(classes, label);
    return absl::OkStatus();
  };
  return kernel;
}

absl::StatusOr<Kernel> MakeSvmClassifier(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1, 0));
  ONWARD_RETURN_IF_ERROR(CheckNumbers(request));
  return request.inputs[0].dtype == DType::kFloat ? MakeClassifier<float>(request)
                                                  : MakeClassifier<double>(request);
}

}  // namespace

void RegisterSvmKernels(KernelTable& table) {
  const std::string types = "float, double, int32, int64";
  table.Add("SVMRegressor", {"eigen", 1, MakeSvmRegressor, types}, kMlDomain);
  table.Add("SVMClassifier", {"eigen", 1, MakeSvmClassifier, types}, kMlDomain);
}

}  // namespace onward
