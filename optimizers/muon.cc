// SPDX-License-Identifier: Apache-2.0
// Muon: momentum whose matrix is made orthogonal, nearly, by a few steps of Newton and Schulz.
//
//   M' = momentum*M + (1-momentum)*G;  U = nesterov ? momentum*M' + (1-momentum)*G : M'
//   O = U/max(|U|, eps);  ns_steps times: A = O*O^T, O = a*O + (b*A + c*A*A)*O
//   X' = X * (1 - R*weight_decay) - R*q*O
//
// with q by adjust_lr_fn, from the sides of the matrix. A kernel of a convolution is a matrix
// of its output channels; biases and other vectors are no matrices and go through AdamWStep
// with the same rate and decay. Written as plain nodes: a function cannot repeat as often as
// an attribute says.
#include <algorithm>
#include <cmath>

#include "optimizers/step_function.h"

namespace onward {
namespace {

// Which word of adjust_lr_fn.
constexpr double kMatchRmsAdamw = 1;

struct Sides {
  int64_t rows = 0, columns = 0;
};

Sides SidesOf(const ValueType& type) {
  Sides sides{type.dims[0].value, 1};
  for (size_t i = 1; i < type.dims.size(); ++i) sides.columns *= type.dims[i].value;
  return sides;
}

double RateFactor(const OptimizerSpec& spec, const Sides& sides) {
  const double rows = static_cast<double>(sides.rows), columns = static_cast<double>(sides.columns);
  if (OptionOf(spec, "adjust_lr_fn") == kMatchRmsAdamw) {
    return 0.2 * std::sqrt(std::max(rows, columns));
  }
  return std::sqrt(std::max(1.0, rows / std::max(1.0, columns)));
}

// Of a matrix with no more rows than columns, so that O*O^T is the smaller product.
Expr Orthogonalized(const OptimizerSpec& spec, const Expr& matrix) {
  GraphBuilder& b = matrix.builder();
  Expr o = matrix / Max(Norm(matrix), b.Scalar(OptionOf(spec, "eps"), matrix));
  for (int i = 0; i < static_cast<int>(OptionOf(spec, "ns_steps")); ++i) {
    const Expr square = MatMul(o, Transpose(o, {1, 0}));
    const Expr polynomial = square * OptionOf(spec, "ns_coefficient2") +
                            MatMul(square, square) * OptionOf(spec, "ns_coefficient3");
    o = o * OptionOf(spec, "ns_coefficient1") + MatMul(polynomial, o);
  }
  return o;
}

std::vector<Expr> MatrixStep(const OptimizerSpec& spec, const Expr& lr, const Variable& v) {
  const Expr x = Widened(v.value), g = Widened(v.gradient), r = CastLike(lr, x);
  const double momentum = OptionOf(spec, "momentum");
  const Expr m = Widened(v.states[0]) * momentum + g * (1 - momentum);
  const Expr direction = OptionOf(spec, "nesterov") != 0 ? m * momentum + g * (1 - momentum) : m;
  const Sides sides = SidesOf(v.value.type());
  const bool flat = v.value.rank() == 2, turned = sides.rows > sides.columns;
  Expr matrix = flat ? direction : Reshape(direction, {sides.rows, sides.columns});
  if (turned) matrix = Transpose(matrix, {1, 0});
  Expr move = Orthogonalized(spec, matrix);
  if (turned) move = Transpose(move, {1, 0});
  if (!flat) move = ReshapeLike(move, x);
  const Expr moved =
      x * (1 - r * OptionOf(spec, "weight_decay")) - r * RateFactor(spec, sides) * move;
  return {CastLike(moved, v.value), CastLike(m, v.states[0])};
}

bool IsMatrix(const Shape& shape) { return shape.rank() >= 2; }

std::vector<StateTensor> MuonStates(const OptimizerSpec&, const Shape& shape) {
  if (!IsMatrix(shape)) return MomentStates();
  return {{"__momentum"}};
}

absl::Status MuonUpdate(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                        const Expr& step, absl::Span<const Variable> variables, Updated* updated) {
  const Attributes vectors = {{"alpha", 0.9},
                              {"beta", 0.999},
                              {"epsilon", 0.0},
                              {"eps", 1e-8},
                              {"weight_decay", OptionOf(spec, "weight_decay")}};
  for (const Variable& v : variables) {
    if (v.states.size() == 1) {
      updated->push_back(MatrixStep(spec, lr, v));
    } else {
      const absl::Status status =
          StepUpdate(b, "AdamWStep", vectors, lr, step, absl::MakeConstSpan(&v, 1), updated);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace

OptimizerDef MuonOptimizer() {
  return {.name = "muon",
          .summary = "momentum made orthogonal for matrices, AdamW for vectors",
          .options = {NumberOption::AtLeast("lr", 1e-3, 0),
                      NumberOption::AtLeast("weight_decay", 0.1, 0),
                      NumberOption::Fraction("momentum", 0.95),
                      NumberOption::Switch("nesterov", true),
                      {.name = "ns_coefficient1", .otherwise = 3.4445},
                      {.name = "ns_coefficient2", .otherwise = -4.775},
                      {.name = "ns_coefficient3", .otherwise = 2.0315},
                      NumberOption::Positive("eps", 1e-7),
                      {.name = "ns_steps", .otherwise = 5, .low = 1, .high = 99, .integer = true},
                      NumberOption::Words("adjust_lr_fn", {"original", "match_rms_adamw"})},
          .lists = {{"ns_coefficients", {"ns_coefficient1", "ns_coefficient2", "ns_coefficient3"}}},
          .first_step = 1,
          .states = MuonStates,
          .update = MuonUpdate};
}

}  // namespace onward
