// SPDX-License-Identifier: Apache-2.0
#include "autograd/values.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/body.h"
#include "autograd/shape_expr.h"
#include "core/base/status.h"
#include "core/graph/filled.h"

namespace onward {
namespace {

ValueType ElementOf(const ValueType& type) {
  return type.element == nullptr ? ValueType{} : *type.element;
}

// An If that computes one value from what it captures.
Expr Choose(const Expr& condition, absl::FunctionRef<Expr(BodyBuilder&)> then_value,
            absl::FunctionRef<Expr(BodyBuilder&)> else_value) {
  GraphBuilder& b = condition.builder();
  Attributes branches;
  const auto add = [&](const char* name, absl::FunctionRef<Expr(BodyBuilder&)> value) {
    Graph graph;
    graph.name = name;
    BodyBuilder branch(b, std::move(graph));
    branch.b().Output(value(branch));
    absl::StatusOr<Attribute::Body> body = branch.Finish();
    if (!body.ok()) {
      b.Fail(body.status());
    } else {
      branches[name] = *std::move(body);
    }
  };
  add("then_branch", then_value);
  add("else_branch", else_value);
  return b.Op("If", {condition}, std::move(branches));
}

}  // namespace

ValueType GradientType(const ValueType& type) {
  if (type.kind == ValueType::Kind::kOptional) return GradientType(ElementOf(type));
  if (type.kind != ValueType::Kind::kSequence) return type;
  return ValueType::Holding(type.kind, ValueType::Unranked(type.leaf()));
}

Expr MapSequences(const std::vector<Expr>& sequences,
                  absl::FunctionRef<Expr(GraphBuilder&, const std::vector<Expr>&)> each) {
  GraphBuilder& b = sequences[0].builder();
  std::vector<ValueType> elements;
  for (const Expr& s : sequences) elements.push_back(ElementOf(s.type()));
  absl::StatusOr<Attribute::Body> body = MakeBody(b, elements, each);
  if (!body.ok()) return b.Fail(body.status());
  return b.Op("SequenceMap", sequences, {{"body", *std::move(body)}});
}

Expr ZerosOf(const Expr& like) {
  GraphBuilder& b = like.builder();
  switch (like.type().kind) {
    case ValueType::Kind::kSequence: {
      const DType dtype = like.type().leaf();
      if (dtype == DType::kUndefined) {
        return b.Fail(absl::InvalidArgumentError(
            absl::StrCat("'", like.name(), "' is a sequence of an unknown element type")));
      }
      const Expr count = Reshape(b.Op("SequenceLength", {like}), {1});
      const Expr zeros = Filled(count, dtype, 0);
      return b.Op("SplitToSequence", {zeros}, {{"axis", 0}, {"keepdims", 0}});
    }
    case ValueType::Kind::kOptional: {
      // What is missing has no gradient; its place is taken by a value nobody reads.
      const ValueType element = GradientType(like.type());
      return Choose(
          b.Op("OptionalHasElement", {like}),
          [&](BodyBuilder& body) {
            return ZerosOf(body.b().Op("OptionalGetElement", {body.Captured(like)}));
          },
          [&](BodyBuilder& body) {
            const DType dtype = element.leaf();
            if (element.kind == ValueType::Kind::kSequence) {
              return body.b().Op("SequenceEmpty", {}, {{"dtype", static_cast<int>(dtype)}});
            }
            return body.b().Constant(ScalarOf(dtype, 0));
          });
    }
    default: return FullLike(like, 0);
  }
}

Expr ElementGradient(const Expr& sequence, const Expr& position, const Expr& like) {
  const Expr element = sequence.builder().Op("SequenceAt", {sequence, position});
  if (!like.type().is_tensor()) return element;
  return WithShapeOf(Expand(element, ShapeVector(like)), like);
}

Expr FitGradient(const Expr& g, const Expr& value) {
  if (!value.type().is_tensor()) return g;
  const bool quantized = value.dtype() != DType::kUndefined && !IsFloating(value.dtype());
  if (!quantized) return FitTo(CastLike(g, value), value);
  return FitTo(g.dtype() == DType::kFloat ? g : Cast(g, DType::kFloat), value);
}

Expr AddGradients(const Expr& a, const Expr& b, const Expr& value) {
  if (GradientType(value.type()).kind == ValueType::Kind::kSequence) {
    return a.builder().Op("SequenceSum", {a, b}, {}, kOnwardDomain);
  }
  return value.type().is_tensor() ? WithShapeOf(a + b, value) : a + b;
}

}  // namespace onward
