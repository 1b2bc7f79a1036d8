// SPDX-License-Identifier: Apache-2.0
// TreeEnsemble, TreeEnsembleRegressor and TreeEnsembleClassifier: from the sums of a forest to
// results and labels.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/graph/attribute_lists.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/ml/forest.h"
#include "core/ops/ml/ml.h"
#include "core/ops/movement/movement.h"

namespace onward {
namespace {

// What is made of the sums of one row.
template <typename T>
struct Outcome {
  virtual ~Outcome() = default;
  // Writes `results` numbers and returns the class, of a classifier.
  virtual int32_t Finish(T* scores, uint8_t* scored, T* results) const = 0;
  int64_t results = 1;
};

template <typename T>
struct Regression : Outcome<T> {
  Aggregate aggregate = Aggregate::kSum;
  int64_t trees = 1;
  std::vector<T> base;  // empty, or one for each target
  PostTransform transform = PostTransform::kNone;

  int32_t Finish(T* scores, uint8_t*, T* results) const override {
    const int64_t n = this->results;
    for (int64_t i = 0; i < n; ++i) {
      results[i] = aggregate == Aggregate::kAverage ? scores[i] / static_cast<T>(trees) : scores[i];
      if (!base.empty()) results[i] += base[i];
    }
    ApplyPostTransform(transform, n, results);
    return 0;
  }
};

// Two classes of which only one has weights: that one score tells both, as onnxruntime has it.
// Otherwise the highest score wins, as in onnx's reference.
template <typename T>
struct Classification : Outcome<T> {
  int64_t classes = 1;
  int32_t only = -1;          // of two classes, the one that has all the weights
  bool all_positive = false;  // no weight is below 0
  std::vector<T> base;
  PostTransform transform = PostTransform::kNone;

  int32_t Finish(T* scores, uint8_t* scored, T* results) const override {
    return only < 0 ? FinishMany(scores, scored, results) : FinishOne(scores, results);
  }

  int32_t FinishMany(T* scores, uint8_t* scored, T* results) const {
    for (size_t i = 0; i < base.size(); ++i) {
      scores[i] += base[i];
      scored[i] = 1;
    }
    int32_t best = -1;
    for (int32_t i = 0; i < classes; ++i) {
      if (scored[i] && (best < 0 || scores[i] > scores[best])) best = i;
    }
    std::copy(scores, scores + classes, results);
    ApplyPostTransform(transform, classes, results);
    if (classes == 1) return scores[0] > 0 ? 1 : 0;
    return std::max(best, 0);
  }

