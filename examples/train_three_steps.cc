// SPDX-License-Identifier: Apache-2.0
// train_three_steps MODEL.onnx OUT.onnx: the library in a dozen lines. MODEL is
// a trainable file made from examples/make_cnn.cc's CNN.
#include <iostream>

#include "core/device/cpu.h"
#include "training_info/step.h"

int main(int argc, char** argv) {
  using namespace onward;
  if (argc != 3) return 2;
  auto model = ReadModel(argv[1]);
  if (!model.ok()) return std::cerr << model.status() << "\n", 2;
  auto training = TrainingModel::Create(*std::move(model), CpuDevice());
  if (!training.ok()) return std::cerr << training.status() << "\n", 2;
  const TensorMap batch = {{"image", Tensor::Zeros(DType::kFloat, {2, 1, 28, 28})},
                           {"label", Tensor::FromValues<int64_t>({2}, {3, 7})}};
  for (int i = 0; i < 3; ++i) {
    auto outputs = (*training)->Step(batch, {"loss"});
    if (!outputs.ok()) return std::cerr << outputs.status() << "\n", 2;
    std::cout << "loss " << *outputs->at("loss").data<float>() << "\n";
  }
  auto trained = (*training)->Export();
  return trained.ok() && WriteModel(*trained, argv[2]).ok() ? 0 : 2;
}
