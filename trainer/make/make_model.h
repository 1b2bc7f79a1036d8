// SPDX-License-Identifier: Apache-2.0
// New models for data: with as many inputs as the data has numbers, as many outputs as it has
// classes, and weights drawn from a seed. They are there to be trained.
#ifndef ONWARD_TRAINER_MAKE_MAKE_MODEL_H_
#define ONWARD_TRAINER_MAKE_MAKE_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "core/onnx_io/model.h"
#include "data/dataset.h"
#include "environment/environment.h"

namespace onward {

// A multi-layer perceptron: Relu, with dropout between layers. Inputs far from the others are
// drawn in; columns that are codes get embeddings.
struct MlpSpec {
  std::vector<int64_t> hidden = {128, 128};  // widths of the layers in between
};

// A transformer that predicts the next token: layers of causal attention and Gelu, normalised
// before each, with the embedding as its output layer.
struct GptSpec {
  int64_t layers = 4, width = 128;
};

using MadeSpec = std::variant<MlpSpec, GptSpec>;

// "mlp", "mlp:64,64", "gpt", "gpt:4x128"; nothing where the word does not name such a model, an
// error where it does so wrongly.
absl::StatusOr<std::optional<MadeSpec>> ParseMadeModel(const std::string& word);
// For messages and help: "mlp, mlp:WIDTH,WIDTH, gpt, gpt:LAYERSxWIDTH".
std::string MadeModels();

absl::StatusOr<Model> MakeModel(const MadeSpec& spec, const Dataset& data, uint64_t seed,
                                const Environment& environment);
absl::StatusOr<Model> MakeMlp(const MlpSpec& spec, const Dataset& data, uint64_t seed,
                              const Environment& environment);
absl::StatusOr<Model> MakeGpt(const GptSpec& spec, const Dataset& data, uint64_t seed,
                              const Environment& environment);

// How such a model is trained where nothing else is asked for.
struct MadeTraining {
  std::string optimizer, schedule;
  int64_t batch = 64, epochs = 1;
};
// What is asked for of it.
struct AskedTraining {
  std::optional<int64_t> batch, epochs, steps;
};
MadeTraining TrainingFor(const MadeSpec& spec, const Dataset& data, const AskedTraining& asked);

}  // namespace onward

#endif  // ONWARD_TRAINER_MAKE_MAKE_MODEL_H_
