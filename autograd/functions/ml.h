// SPDX-License-Identifier: Apache-2.0
// What the bodies of the operators of ai.onnx.ml share.
#ifndef ONWARD_AUTOGRAD_FUNCTIONS_ML_H_
#define ONWARD_AUTOGRAD_FUNCTIONS_ML_H_

#include <cstdint>
#include <vector>

#include "core/graph/builder.h"
#include "core/graph/graph.h"

namespace onward::ml {

// float and double as they are, integers as float.
Expr AsFloating(const Expr& x);
Expr AsFloat(const Expr& x);
// [N, width]; a vector is one row.
Expr AsRows(const Expr& x, int64_t width);
// A constant of like's type.
Expr Numbers(const std::vector<double>& values, const Shape& shape, const Expr& like);
// The labels of classes; where there are none, `count` numbers from 0.
Expr ClassLabels(GraphBuilder& b, const Node& call, const Expr& classes, int64_t count);
// Of scores [N, n], as the kernels have it (core/ops/ml/ml.h).
Expr PostTransform(const Node& call, const Expr& scores, int64_t n);
// Of one score s [N, 1]: [1 - s, s], or [-s, s]; of LOGISTIC, the logistic of -s and s.
Expr TwoClasses(const Node& call, const Expr& score, bool opposite);

std::vector<Expr> SvmRegressor(GraphBuilder& b, const Node& call, const std::vector<Expr>& in);
std::vector<Expr> SvmClassifier(GraphBuilder& b, const Node& call, const std::vector<Expr>& in);

}  // namespace onward::ml

#endif  // ONWARD_AUTOGRAD_FUNCTIONS_ML_H_
