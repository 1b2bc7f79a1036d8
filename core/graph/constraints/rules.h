// SPDX-License-Identifier: Apache-2.0
// The words that the table of constraints is written in: a rule looks at one node
// and says what is wrong with it.
#ifndef ONWARD_CORE_GRAPH_CONSTRAINTS_RULES_H_
#define ONWARD_CORE_GRAPH_CONSTRAINTS_RULES_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/graph/operator_set.h"

namespace onward::constraints {

// Values beyond it fit no tensor: sums and products of two stay inside int64.
inline constexpr int64_t kLargest = (int64_t{1} << 31) - 1;
// As CheckedElements has it; bounds axes where the rank is not known.
inline constexpr int kMaxRank = 32;

// A node and what is known of its inputs.
class Subject {
 public:
  Subject(const Node& node, absl::Span<const InputFact> inputs, int version)
      : node(node), version(version), inputs_(inputs) {}

  const Node& node;
  const int version;

  bool Has(int input) const { return node.HasInput(input); }
  // -1 where it is not known.
  int Rank(int input) const;
  int64_t Dim(int input, int axis) const;
  // Of a constant with integers; nullopt where it is not known.
  std::optional<std::vector<int64_t>> Constant(int input) const;
  std::optional<std::vector<double>> ConstantNumbers(int input) const;
  // How many values it lists; -1 where that is not known.
  int64_t Length(int input) const;
  // The attribute where it is given, else the constant input (-1: none).
  std::optional<std::vector<int64_t>> List(std::string_view attribute, int input) const;
  std::optional<int64_t> Number(std::string_view attribute) const;

  template <typename... Part>
  void Fail(const Part&... parts) {
    problems_.push_back(absl::StrCat(parts...));
  }
  std::vector<std::string> TakeProblems() { return std::move(problems_); }

 private:
  const ValueType* Type(int input) const;

  absl::Span<const InputFact> inputs_;
  std::vector<std::string> problems_;
};

using Rule = std::function<void(Subject&)>;
using Rules = std::vector<Rule>;
// "Softmax", "ai.onnx.ml.Scaler" -> what it demands. An empty row says that somebody
// has looked, and that the schema tells all.
using Table = std::map<std::string, Rules, std::less<>>;
void AddRows(Table& table, std::initializer_list<const char*> operators, const Rules& rules);

// The given or default axis lies in [-rank, rank).
struct AxisRange {
  std::string attribute = "axis";
  int input = 0;
  std::optional<int64_t> otherwise;  // of an absent attribute
  int grow = 0;                      // axes of the result beyond those of the input
  bool end = false;                  // one past the last axis is allowed too
};
Rule Axis(AxisRange range);
// The same for an axis that is a scalar input.
Rule AxisInput(int axis, int input = 0, int grow = 0);
// Different axes of `input`, from an attribute or a constant input.
Rule Axes(const char* attribute, int axes_input, int input = 0);
// Axes of the result, which has as many more as are listed.
Rule NewAxes(const char* attribute, int axes_input);
Rule Permutation(const char* attribute);

Rule OneOf(const char* attribute, std::vector<std::string> allowed);
Rule OneOfNumbers(const char* attribute, std::vector<int64_t> allowed);
Rule InRange(const char* attribute, int64_t low, int64_t high = kLargest);
Rule EachInRange(const char* attribute, int64_t low, int64_t high = kLargest);
Rule FloatAbove(const char* attribute, float low);
// The attribute names an element type.
Rule ElementType(const char* attribute);
Rule FloatingType(const char* attribute);
// Attributes that are lists of one length, where they are given.
Rule SameLength(std::vector<const char*> attributes);

Rule RankIs(int input, int rank);
Rule RankAtLeast(int input, int rank);
Rule SameRank(int a, int b);
Rule Scalar(int input);  // one element
// A list input with a value for each axis of `input`, each in [low, high].
Rule ForEachAxis(int list, int input, int64_t low, int64_t high = INT64_MAX);

// What `input` has to be; -1 is any size.
void ExpectShape(Subject& s, int input, const char* what, absl::Span<const int64_t> dims);
void ExpectRank(Subject& s, int input, int rank);
// What `input` has to be broadcast to, without making it larger.
void ExpectBroadcast(Subject& s, int input, const char* what, absl::Span<const int64_t> dims);
// The sizes of an input as far as they are known; none where its rank is not.
std::vector<int64_t> DimsOf(const Subject& s, int input);

// The rows, by family.
void AddWindowRows(Table& table);      // convolutions and pools
void AddMovementRows(Table& table);    // shapes, slices, gathers
void AddNormRows(Table& table);        // normalisation, reduction, softmax, losses
void AddSequenceRows(Table& table);    // recurrent, attention, control flow, sequences
void AddArithmeticRows(Table& table);  // element-wise, products, generators, quantisation
void AddSignalRows(Table& table);      // signals, images, text
void AddLearningRows(Table& table);    // ai.onnx.ml and the training domain

}  // namespace onward::constraints

#endif  // ONWARD_CORE_GRAPH_CONSTRAINTS_RULES_H_
