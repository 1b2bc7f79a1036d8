// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/ml_types.h"

#include <algorithm>
#include <map>
#include <string>

#include "core/graph/attribute_lists.h"

namespace onward {
namespace {

class Completion {
 public:
  Completion(const Node& node, absl::Span<const InputFact> inputs, std::vector<ValueType>* types)
      : node_(node), inputs_(inputs), types_(*types) {}

  void LikeInput(DType dtype) {
    ValueType type = Input(0);
    if (!type.is_tensor()) return;
    type.dtype = dtype == DType::kUndefined ? type.dtype : dtype;
    Set(0, type);
  }
  // [N, width] of an input [N, C] or [C].
  void Rows(size_t output, DType dtype, int64_t width) {
    const ValueType& x = Input(0);
    ValueType type = ValueType::Unranked(dtype);
    if (x.is_tensor() && (x.rank() == 1 || x.rank() == 2)) {
      type.has_rank = true;
      type.dims = {x.rank() == 2 ? x.dims[0] : Dim{1, ""}};
      if (width != 0) type.dims.push_back({width, ""});
    }
    Set(output, type);
  }
  // [N] and [N, scores].
  void Classes(const std::string& names, int64_t scores) {
    Rows(0, LengthOf(node_, names) > 0 ? DType::kString : DType::kInt64, 0);
    Rows(1, DType::kFloat, scores);
  }

  void FeatureVectorizer() {
    int64_t width = 0;
    const std::vector<int64_t> widths = node_.Ints("inputdimensions");
    for (size_t i = 0; i < inputs_.size() && width >= 0; ++i) {
      const ValueType& x = Input(i);
      const int64_t own = i < widths.size()                ? widths[i]
                          : x.is_tensor() && x.rank() >= 1 ? x.dims.back().value
                                                           : -1;
      width = own < 0 ? -1 : width + own;
    }
    Rows(0, DType::kFloat, width == 0 ? -1 : width);
  }

  void ArrayFeatureExtractor() {
    const ValueType &x = Input(0), &columns = Input(1);
    if (!x.is_tensor() || x.rank() < 1) return;
    int64_t n = columns.has_rank ? 1 : -1;
    for (const Dim& dim : columns.dims) n = n < 0 || !dim.known() ? -1 : n * dim.value;
    ValueType type = x;
    if (x.rank() == 1) {
      type.dims = {Dim{1, ""}, Dim{n, ""}};
    } else {
      type.dims.back() = Dim{n, ""};
    }
    types_[0] = type;
  }

  // Which of two classes a machine with one score speaks of, and the pairs of several.
  int64_t SvmScores() const {
    const int64_t classes = std::max<int64_t>(
        1, std::max(LengthOf(node_, "classlabels_ints"), LengthOf(node_, "classlabels_strings")));
    const std::vector<int64_t> vectors = node_.Ints("vectors_per_class");
    const bool pairwise =
        std::any_of(vectors.begin(), vectors.end(), [](int64_t v) { return v > 0; });
    if (!pairwise || classes <= 2 || LengthOf(node_, "prob_a") > 0) return classes;
    return classes * (classes - 1) / 2;
  }

  // As many as there are intercepts; without them, as labels.
  int64_t LinearScores() const {
    const int64_t labels =
        std::max(LengthOf(node_, "classlabels_ints"), LengthOf(node_, "classlabels_strings"));
    const int64_t rows = LengthOf(node_, "intercepts");
    if (rows == 0) return std::max<int64_t>(1, labels);
    return rows == 1 && labels == 2 ? 2 : rows;
  }

  void LabelEncoder() {
    if (node_.Has("classes_strings")) {
      return LikeInput(Input(0).dtype == DType::kString ? DType::kInt64 : DType::kString);
    }
    if (types_[0].known()) LikeInput(types_[0].dtype);
  }

 private:
  const ValueType& Input(size_t i) const {
    static const auto* const unknown = new ValueType;
    return i < inputs_.size() && inputs_[i].type != nullptr ? *inputs_[i].type : *unknown;
  }
  void Set(size_t output, const ValueType& type) {
    if (output < types_.size()) types_[output] = type;
  }

  const Node& node_;
  absl::Span<const InputFact> inputs_;
  std::vector<ValueType>& types_;
};

}  // namespace

void CompleteMlTypes(const Node& node, absl::Span<const InputFact> inputs,
                     std::vector<ValueType>* types) {
  if (types->empty()) return;
  Completion c(node, inputs, types);
  const std::string& op = node.op_type;
  if (op == "Scaler" || op == "Normalizer") c.LikeInput(DType::kFloat);
  if (op == "Imputer" || op == "Binarizer") c.LikeInput(DType::kUndefined);
  if (op == "LinearRegressor") c.Rows(0, DType::kFloat, node.Int("targets", 1));
  if (op == "SVMRegressor") c.Rows(0, DType::kFloat, 1);
  if (op == "SVMClassifier") c.Classes("classlabels_strings", c.SvmScores());
  if (op == "LinearClassifier") c.Classes("classlabels_strings", c.LinearScores());
  if (op == "TreeEnsembleRegressor") c.Rows(0, DType::kFloat, node.Int("n_targets", 1));
  if (op == "TreeEnsembleClassifier") {
    c.Classes("classlabels_strings", std::max(LengthOf(node, "classlabels_int64s"),
                                              LengthOf(node, "classlabels_strings")));
  }
  if (op == "FeatureVectorizer") c.FeatureVectorizer();
  if (op == "ArrayFeatureExtractor") c.ArrayFeatureExtractor();
  if (op == "LabelEncoder") c.LabelEncoder();
}

}  // namespace onward
