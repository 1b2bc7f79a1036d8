// SPDX-License-Identifier: Apache-2.0
// Places where an adapter can stand: products of data with a constant.
#ifndef ONWARD_TRAINING_INFO_ADAPTERS_SITE_H_
#define ONWARD_TRAINING_INFO_ADAPTERS_SITE_H_

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "training_info/adapters/sight.h"

namespace onward {

// Operators of onnxruntime that hold a weight in packed form.
inline constexpr char kMicrosoftDomain[] = "com.microsoft";

struct Site {
  enum class Form {
    kRight,   // x M: MatMul, Gemm
    kLeft,    // M x: the same, with the weight first
    kConv,    // in `groups` groups
    kPacked,  // x M, with M packed in the node's inputs: MatMulNBits, MatMulBnb4
  };
  // Nodes that are alike in this have one adapter.
  struct Key {
    std::string operand;  // what the node reads
    std::string source;   // what is stored: the operand, or what it is computed from
    Form form = Form::kRight;
    bool transposed = false;  // Gemm's transA or transB of the weight
    int64_t groups = 1;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  Key key;
  // The nodes from the source to the operand, in order: changes of shape and type, and
  // dequantization.
  std::vector<const Node*> chain;
  bool quantized = false;
  int input = 1;  // the node's, that the operand is
  DType dtype = DType::kUndefined;
  Shape shape;  // of the operand; of packed weights [in, out]

  // Inputs and outputs of the product, for each group of a convolution.
  int64_t in() const;
  int64_t out() const;
  // The shapes of an adapter of this rank here, and the highest rank that makes sense.
  Shape DownShape(int64_t rank) const;
  Shape UpShape(int64_t rank) const;
  int64_t UsefulRank(int64_t rank) const;
};

// The types of the source and of what each node of the chain makes of it; nothing where one is not
// known.
std::optional<std::vector<Sight::Known>> ChainTypes(const Site& site, const Sight& sight);
// How a Transpose in a chain orders axes.
std::vector<int64_t> PermOf(const Node& transpose, int rank);

// What a node of the graph in sight is, if it is one.
std::optional<Site> SiteOf(const Node& node, const Sight& sight);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_ADAPTERS_SITE_H_
