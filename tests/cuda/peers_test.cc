// SPDX-License-Identifier: Apache-2.0
// The seven benchmark models on the emulated device: a whole training step without a fallback,
// and the CPU's losses. Here their small twins of the same operators (tests/golden/make_peers.py);
// the models themselves where ONWARD_PEERS names the folder with them (docs/cuda.md).
#include "tests/cuda/peers.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <ostream>
#include <string>

#include "tests/cuda/beside_cpu.h"

namespace onward::peers_test {

constexpr int kSteps = 20;

struct Peer {
  const char* name;
  const char* optimizer;
  const char* of_the_model = optimizer;  // where its twin can do with a larger rate
};
void PrintTo(const Peer& peer, std::ostream* out) { *out << peer.name; }

// Batch statistics make rounding errors grow with the rate, and a sum that rounding moves across
// the kink of Relu moves all gradients before it. On the CPU alone, two algorithms for convolutions
// come 1.6e-3 apart in 19 steps of the whole ResNet18 at 1e-3 (1.3e-5 in 20 at 1e-4), and at 1e-4 a
// last bit of the input moves the losses of the whole MobileNetV2 by 1e-2.
const Peer kPeers[] = {
    {"mlp", "adamw:lr=1e-3"},
    {"lenet", "adamw:lr=1e-3"},
    {"resnet18_32", "sgd:lr=1e-3", "sgd:lr=1e-4"},
    {"resnet18_224", "sgd:lr=1e-3", "sgd:lr=1e-4"},
    {"mobilenetv2_96", "sgd:lr=1e-3", "sgd:lr=1e-6"},
    {"tinybert", "adamw:lr=1e-3"},
    {"lstm", "adamw:lr=1e-3"},
};

class PeersOnCuda : public testing::TestWithParam<Peer> {};

TEST_P(PeersOnCuda, SmallTwinFollowsTheCpu) {
  const Model model = SmallPeer(GetParam().name, GetParam().optimizer);
  ExpectSameTraining(model, kSteps, PeerBatches(model), {"loss"});
}

TEST_P(PeersOnCuda, FollowsTheCpu) {
  const char* folder = std::getenv("ONWARD_PEERS");
  const std::string file =
      std::string(folder == nullptr ? "" : folder) + "/" + GetParam().name + ".onnx";
  if (!std::filesystem::exists(file)) {
    GTEST_SKIP() << "ONWARD_PEERS names no folder with " << GetParam().name << ".onnx";
  }
  const char* steps = std::getenv("ONWARD_PEER_STEPS");
  const Model model = TrainablePeer(file, GetParam().of_the_model);
  const PeerBatches batches(model);
  // It takes long.
  const auto told = [&](int step) {
    std::cout << GetParam().name << ": step " << step << std::endl;
    return batches(step);
  };
  ExpectSameTraining(model, steps == nullptr ? kSteps : std::atoi(steps), told, {"loss"});
}

INSTANTIATE_TEST_SUITE_P(Models, PeersOnCuda, testing::ValuesIn(kPeers),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace onward::peers_test
