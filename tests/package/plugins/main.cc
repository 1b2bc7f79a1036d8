// SPDX-License-Identifier: Apache-2.0
// user MODEL PLUGIN...: a program of somebody who trains a model that needs plugins.
#include <onward/onward.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  onward::EnvironmentOptions options;
  options.plugins.assign(argv + 2, argv + argc);
  const auto environment = onward::Environment::Make(options);
  const auto model = onward::Model::Read(argv[1]);
  if (!environment.ok() || !model.ok()) {
    std::cerr << "user: " << environment.status() << "; " << model.status() << "\n";
    return 2;
  }
  auto training = onward::TrainingSession::Create(*model, *environment);
  if (!training.ok()) {
    std::cerr << "user: " << training.status() << "\n";
    return 2;
  }
  const auto x = onward::Tensor::From<float>({2, 4}, {1, 2, 0, 1, 2, 0, 1, 1});
  const auto label = onward::Tensor::From<int64_t>({2}, {0, 2});
  for (int i = 0; i < 3; ++i) {
    const auto outputs = training->Step({{"x", *x}, {"label", *label}}, {"loss"});
    if (!outputs.ok()) {
      std::cerr << "user: " << outputs.status() << "\n";
      return 2;
    }
    std::cout << "loss " << *outputs->at("loss").data<float>() << "\n";
  }
  return 0;
}
