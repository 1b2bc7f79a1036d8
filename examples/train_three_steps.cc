// SPDX-License-Identifier: Apache-2.0
// train_three_steps MODEL.onnx OUT.onnx: the library in a dozen lines. MODEL is
// a trainable file made from examples/make_cnn.cc's CNN.
#include <onward/onward.h>

#include <iostream>

namespace {

onward::Status TrainThreeSteps(const char* in, const char* out) {
  const auto model = onward::Model::Read(in);
  if (!model.ok()) return model.status();
  auto training = onward::TrainingSession::Create(*model);
  if (!training.ok()) return training.status();
  const auto images = onward::Tensor::Zeros(onward::ElementType::kFloat, {2, 1, 28, 28});
  const auto labels = onward::Tensor::From<int64_t>({2}, {3, 7});
  for (int i = 0; i < 3; ++i) {
    const auto outputs = training->Step({{"image", *images}, {"label", *labels}}, {"loss"});
    if (!outputs.ok()) return outputs.status();
    std::cout << "loss " << *outputs->at("loss").data<float>() << "\n";
  }
  const auto trained = training->Checkpoint();
  return trained.ok() ? trained->Write(out) : trained.status();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const onward::Status status = TrainThreeSteps(argv[1], argv[2]);
  if (status.ok()) return 0;
  std::cerr << "train_three_steps: " << status << "\n";
  return 2;
}
