// SPDX-License-Identifier: Apache-2.0
// What the gradient rules and the bodies of the functions they call
// (docs/functions.md) have in common. A body is made of standard operators
// whose form is the same from opset 18 to 28, works for sizes that are not
// known, and ranks where the operator leaves them open, and can itself be
// differentiated.
#ifndef ONWARD_AUTOGRAD_FUNCTIONS_H_
#define ONWARD_AUTOGRAD_FUNCTIONS_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/builder.h"
#include "core/graph/function_library.h"
#include "core/graph/graph.h"

namespace onward {

void RegisterActivationFunctions(FunctionLibrary& library);
void RegisterConvFunctions(FunctionLibrary& library);
void RegisterPoolFunctions(FunctionLibrary& library);
void RegisterNormFunctions(FunctionLibrary& library);
void RegisterAttentionFunctions(FunctionLibrary& library);
void RegisterRnnFunctions(FunctionLibrary& library);
void RegisterLossFunctions(FunctionLibrary& library);
void RegisterIndexFunctions(FunctionLibrary& library);
void RegisterImageFunctions(FunctionLibrary& library);
void RegisterSamplingFunctions(FunctionLibrary& library);
void RegisterDeformFunctions(FunctionLibrary& library);
void RegisterRoiFunctions(FunctionLibrary& library);
void RegisterMlFunctions(FunctionLibrary& library);  // bodies for ai.onnx.ml
void RegisterSequenceFunctions(FunctionLibrary& library);
void RegisterEinsumFunctions(FunctionLibrary& library);
void RegisterDetFunctions(FunctionLibrary& library);

// --- Calls and shapes (functions.cc) ---

// Fails with the node's description in front of `message`.
Expr FailAt(GraphBuilder& b, const Node& node, const std::string& message);
// Input i; undefined where the call omits it.
Expr Argument(const std::vector<Expr>& inputs, size_t i);
// Those attributes of `node` that are named.
Attributes Pick(const Node& node, std::initializer_list<std::string_view> names);

// [first, last).
std::vector<int64_t> AxesRange(int64_t first, int64_t last);
// [0, rank) without `axis`.
std::vector<int64_t> AxesBut(int rank, int axis);
// Dimensions [first, last) of x as an int64 vector, constant where known.
Expr DimsOf(const Expr& x, int first, int last);

// One dimension of a wanted shape.
struct Extent {
  int64_t known = -1;
  Expr source;  // not known: dimension `axis` of this value
  int axis = 0;
};
Extent Fixed(int64_t value);
Extent DimOf(const Expr& x, int axis);
Extent Rest();  // what remains; at most one of a shape
Expr ReshapeTo(const Expr& x, const std::vector<Extent>& shape);

// Values in the shape of x = [N, C, ..]: as [N, C, rest] where nothing tells the rank of x. With
// `channels`, a vector of C elements, x may be a vector too, which has one channel.
class Channelled {
 public:
  explicit Channelled(const Expr& x, const Expr& channels = {}) : x_(x), channels_(channels) {}
  bool flattens() const { return x_.rank() < 0; }
  int rank() const { return flattens() ? 3 : x_.rank(); }
  Expr Of(const Expr& e) const;
  // In the shape of x again.
  Expr Back(const Expr& e) const;

 private:
  Expr x_, channels_;
};

// A vector over axis `axis` of a tensor of rank `rank`: [1, .., -1, .., 1].
Expr AlongAxis(const Expr& vector, int axis, int rank);

// --- Sliding windows (functions/conv.cc) ---

// The windows of a Conv or pool, one entry per spatial axis, auto_pad resolved.
struct Windows {
  std::vector<int64_t> kernel;  // -1: not known
  std::vector<int64_t> strides, dilations, pads_begin, pads_end;
  // Pads in front of all axes, then behind, where only the size of x tells them; the lists above
  // hold zeros then.
  Expr computed_pads = {};

  int axes() const { return static_cast<int>(strides.size()); }
  // Input cells from the first to the last of a window; -1: not known.
  int64_t span(int axis) const;
  // strides, dilations, pads and group as attributes.
  Attributes AsAttributes(int64_t group) const;
};
// Fails (nullopt) on attributes that do not fit `x`, and where neither it, the kernel nor an
// attribute tells how many spatial axes there are. `weight` gives the kernel's sizes where they
// are not known.
std::optional<Windows> WindowsOf(GraphBuilder& b, const Node& node, const Expr& x,
                                 std::vector<int64_t> kernel, const Expr& weight = {});
// The same for a pool, whose kernel is an attribute.
std::optional<Windows> PoolWindowsOf(GraphBuilder& b, const Node& node, const Expr& x);
// What span() says of each axis, as a vector; from the weight where kernel sizes are not known.
Expr Spans(GraphBuilder& b, const Windows& windows, const Expr& weight);
// kernel_shape, or else the spatial dimensions of the weight.
std::vector<int64_t> KernelOf(const Node& node, const Expr& weight);
// The transpose of the convolution with `w`: takes dy back to the size of x.
Expr TransposedConv(const Expr& dy, const Expr& w, const Windows& windows, int64_t group,
                    const Expr& x);
// Every cell of x gets the sum of dy over the windows that cover the cell.
Expr SpreadWindows(const Expr& dy, const Windows& windows, const Expr& x);

// --- Normalization (functions/norm.cc) ---

// normal = (x - mean(x)) * rstd,  rstd = 1 / sqrt(variance(x) + epsilon)
struct Normalized {
  Expr normal, rstd;
};
Normalized Normalize(const Expr& x, const std::vector<int64_t>& axes, float epsilon);
Normalized Normalize(const Expr& x, const Expr& axes, float epsilon);
// dx = rstd * (g - mean(g) - normal * mean(g * normal)) for a gradient g of `normal`
Expr NormalizeGrad(const Normalized& n, const Expr& g, const std::vector<int64_t>& axes);
Expr NormalizeGrad(const Normalized& n, const Expr& g, const Expr& axes);
// The mean over axes, a vector that is not empty; they are kept.
Expr MeanOver(const Expr& x, const Expr& axes);

// --- Labels of a loss (functions/loss.cc) ---

// Shapes: scores [N, C, D..], labels [N, D..].
struct LabelTerms {
  Expr is_label;  // bool [N, C, D..]: the class is the label, and not ignored
  Expr counted;   // bool [N, 1, D..]: not ignored; undefined if all are counted
  Expr weight;    // weight of each class, [1, C, 1..]; undefined for 1
  Expr scale;     // dL / d(weighted loss of a position): scalar or [N, 1, D..]
};
// Scores, labels and the gradient of the loss: with all positions in one axis where nothing tells
// the rank of the scores.
struct LossOperands {
  Expr dl, scores, labels;
};
LossOperands LossOperandsOf(const Node& node, const Expr& dl, const Expr& scores,
                            const Expr& labels);
// Fails (nullopt) on scores without classes; their rank is known.
std::optional<LabelTerms> LabelTermsOf(GraphBuilder& b, const Node& node, const Expr& dl,
                                       const Expr& scores, const Expr& labels, const Expr& weights);

}  // namespace onward

#endif  // ONWARD_AUTOGRAD_FUNCTIONS_H_
