// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "tests/ops/cases.h"

namespace onward {
namespace {

using Strings = std::vector<std::string>;
using Floats = std::vector<float>;

constexpr int64_t kSteps = 3, kBatch = 2, kInputs = 2, kHidden = 3;

// X, W, R, B, no sequence_lens, initial_h.
std::vector<Arg> Inputs(int64_t gates, int64_t directions = 1, bool batch_major = false) {
  const int64_t rows = gates * kHidden;
  Shape x = {kSteps, kBatch, kInputs}, state = {directions, kBatch, kHidden};
  if (batch_major) {
    std::swap(x[0], x[1]);
    std::swap(state[0], state[1]);
  }
  return {Real(x, -1, 1),
          Real({directions, rows, kInputs}, -1, 1),
          Real({directions, rows, kHidden}, -1, 1),
          Real({directions, 2 * rows}, -1, 1),
          Omitted(),
          Real(state, -1, 1)};
}

std::vector<Arg> LstmInputs(int64_t directions = 1, bool batch_major = false) {
  std::vector<Arg> args = Inputs(4, directions, batch_major);
  args.push_back(args[5]);  // initial_c
  return args;
}

Arg Lengths(std::vector<int64_t> values) { return Fed({kBatch}, std::move(values), DType::kInt32); }

std::vector<Arg> With(std::vector<Arg> args, size_t i, Arg arg) {
  if (args.size() <= i) args.resize(i + 1, Omitted());
  args[i] = std::move(arg);
  return args;
}

Attributes Options(Attributes attributes) {
  attributes["hidden_size"] = kHidden;
  return attributes;
}

std::vector<Arg> First(std::vector<Arg> args, size_t count) {
  args.resize(count);
  return args;
}

std::vector<OpCase> PlainRnnCases() {
  const std::vector<Arg> in = Inputs(1), both = Inputs(1, 2);
  return {
      Case("RNN", in, Options({})).Outputs(2, {0, 1}),
      Case("RNN_least", First(in, 3), Options({})),
      Case("RNN_last_state", in, Options({})).Outputs(2, {1}),
      Case("RNN_reverse", in, Options({{"direction", "reverse"}})).Outputs(2, {0, 1}),
      Case("RNN_bidirectional", both,
           Options({{"direction", "bidirectional"}, {"activations", Strings{"tanh", "Softsign"}}}))
          .Outputs(2, {0, 1}),
      Case("RNN_lengths", With(both, 4, Lengths({3, 1})), Options({{"direction", "bidirectional"}}))
          .Outputs(2, {0, 1}),
      Case("RNN_layout", Inputs(1, 2, true),
           Options({{"direction", "bidirectional"}, {"layout", 1}}))
          .Outputs(2, {0, 1})
          .Unknown({0, 5}),
      Case("RNN_clip", in, Options({{"clip", 0.8}})).Outputs(2, {0, 1}),
      Case("RNN_relu", in, Options({{"activations", Strings{"Relu"}}})),
      Case("RNN_affine", in,
           Options({{"activations", Strings{"Affine"}},
                    {"activation_alpha", Floats{0.7f}},
                    {"activation_beta", Floats{0.2f}}})),
      Case("RNN_scaled_tanh", in,
           Options({{"activations", Strings{"ScaledTanh"}},
                    {"activation_alpha", Floats{0.7f}},
                    {"activation_beta", Floats{1.2f}}})),
      Case("RNN_leaky_relu", in, Options({{"activations", Strings{"LeakyRelu"}}})),
      Case("RNN_thresholded_relu", in,
           Options(
               {{"activations", Strings{"ThresholdedRelu"}}, {"activation_alpha", Floats{0.3f}}})),
      Case("RNN_hard_sigmoid", in, Options({{"activations", Strings{"HardSigmoid"}}})),
      Case("RNN_elu", in,
           Options({{"activations", Strings{"Elu"}}, {"activation_alpha", Floats{0.6f}}})),
      Case("RNN_softplus", in, Options({{"activations", Strings{"Softplus"}}})),
  };
}

std::vector<OpCase> GruCases() {
  const std::vector<Arg> in = Inputs(3), both = Inputs(3, 2);
  return {
      Case("GRU", in, Options({})).Outputs(2, {0, 1}),
      Case("GRU_least", First(in, 3), Options({})),
      Case("GRU_last_state", in, Options({})).Outputs(2, {1}),
      Case("GRU_linear", in, Options({{"linear_before_reset", 1}})).Outputs(2, {0, 1}),
      Case("GRU_lengths", With(both, 4, Lengths({1, 3})), Options({{"direction", "bidirectional"}}))
          .Outputs(2, {0, 1}),
      Case("GRU_linear_lengths", With(in, 4, Lengths({3, 2})),
           Options({{"direction", "reverse"}, {"linear_before_reset", 1}}))
          .Outputs(2, {0, 1}),
      Case("GRU_layout", Inputs(3, 2, true),
           Options({{"direction", "bidirectional"}, {"layout", 1}}))
          .Outputs(2, {0, 1})
          .Unknown({0, 5}),
      Case("GRU_clip_activations", in,
           Options({{"clip", 0.9}, {"activations", Strings{"Softplus", "Softsign"}}})),
  };
}

std::vector<OpCase> LstmCases() {
  const std::vector<Arg> in = LstmInputs(), both = LstmInputs(2);
  const Arg peepholes = Real({1, 3 * kHidden}, -1, 1);
  const Arg both_peepholes = Real({2, 3 * kHidden}, -1, 1);
  return {
      Case("LSTM", in, Options({})).Outputs(3, {0, 1, 2}),
      Case("LSTM_least", First(in, 3), Options({})),
      Case("LSTM_last_states", in, Options({})).Outputs(3, {1, 2}),
      Case("LSTM_last_cell", in, Options({})).Outputs(3, {2}),
      Case("LSTM_reverse", in, Options({{"direction", "reverse"}})).Outputs(3, {0, 1, 2}),
      Case("LSTM_bidirectional", both, Options({{"direction", "bidirectional"}}))
          .Outputs(3, {0, 1, 2}),
      Case("LSTM_lengths", With(both, 4, Lengths({1, 3})),
           Options({{"direction", "bidirectional"}}))
          .Outputs(3, {0, 1, 2}),
      Case("LSTM_lengths_peepholes", With(With(both, 4, Lengths({2, 3})), 7, both_peepholes),
           Options({{"direction", "bidirectional"}}))
          .Outputs(3, {0, 1, 2}),
      Case("LSTM_peepholes", With(in, 7, peepholes), Options({})).Outputs(3, {0, 1, 2}),
      Case("LSTM_input_forget", in, Options({{"input_forget", 1}})).Outputs(3, {0, 1, 2}),
      Case("LSTM_input_forget_peepholes", With(in, 7, peepholes), Options({{"input_forget", 1}}))
          .Outputs(3, {0, 1, 2}),
      Case("LSTM_layout", With(LstmInputs(2, true), 7, both_peepholes),
           Options({{"direction", "bidirectional"}, {"layout", 1}}))
          .Outputs(3, {0, 1, 2})
          .Unknown({0, 5, 6}),
      Case("LSTM_clip", in, Options({{"clip", 0.9}})).Outputs(3, {0, 1, 2}),
      Case("LSTM_activations", in,
           Options({{"activations", Strings{"HardSigmoid", "ScaledTanh", "Softsign"}},
                    {"activation_alpha", Floats{0.3f, 0.8f}},
                    {"activation_beta", Floats{0.4f, 1.1f}}}))
          .Outputs(3, {0, 1, 2}),
  };
}

}  // namespace

std::vector<OpCase> RnnCases() {
  std::vector<OpCase> cases = PlainRnnCases();
  for (OpCase& c : GruCases()) cases.push_back(std::move(c));
  for (OpCase& c : LstmCases()) cases.push_back(std::move(c));
  // Again for any number of steps.
  for (OpCase& c : cases) {
    if (c.unknown.empty()) c.unknown = {0};
  }
  return cases;
}

}  // namespace onward
