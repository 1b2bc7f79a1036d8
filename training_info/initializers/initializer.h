// SPDX-License-Identifier: Apache-2.0
// How weights begin, as ONNX graphs. An initialiser is named with options, as in
//
//   kaiming_normal:mode=fan_out,nonlinearity=relu
//
// and becomes nodes that draw one weight. docs/training-recipes.md lists them; names, options
// and formulas are those of torch.nn.init. Every layer has weights that are not matrices, and
// begin in their own way whatever is chosen for those that are: layer.h tells them apart.
#ifndef ONWARD_TRAINING_INFO_INITIALIZERS_INITIALIZER_H_
#define ONWARD_TRAINING_INFO_INITIALIZERS_INITIALIZER_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/spec.h"
#include "core/graph/builder.h"

namespace onward {

struct InitSpec {
  std::string name = "default";
  std::map<std::string, double> options = {};  // only those given
};

std::vector<std::string> InitNames();

// What docs/training-recipes.md says of each.
std::vector<Description> DescribeInitializers();

// Refuses unknown names and options, naming the nearest valid one.
absl::StatusOr<InitSpec> ParseInit(absl::string_view text);
// The same for a spec that a program has made.
absl::Status CheckInit(const InitSpec& spec);

// An option of a valid spec: as given, or its default; 0 where it has no such option.
double OptionOf(const InitSpec& spec, absl::string_view option);

// What is drawn. The numbers of `shape` are those of `matrix` in the same order: `stacked` axes of
// separate matrices, then rows, then all other axes together as columns.
struct WeightMatrix {
  DType dtype = DType::kFloat;
  Shape shape, matrix;
  int stacked = 0;
  int64_t fan_in = 1, fan_out = 1;
};

// The weight as the spec, which is valid, draws it. `name` is that of the random node.
Expr DrawWeight(GraphBuilder& b, const InitSpec& spec, const WeightMatrix& weight,
                const std::string& name);

// The parts that graphs are made of, for weights that are no matrices. 16-bit types are drawn as
// float.
Expr DrawUniform(GraphBuilder& b, DType dtype, const Shape& shape, double low, double high,
                 const std::string& name);
Expr DrawNormal(GraphBuilder& b, DType dtype, const Shape& shape, double mean, double deviation,
                const std::string& name);
Expr Fill(GraphBuilder& b, DType dtype, const Shape& shape, double value, const std::string& name);

// --- orthogonal.cc

// Matrices with orthonormal columns, or rows where there are more columns than rows, each as
// likely as any other.
Expr DrawOrthogonal(GraphBuilder& b, const WeightMatrix& weight, const std::string& name);

// --- truncated_normal.cc

// Of a normal distribution, the part between low and high.
Expr DrawTruncatedNormal(GraphBuilder& b, DType dtype, const Shape& shape, double mean,
                         double deviation, double low, double high, const std::string& name);

// The type to compute in: wide enough for random nodes of every opset.
inline DType DrawnType(DType dtype) {
  return dtype == DType::kDouble ? DType::kDouble : DType::kFloat;
}

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_INITIALIZERS_INITIALIZER_H_
