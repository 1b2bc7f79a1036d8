// SPDX-License-Identifier: Apache-2.0
// The benchmark models, made trainable, and numbers to train them with.
#ifndef ONWARD_TESTS_CUDA_PEERS_H_
#define ONWARD_TESTS_CUDA_PEERS_H_

#include <cmath>
#include <string>

#include "core/onnx_io/model.h"
#include "environment/environment.h"
#include "tests/support/paths.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"

namespace onward {

inline Model TrainablePeer(const std::string& file, const std::string& optimizer) {
  AuthorOptions options;
  options.loss = {"cross_entropy", {}};
  options.optimizer = ParseOptimizer(optimizer).value();
  return MakeTrainable(ReadModel(file).value(), options, DefaultEnvironment()).value().model;
}

// The small twin of one of them (tests/golden/make_peers.py).
inline Model SmallPeer(const std::string& name, const std::string& optimizer) {
  return TrainablePeer(GoldenFolder() + "/peers/" + name + ".onnx", optimizer);
}

// Waves for numbers, tokens in turn; an example keeps its class.
class PeerBatches {
 public:
  explicit PeerBatches(const Model& trainable) {
    const auto training = Open(trainable, DefaultEnvironment());
    x_ = training->spec().inference.FeedInputs().at(0).type;
    y_ = *training->spec().inference.outputs.at(0).type.StaticShape();
  }

  TensorMap operator()(int step) const {
    Tensor x(x_.dtype, *x_.StaticShape()), label(DType::kInt64, Shape{y_[0]});
    for (int64_t i = 0; i < x.elements(); ++i) {
      if (x.dtype() == DType::kInt64) x.data<int64_t>()[i] = (i * 7 + step) % kTokens;
      if (x.dtype() != DType::kFloat) continue;
      x.data<float>()[i] =
          static_cast<float>(std::sin(0.7 * static_cast<double>(i * i % 101 + step)));
    }
    for (int64_t i = 0; i < y_[0]; ++i) label.data<int64_t>()[i] = i * 3 % y_[1];
    return {{"x", x}, {"label", label}};
  }

 private:
  static constexpr int64_t kTokens = 20;  // of the smallest vocabulary

  ValueType x_;
  Shape y_;
};

}  // namespace onward

#endif  // ONWARD_TESTS_CUDA_PEERS_H_
