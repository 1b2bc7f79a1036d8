// SPDX-License-Identifier: Apache-2.0
// Embedding tables whose untouched rows an optimizer step leaves alone.
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/graph/operator_set.h"
#include "core/graph/patterns/pattern.h"
#include "core/runtime/rewrite/fuse.h"

namespace onward {
namespace {

class RowUpdater {
 public:
  RowUpdater(const absl::flat_hash_set<std::string>& keep, const OperatorSet& operators,
             Graph* graph)
      : pattern_(graph, keep), operators_(operators) {}

  void Run() {
    for (const Node& node : pattern_.nodes()) {
      if (pattern_.gone(node) || !node.Is("GatherGrad", kOnwardDomain) || !FewRows(node)) continue;
      const Node* step = pattern_.OnlyConsumer(node.outputs[0]);
      const RowUpdate* rows = step == nullptr ? nullptr : RowUpdateOf(*step);
      if (rows != nullptr && step->HasInput(rows->x + 1) &&
          step->inputs[rows->x + 1] == node.outputs[0]) {
        Rewrite(node, *step, *rows);
      }
    }
    pattern_.Finish();
  }

 private:
  const RowUpdate* RowUpdateOf(const Node& step) const {
    const FunctionTraits* traits = operators_.Traits(step);
    if (traits == nullptr || !traits->row_update.has_value()) return nullptr;
    const RowUpdate& update = *traits->row_update;
    return update.holds && !update.holds(step) ? nullptr : &update;
  }

  // Whether the indices name less than half of the rows. Anything more saves too
  // little.
  bool FewRows(const Node& gather) const {
    const auto shape = [&](int i) {
      const ValueType* type = gather.HasInput(i) ? pattern_.TypeOf(gather.inputs[i]) : nullptr;
      return type == nullptr ? std::nullopt : type->StaticShape();
    };
    const ValueType* type = pattern_.TypeOf(gather.outputs[0]);
    if (type == nullptr || (type->dtype != DType::kFloat && type->dtype != DType::kDouble)) {
      return false;
    }
    const std::optional<Shape> indices = shape(1), table = type->StaticShape();
    return gather.Int("axis", 0) == 0 && indices.has_value() && table.has_value() &&
           table->rank() >= 1 && 2 * indices->elements() < (*table)[0];
  }

  void Rewrite(const Node& gather, const Node& step, const RowUpdate& of_rows) {
    Node rows = gather;
    rows.op_type = "GatherGradRows";
    rows.outputs = {pattern_.NewName(gather, "rows"), gather.outputs[0]};
    Node update = step;
    update.op_type = of_rows.function;
    update.domain = std::string(kOnwardDomain);
    update.inputs.insert(update.inputs.begin() + of_rows.x + 1, rows.outputs[0]);
    pattern_.Replace({&gather}, gather, std::move(rows));
    pattern_.Replace({&step}, step, std::move(update));
  }

  PatternGraph pattern_;
  const OperatorSet& operators_;
};

// rows[i] is the row that index i names, unless an earlier one does: then -1. The
// matrix that says which indices name the same row sums up their gradients.
std::vector<Expr> GatherGradRows(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  if (in[2].rank() < 1) {
    b.Fail(absl::InvalidArgumentError(
        absl::StrCat(call.Describe(), ": the rank of the data is not known")));
    return {};
  }
  const Expr &dy = in[0], count = Unsqueeze(SizeOf(in[1]), {0});
  Expr index = Reshape(CastLike(in[1], b.Int(0)), {-1});
  index = Where(Less(index, b.Int(0)), index + ShapeOf(in[2], 0, 1), index);
  const Expr same = Equal(Unsqueeze(index, {1}), Unsqueeze(index, {0}));
  const Expr place = b.Op("Range", {b.Int(0), SizeOf(in[1]), b.Int(1)});
  const Expr earlier = Less(Unsqueeze(place, {0}), Unsqueeze(place, {1}));
  const Expr repeats =
      b.Op("ReduceMax", {Cast(And(same, earlier), DType::kInt64), b.Ints({1})}, {{"keepdims", 0}});
  const Expr first = Equal(repeats, b.Int(0));
  const Expr rows = Where(first, index, b.Int(-1));
  const Expr weights = CastLike(And(same, Unsqueeze(first, {1})), dy);
  const Expr flat = Reshape(dy, Concat({count, b.Ints({-1})}, 0));
  const Expr shape = Concat({count, ShapeOf(in[2], 1, in[2].rank())}, 0);
  return {rows, Reshape(MatMul(weights, flat), shape)};
}

absl::StatusOr<std::vector<ValueType>> TypesOfRows(const Node& call,
                                                   absl::Span<const InputFact> inputs,
                                                   const OperatorSet&,
                                                   const std::map<std::string, int>&) {
  const auto type = [&](size_t i) {
    return i < inputs.size() && inputs[i].type != nullptr ? *inputs[i].type : ValueType();
  };
  const ValueType data = type(2);
  const std::optional<Shape> shape = type(1).StaticShape();
  if (data.has_rank && data.rank() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(call.Describe(), ": the data is a scalar"));
  }
  const Dim count{shape.has_value() ? shape->elements() : -1, ""};
  ValueType rows{ValueType::Kind::kTensor, DType::kInt64, true, {count}}, sums = data;
  if (sums.has_rank) sums.dims[0] = count;
  return std::vector<ValueType>{rows, sums};
}

}  // namespace

void UpdateRowsOnly(const absl::flat_hash_set<std::string>& keep, const OperatorSet& operators,
                    Graph* graph) {
  if (Has(*graph, {"GatherGrad"}, kOnwardDomain)) RowUpdater(keep, operators, graph).Run();
}

void RegisterRowFunctions(FunctionLibrary& library) {
  library.Add("GatherGradRows", {.body = GatherGradRows,
                                 .types = TypesOfRows,
                                 .output_like = {},
                                 .shape_only = {2},
                                 .attributes = {},
                                 .required = 3,
                                 .operands = "TIT"});
}

}  // namespace onward
