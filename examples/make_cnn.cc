// SPDX-License-Identifier: Apache-2.0
// make_cnn OUT.onnx: writes an inference-only CNN for 28x28 images, built with
// Onward's graph builder. Its weights are random: it is there to be trained.
#include <cmath>
#include <iostream>
#include <random>

#include "core/graph/builder.h"
#include "core/onnx_io/model.h"
#include "environment/environment.h"

namespace onward {
namespace {

constexpr int kOpset = 18;
constexpr int kIrVersion = 8;

class Layers {
 public:
  explicit Layers(Graph* graph)
      : graph_(graph), b_(graph, &DefaultEnvironment().operators(), "h") {}

  GraphBuilder& b() { return b_; }

  Expr Weight(const std::string& name, const Shape& shape, int64_t fan_in) {
    Tensor w(DType::kFloat, shape);
    std::uniform_real_distribution<float> uniform(-1, 1);
    const float bound = fan_in > 0 ? std::sqrt(3.0f / static_cast<float>(fan_in)) : 0;
    for (int64_t i = 0; i < w.elements(); ++i) w.data<float>()[i] = bound * uniform(random_);
    graph_->types[name] = ValueType::Of(w.dtype(), w.shape());
    graph_->initializers[name] = std::move(w);
    return b_.Value(name);
  }

  Expr ConvBlock(const Expr& x, const std::string& name, int64_t in, int64_t out) {
    Expr y = b_.Op(
        "Conv",
        {x, Weight(name + ".weight", {out, in, 3, 3}, in * 9), Weight(name + ".bias", {out}, 0)},
        {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"pads", std::vector<int64_t>{1, 1, 1, 1}}});
    return b_.Op(
        "MaxPool", {b_.Op("Relu", {y})},
        {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  }

  Expr Linear(const Expr& x, const std::string& name, int64_t in, int64_t out) {
    return b_.Op("Gemm",
                 {x, Weight(name + ".weight", {out, in}, in), Weight(name + ".bias", {out}, 0)},
                 {{"transB", 1}});
  }

 private:
  Graph* graph_;
  GraphBuilder b_;
  std::mt19937 random_{1};
};

absl::StatusOr<Model> MakeCnn() {
  Graph graph;
  graph.name = "cnn";
  graph.opsets[""] = kOpset;
  Layers layers(&graph);
  GraphBuilder& b = layers.b();
  ValueType image{
      ValueType::Kind::kTensor, DType::kFloat, true, {{-1, "N"}, {1, ""}, {28, ""}, {28, ""}}};
  Expr x = b.Input("image", image);
  x = layers.ConvBlock(x, "conv1", 1, 16);
  x = layers.ConvBlock(x, "conv2", 16, 32);
  x = b.Op("Flatten", {x}, {{"axis", 1}});
  x = b.Op("Relu", {layers.Linear(x, "fc1", 32 * 7 * 7, 128)});
  x = b.Op("Dropout", {x, b.Constant(Tensor::Scalar<float>(0.25f))});
  b.Output(b.Named(layers.Linear(x, "fc2", 128, 10), "logits"));
  if (!b.status().ok()) return b.status();
  return ModelFromGraph(graph, kIrVersion, "onward example");
}

}  // namespace
}  // namespace onward

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_cnn OUT.onnx\n";
    return 2;
  }
  auto model = onward::MakeCnn();
  const absl::Status status = model.ok() ? onward::WriteModel(*model, argv[1]) : model.status();
  if (!status.ok()) {
    std::cerr << "make_cnn: " << status.message() << "\n";
    return 2;
  }
  std::cout << argv[1] << ": written\n";
  return 0;
}
