// SPDX-License-Identifier: Apache-2.0
#include "tests/support/far_training.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace onward {

Far::Far(const std::vector<FarOptions>& devices, bool require) {
  EnvironmentOptions options;
  options.require_accelerator = require;
  for (const FarOptions& device : devices) {
    options.accelerators.push_back([device, this](const Device& cpu) {
      return absl::StatusOr<std::unique_ptr<const Device>>(MakeFarDevice(cpu, device, counters));
    });
  }
  environment = Environment::Make(options).value();
}

std::string FarNumbers(int count) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) texts.push_back(absl::StrCat((i * 37 % 19 - 9) / 20.0));
  return absl::StrJoin(texts, ", ");
}

Model FarNetwork(AuthorOptions options) {
  const Model model =
      TextModel("g (int64[N,2] x) => (float[N,3] y) <float[5,4] table = {" + FarNumbers(20) +
                "}, float[8,6] w1 = {" + FarNumbers(48) +
                "}, float[6] scale = {1,1,1,1,1,1}, float[6] bias = {" + FarNumbers(6) +
                "}, float[6] mean = {0,0,0,0,0,0}, float[6] var = {1,1,1,1,1,1}, " +
                "float[6,3] w2 = {" + FarNumbers(18) + "}> { e = Gather(table, x) f = Flatten(e) " +
                "a = MatMul(f, w1) b = BatchNormalization(a, scale, bias, mean, var) c = Tanh(b) " +
                "d = Dropout(c) y = MatMul(d, w2) }");
  options.optimizer = OptimizerSpec{"adamw", {}};
  options.clip_norm = 1;
  return MakeTrainable(model, options, DefaultEnvironment()).value().model;
}

TensorMap FarBatch(int step) {
  Tensor x(DType::kInt64, Shape{4, 2}), label(DType::kInt64, Shape{4});
  for (int i = 0; i < 8; ++i) x.data<int64_t>()[i] = (i * 3 + step) % 5;
  for (int i = 0; i < 4; ++i) label.data<int64_t>()[i] = (i + step) % 3;
  return {{"x", x}, {"label", label}};
}

}  // namespace onward
