// SPDX-License-Identifier: Apache-2.0
// Whole training steps on the CUDA device, in the emulator: nothing falls back, and the losses
// are those of the CPU.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "environment/environment.h"
#include "tests/cuda/beside_cpu.h"
#include "tests/cuda/emulated.h"
#include "tests/cuda_emu/control.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"

namespace onward::training_test {

constexpr int kSteps = 20;

// "0.3, -0.1, ..."
std::string Numbers(int count) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) texts.push_back(absl::StrCat((i * 37 % 19 - 9) / 25.0));
  return absl::StrJoin(texts, ", ");
}

std::string Weight(const std::string& shape, const std::string& name, int count) {
  return absl::StrCat("float[", shape, "] ", name, " = {", Numbers(count), "}");
}

struct Network {
  std::string name, text, optimizer;
  Shape x;
  bool tokens = false;
};
void PrintTo(const Network& network, std::ostream* out) { *out << network.name; }

std::vector<Network> Networks() {
  std::vector<Network> all;
  all.push_back({"Perceptron",
                 "g (float[4,8] x) => (float[4,3] y) <" + Weight("8,6", "w1", 48) + ", " +
                     Weight("6", "b1", 6) + ", " + Weight("6,3", "w2", 18) +
                     "> { a = Gemm(x, w1, b1) b = Relu(a) d = Dropout(b) y = MatMul(d, w2) }",
                 "adamw",
                 {4, 8}});
  all.push_back({"Convolutions",
                 "g (float[2,1,8,8] x) => (float[2,3] y) <" + Weight("4,1,3,3", "k", 36) + ", " +
                     Weight("4", "scale", 4) + ", " + Weight("4", "bias", 4) +
                     ", float[4] mean = {0,0,0,0}, float[4] var = {1,1,1,1}, " +
                     Weight("4,1,3,3", "deep", 36) + ", " + Weight("64,3", "w", 192) +
                     "> { a = Conv <pads = [1,1,1,1]> (x, k) b = BatchNormalization(a, scale, "
                     "bias, mean, var) c = Relu(b) d = MaxPool <kernel_shape = [2,2], strides = "
                     "[2,2]> (c) e = Conv <pads = [1,1,1,1], group = 4> (d, deep) f = Add(d, e) "
                     "h = Flatten(f) y = MatMul(h, w) }",
                 "momentum",
                 {2, 1, 8, 8}});
  all.push_back({"Recurrence",
                 "g (float[5,2,3] x) => (float[2,3] y) <" + Weight("1,16,3", "w", 48) + ", " +
                     Weight("1,16,4", "r", 64) + ", " + Weight("4,3", "v", 12) +
                     ", int64[1] zero = {0}> { a, h = LSTM <hidden_size = 4> (x, w, r) "
                     "s = Squeeze(h, zero) y = MatMul(s, v) }",
                 "adam",
                 {5, 2, 3}});
  all.push_back({"Transformer",
                 "g (int64[2,4] x) => (float[8,5] y) <" + Weight("5,8", "table", 40) + ", " +
                     Weight("8,8", "wq", 64) + ", " + Weight("8,8", "wk", 64) + ", " +
                     Weight("8,8", "wv", 64) + ", " + Weight("8", "scale", 8) + ", " +
                     Weight("8", "bias", 8) + ", " + Weight("8,5", "head", 40) +
                     ", int64[2] flat = {8, 8}> { e = Gather(table, x) q = MatMul(e, wq) "
                     "k = MatMul(e, wk) v = MatMul(e, wv) t = Transpose <perm = [0,2,1]> (k) "
                     "s = MatMul(q, t) p = Softmax(s) a = MatMul(p, v) r = Add(e, a) "
                     "n = LayerNormalization(r, scale, bias) z = Gelu(n) f = Reshape(z, flat) "
                     "y = MatMul(f, head) }",
                 "adamw",
                 {2, 4},
                 true});
  return all;
}

Model Trainable(const Network& network) {
  AuthorOptions options;
  options.optimizer = OptimizerSpec{network.optimizer, {}};
  options.clip_norm = 1;
  return MakeTrainable(TextModel("<ir_version: 10, opset_import: [\"\" : 20]> " + network.text),
                       options, DefaultEnvironment())
      .value()
      .model;
}

TensorMap Batch(const Network& network, int step) {
  Tensor x(network.tokens ? DType::kInt64 : DType::kFloat, network.x);
  for (int64_t i = 0; i < x.elements(); ++i) {
    if (network.tokens) x.data<int64_t>()[i] = (i * 3 + step) % 5;
    if (!network.tokens) x.data<float>()[i] = static_cast<float>((i * 7 + step) % 11) / 5 - 1;
  }
  const int64_t rows = network.tokens ? 8 : network.name == "Recurrence" ? 2 : network.x[0];
  Tensor label(DType::kInt64, Shape{rows});
  for (int64_t i = 0; i < rows; ++i) label.data<int64_t>()[i] = (i + step) % 3;
  return {{"x", x}, {"label", label}};
}

class TrainingOnCuda : public testing::TestWithParam<Network> {};

TEST_P(TrainingOnCuda, FollowsTheCpuWithoutAFallback) {
  ExpectSameTraining(Trainable(GetParam()), kSteps,
                     [](int step) { return Batch(GetParam(), step); });
}

// Threads, warps, blocks and streams in other orders, every access checked in the first of them:
// the sums have their order, so that the bits are the same.
TEST_P(TrainingOnCuda, IsTheSameUnderShuffledSchedules) {
  const auto seed = EmulatorFunction<decltype(OnwardEmuSeed)>("OnwardEmuSeed");
  const auto strict = EmulatorFunction<decltype(OnwardEmuStrict)>("OnwardEmuStrict");
  const auto cuda = EmulatedEnvironment();
  const auto train = [&] {
    auto model = Open(Trainable(GetParam()), *cuda);
    for (int step = 0; step < 2; ++step) {
      const auto done = model->Step(Batch(GetParam(), step));
      EXPECT_TRUE(done.ok()) << done.status();
    }
    return model;
  };
  const auto expected = train();
  for (uint64_t shuffle = 1; shuffle <= 5; ++shuffle) {
    seed(shuffle);
    strict(shuffle == 1 ? 2 : 0);
    const auto found = train();
    EXPECT_TRUE(
        SameVariables(std::as_const(*expected).variables(), std::as_const(*found).variables()))
        << "seed " << shuffle;
  }
  seed(0);
  strict(0);
}

INSTANTIATE_TEST_SUITE_P(Networks, TrainingOnCuda, testing::ValuesIn(Networks()),
                         [](const auto& info) { return info.param.name; });

}  // namespace onward::training_test