  int32_t FinishOne(T* scores, T* results) const {
    T score = scores[only];
    if (only < static_cast<int32_t>(base.size())) score += base[only];
    if (only == 0 && base.size() < 2) {
      SpreadScore(all_positive ? SecondClass::kComplement : SecondClass::kOpposite, transform,
                  score, results);
    } else {
      results[only] = score;
      results[1 - only] = T(0);
      ApplyPostTransform(transform, 2, results);
    }
    return score > (all_positive ? T(0.5) : T(0)) ? 1 : 0;
  }
};

template <typename T>
struct Ensemble {
  Forest<T> forest;
  std::unique_ptr<const Outcome<T>> outcome;
  int64_t features;
};

template <typename T, typename Out>
void ScoreRows(const Ensemble<T>& ensemble, const T* x, Rows rows, Out* results, int32_t* classes) {
  const int64_t targets = ensemble.forest.targets(), n = ensemble.outcome->results;
  const RowBlocks blocks(rows.count, ensemble.forest.cost());
  const int64_t scratch = blocks.height() * targets;
  std::vector<T> sums(static_cast<size_t>(blocks.slots() * scratch));
  std::vector<T> finished(static_cast<size_t>(blocks.slots() * n));
  std::vector<uint8_t> flags(sums.size());
  blocks.For([&](int64_t begin, int64_t end, int64_t slot) {
    T* scores = sums.data() + slot * scratch;
    T* row = finished.data() + slot * n;
    uint8_t* scored = flags.data() + slot * scratch;
    ensemble.forest.Score(x + begin * rows.width, rows.width, end - begin, scores, scored);
    for (int64_t i = begin; i < end; ++i, scores += targets, scored += targets) {
      const int32_t label = ensemble.outcome->Finish(scores, scored, row);
      std::copy(row, row + n, results + i * n);
      if (classes != nullptr) classes[i] = label;
    }
  });
}

// Output 0 is the scores, or where there are labels, those, and output 1 the scores.
template <typename T>
Kernel MakeKernel(const KernelRequest& request, std::shared_ptr<const Ensemble<T>> ensemble,
                  std::optional<ClassLabels> labels) {
  const int scores_at = labels.has_value() ? 1 : 0;
  Kernel kernel;
  kernel.run = [ensemble, labels = std::move(labels), node = KeepNode(request.node),
                label_slot = OutputSlot(request, 0),
                slot = OutputSlot(request, scores_at)](const KernelCall& call) -> absl::Status {
    const Tensor& input = *call.inputs[0];
    ONWARD_ASSIGN_OR_RETURN(const Rows rows, RowsOf(*node, input.shape()));
    if (rows.width < std::max<int64_t>(1, ensemble->features) && rows.count > 0) {
      return NodeError(*node, absl::StrCat("the trees ask for ", ensemble->features,
                                           " features, the input has ", rows.width));
    }
    std::vector<T> buffer;
    const T* x = NumbersAs<T>(input, &buffer);
    std::vector<int32_t> classes(labels.has_value() ? rows.count : 0);
    int32_t* class_data = labels.has_value() ? classes.data() : nullptr;
    const Shape shape{rows.count, ensemble->outcome->results};
    Tensor unwanted;
    Tensor* output = &unwanted;
    if (slot.wanted()) {
      ONWARD_ASSIGN_OR_RETURN(output, slot.Get(call, shape));
    } else {
      unwanted = Tensor(DType::kFloat, shape);
    }
    DispatchFloat(output->dtype(), [&]<typename Out>() {
      ScoreRows(*ensemble, x, rows, output->data<Out>(), class_data);
    });
    if (!labels.has_value() || !label_slot.wanted()) return absl::OkStatus();
    ONWARD_ASSIGN_OR_RETURN(Tensor * label, label_slot.Get(call, Shape{rows.count}));
    labels->Write(classes, label);
    return absl::OkStatus();
  };
  return kernel;
}

template <typename T>
std::vector<T> BaseValues(const Node& node) {
  const std::vector<double> values = NumbersOf(node, "base_values");
  return {values.begin(), values.end()};
}

absl::Status CheckBaseValues(const Node& node, size_t given, int64_t targets, bool one_is_enough) {
  if (given == 0 || static_cast<int64_t>(given) == targets || (one_is_enough && given == 1)) {
    return absl::OkStatus();
  }
  return NodeError(node, absl::StrCat("base_values has ", given, " values for ", targets));
}

template <typename T>
absl::StatusOr<Kernel> MakeRegression(const KernelRequest& request, const TreeSource& source,
                                      Aggregate aggregate, PostTransform transform) {
  auto outcome = std::make_unique<Regression<T>>();
  outcome->aggregate = aggregate;
  outcome->trees = std::max<int64_t>(1, static_cast<int64_t>(source.roots.size()));
  outcome->base = BaseValues<T>(request.node);
  outcome->transform = transform;
  outcome->results = source.targets;
  ONWARD_RETURN_IF_ERROR(
      CheckBaseValues(request.node, outcome->base.size(), source.targets, false));
  return MakeKernel<T>(request,
                       std::make_shared<const Ensemble<T>>(Ensemble<T>{
                           Forest<T>(source, aggregate), std::move(outcome), source.features}),
                       std::nullopt);
}

// Numbers in float where they are fed so; else in double, which holds every threshold and
// nearly every integer.
bool InFloat(const KernelRequest& request) { return request.inputs[0].dtype == DType::kFloat; }

absl::StatusOr<Kernel> MakeTreeEnsembleRegressor(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  ONWARD_RETURN_IF_ERROR(CheckNumbers(request));
  const Node& node = request.node;
  ONWARD_ASSIGN_OR_RETURN(const TreeSource source,
                          ReadTrees(node, "target", node.Int("n_targets", 1)));
  const std::string name = node.String("aggregate_function", "SUM");
  const Aggregate aggregate = name == "AVERAGE" ? Aggregate::kAverage
                              : name == "MIN"   ? Aggregate::kMin
                              : name == "MAX"   ? Aggregate::kMax
                                                : Aggregate::kSum;
  const PostTransform transform = PostTransformOf(node);
  return InFloat(request) ? MakeRegression<float>(request, source, aggregate, transform)
                          : MakeRegression<double>(request, source, aggregate, transform);
}

absl::StatusOr<Kernel> MakeTreeEnsemble(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  ONWARD_RETURN_IF_ERROR(CheckNumbers(request));
  ONWARD_ASSIGN_OR_RETURN(const TreeSource source, ReadTreeEnsemble(request.node));
  constexpr Aggregate kAggregates[] = {Aggregate::kAverage, Aggregate::kSum, Aggregate::kMin,
                                       Aggregate::kMax};
  const Aggregate aggregate = kAggregates[request.node.Int("aggregate_function", 1) & 3];
  const auto transform = static_cast<PostTransform>(request.node.Int("post_transform", 0));
  return InFloat(request) ? MakeRegression<float>(request, source, aggregate, transform)
                          : MakeRegression<double>(request, source, aggregate, transform);
}

template <typename T>
absl::StatusOr<Kernel> MakeClassification(const KernelRequest& request, const TreeSource& source,
                                          ClassLabels labels) {
  auto outcome = std::make_unique<Classification<T>>();
  outcome->classes = outcome->results = source.targets;
  outcome->all_positive = true;
  bool one = source.targets == 2 && !source.weights.empty();
  for (const LeafWeight& w : source.weights) {
    one &= w.target == source.weights[0].target;
    outcome->all_positive &= w.weight >= 0;
  }
  if (one) outcome->only = source.weights[0].target;
  outcome->base = BaseValues<T>(request.node);
  outcome->transform = PostTransformOf(request.node);
  ONWARD_RETURN_IF_ERROR(
      CheckBaseValues(request.node, outcome->base.size(), source.targets, source.targets == 2));
  return MakeKernel<T>(
      request,
      std::make_shared<const Ensemble<T>>(
          Ensemble<T>{Forest<T>(source, Aggregate::kSum), std::move(outcome), source.features}),
      std::move(labels));
}

absl::StatusOr<Kernel> MakeTreeEnsembleClassifier(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1, 0));
  ONWARD_RETURN_IF_ERROR(CheckNumbers(request));
  ClassLabels labels = ClassLabelsOf(request.node, "classlabels_int64s", "classlabels_strings");
  if (labels.size() == 0) return NodeError(request.node, "has no class labels");
  ONWARD_ASSIGN_OR_RETURN(const TreeSource source, ReadTrees(request.node, "class", labels.size()));
  return InFloat(request) ? MakeClassification<float>(request, source, std::move(labels))
                          : MakeClassification<double>(request, source, std::move(labels));
}

}  // namespace

void RegisterTreeKernels(KernelTable& table) {
  const std::string types = "float, double, int32, int64";
  table.Add("TreeEnsembleRegressor", {"reference", 1, MakeTreeEnsembleRegressor, types}, kMlDomain);
  table.Add("TreeEnsembleClassifier", {"reference", 1, MakeTreeEnsembleClassifier, types},
            kMlDomain);
  const ShapeRule shape = [](const KernelRequest& r, int) {
    return Shape{r.in(0).rank() == 1 ? 1 : r.in(0)[0], r.node.Int("n_targets", 1)};
  };
  table.Add("TreeEnsemble",
            {"reference", 1, Adapt(MakeTreeEnsemble, shape), "float, double, float16"}, kMlDomain);
}

}  // namespace onward
