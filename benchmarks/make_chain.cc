// SPDX-License-Identifier: Apache-2.0
// make_chain OUT.onnx BLOCKS WIDTH: writes a model of BLOCKS equal blocks
// (Gemm, Relu) and a classifier of ten, for any batch size. Each block holds
// 4 * WIDTH * (WIDTH + 1) bytes of weights.
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include "core/graph/builder.h"
#include "core/onnx_io/model.h"
#include "environment/environment.h"

namespace onward {
namespace {

constexpr int kOpset = 18;
constexpr int kIrVersion = 8;
constexpr int64_t kClasses = 10;

class Chain {
 public:
  explicit Chain(Graph* graph) : graph_(graph), b_(graph, &DefaultEnvironment().operators(), "h") {}

  GraphBuilder& b() { return b_; }

  Expr Linear(const Expr& x, const std::string& name, int64_t in, int64_t out) {
    const float bound = std::sqrt(6.0f / static_cast<float>(in));
    const Expr weight = Weight(name + ".weight", {out, in}, bound);
    return b_.Op("Gemm", {x, weight, Weight(name + ".bias", {out}, 0)}, {{"transB", 1}});
  }

 private:
  Expr Weight(const std::string& name, const Shape& shape, float bound) {
    Tensor w(DType::kFloat, shape);
    for (int64_t i = 0; i < w.elements(); ++i) {
      const float unit = static_cast<float>(random_()) / static_cast<float>(random_.max());
      w.data<float>()[i] = bound * (2 * unit - 1);
    }
    graph_->types[name] = ValueType::Of(w.dtype(), w.shape());
    graph_->initializers[name] = std::move(w);
    return b_.Value(name);
  }

  Graph* graph_;
  GraphBuilder b_;
  std::minstd_rand random_{1};
};

absl::StatusOr<Model> MakeChain(int64_t blocks, int64_t width) {
  Graph graph;
  graph.name = "chain";
  graph.opsets[""] = kOpset;
  Chain chain(&graph);
  GraphBuilder& b = chain.b();
  Expr x = b.Input("x", {ValueType::Kind::kTensor, DType::kFloat, true, {{-1, "N"}, {width, ""}}});
  for (int64_t i = 0; i < blocks; ++i) {
    x = b.Op("Relu", {chain.Linear(x, "block" + std::to_string(i), width, width)});
  }
  b.Output(b.Named(chain.Linear(x, "classifier", width, kClasses), "y"));
  if (!b.status().ok()) return b.status();
  return ModelFromGraph(graph, kIrVersion, "onward benchmark");
}

}  // namespace
}  // namespace onward

int main(int argc, char** argv) {
  const int64_t blocks = argc == 4 ? std::atoll(argv[2]) : 0;
  const int64_t width = argc == 4 ? std::atoll(argv[3]) : 0;
  if (blocks < 1 || width < 1) {
    std::cerr << "usage: make_chain OUT.onnx BLOCKS WIDTH\n";
    return 2;
  }
  auto model = onward::MakeChain(blocks, width);
  const absl::Status status = model.ok() ? onward::WriteModel(*model, argv[1]) : model.status();
  if (!status.ok()) std::cerr << "make_chain: " << status.message() << "\n";
  return status.ok() ? 0 : 2;
}
