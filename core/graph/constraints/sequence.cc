// SPDX-License-Identifier: Apache-2.0
// Constraints of recurrent networks, attention, control flow and sequences.
#include "core/graph/constraints/rules.h"

namespace onward::constraints {
namespace {

// Gates of a cell, and activation functions of each direction.
struct Cell {
  int gates, functions;
};

// W [D, gates * H, I], R [D, gates * H, H], B [D, 2 * gates * H], P [D, 3 * H].
Rule Recurrent(Cell cell) {
  return [=](Subject& s) {
    OneOf("direction", {"forward", "reverse", "bidirectional"})(s);
    OneOfNumbers("layout", {0, 1})(s);
    InRange("hidden_size", 1, int64_t{1} << 24)(s);
    const int64_t directions = s.node.String("direction", "forward") == "bidirectional" ? 2 : 1;
    const int64_t given = s.node.Int("hidden_size", s.Dim(2, 2));
    const int64_t hidden = given >= 1 && given <= (int64_t{1} << 24) ? given : -1;
    const int64_t rows = hidden < 0 ? -1 : cell.gates * hidden;
    const bool batch_first = s.node.Int("layout", 0) == 1;
    const int64_t batch = s.Dim(0, batch_first ? 0 : 1), features = s.Dim(0, 2);
    ExpectShape(s, 0, "the sequence", {-1, -1, -1});
    ExpectShape(s, 1, "the input weights", {directions, rows, features});
    ExpectShape(s, 2, "the recurrent weights", {directions, rows, hidden});
    ExpectShape(s, 3, "the bias", {directions, rows < 0 ? -1 : 2 * rows});
    ExpectShape(s, 4, "sequence_lens", {batch});
    for (int input : {5, 6}) {
      if (batch_first) {
        ExpectShape(s, input, "a start state", {batch, directions, hidden});
      } else {
        ExpectShape(s, input, "a start state", {directions, batch, hidden});
      }
    }
    ExpectShape(s, 7, "the peepholes", {directions, hidden < 0 ? -1 : 3 * hidden});
    const size_t wanted = static_cast<size_t>(cell.functions * directions);
    if (const size_t n = s.node.Strings("activations").size();
        s.node.Has("activations") && n < wanted) {
      s.Fail("activations has ", n, " entries, expected ", wanted);
    }
  };
}

// Queries, keys and values of rank 4, or of rank 3 with the number of heads.
void CheckAttention(Subject& s) {
  for (const char* name : {"q_num_heads", "kv_num_heads"}) InRange(name, 1)(s);
  const int rank = s.Rank(0);
  if (rank >= 0 && rank != 3 && rank != 4) s.Fail("input 0 has rank ", rank, ", expected 3 or 4");
  for (int input : {1, 2}) SameRank(0, input)(s);
  if (rank != 3) return;
  for (const auto& [name, input] :
       {std::pair("q_num_heads", 0), std::pair("kv_num_heads", 1), std::pair("kv_num_heads", 2)}) {
    const auto heads = s.Number(name);
    if (!heads.has_value()) {
      s.Fail(name, " is needed where inputs have rank 3");
    } else if (const int64_t width = s.Dim(input, 2);
               *heads >= 1 && width >= 0 && width % *heads != 0) {
      s.Fail("input ", input, " is ", width, " wide, which does not divide by ", name, " = ",
             *heads);
    }
  }
  const int64_t q = s.node.Int("q_num_heads", 1), kv = s.node.Int("kv_num_heads", 1);
  if (q >= 1 && kv >= 1 && q % kv != 0) {
    s.Fail("q_num_heads = ", q, " does not divide by kv_num_heads = ", kv);
  }
}

void CheckRotary(Subject& s) {
  const int rank = s.Rank(0);
  if (rank >= 0 && rank != 3 && rank != 4) s.Fail("input 0 has rank ", rank, ", expected 3 or 4");
  const auto heads = s.Number("num_heads");
  if (rank == 3 && (!heads.has_value() || *heads < 1)) {
    s.Fail("num_heads is needed where the input has rank 3");
  }
  if (const int64_t width = s.Dim(0, 2);
      rank == 3 && heads.value_or(0) >= 1 && width >= 0 && width % *heads != 0) {
    s.Fail("the input is ", width, " wide, which does not divide by num_heads = ", *heads);
  }
}

void CheckIf(Subject& s) {
  for (const char* branch : {"then_branch", "else_branch"}) {
    const Graph* body = s.node.Subgraph(branch);
    if (body == nullptr) continue;
    if (!body->inputs.empty()) s.Fail(branch, " has inputs, which a branch cannot have");
    if (body->outputs.size() != s.node.outputs.size()) {
      s.Fail(branch, " gives ", body->outputs.size(), " values, but the node has ",
             s.node.outputs.size(), " outputs");
    }
  }
}

// The body takes the iteration, the condition and what is carried; it gives the
// condition, what is carried and what is collected.
void CheckLoop(Subject& s) {
  const Graph* body = s.node.Subgraph("body");
  if (body == nullptr || s.node.inputs.size() < 2) return;
  const size_t carried = s.node.inputs.size() - 2;
  if (body->inputs.size() != carried + 2) {
    s.Fail("the body has ", body->inputs.size(), " inputs, expected ", carried + 2);
  }
  if (body->outputs.size() != s.node.outputs.size() + 1) {
    s.Fail("the body gives ", body->outputs.size(), " values, expected ",
           s.node.outputs.size() + 1);
  }
  if (s.node.outputs.size() < carried) {
    s.Fail("the node has ", s.node.outputs.size(), " outputs, but carries ", carried, " values");
  }
}

void CheckScan(Subject& s) {
  const Graph* body = s.node.Subgraph("body");
  const int64_t lengths = s.version < 9 ? 1 : 0;  // the input sequence_lens
  const int64_t inputs = static_cast<int64_t>(s.node.inputs.size()) - lengths;
  const int64_t outputs = static_cast<int64_t>(s.node.outputs.size());
  const int64_t scanned = s.node.Int("num_scan_inputs", 1);
  if (scanned < 1 || scanned > inputs) {
    return s.Fail("num_scan_inputs is ", scanned, ", expected 1 to ", inputs);
  }
  const int64_t collected = outputs - (inputs - scanned);
  if (collected < 0) {
    return s.Fail("the node has ", outputs, " outputs, but carries ", inputs - scanned, " values");
  }
  if (body != nullptr && static_cast<int64_t>(body->inputs.size()) != inputs) {
    s.Fail("the body has ", body->inputs.size(), " inputs, expected ", inputs);
  }
  if (body != nullptr && static_cast<int64_t>(body->outputs.size()) != outputs) {
    s.Fail("the body gives ", body->outputs.size(), " values, expected ", outputs);
  }
  for (const auto& [name, count] :
       {std::pair("scan_input_axes", scanned), std::pair("scan_input_directions", scanned),
        std::pair("directions", scanned), std::pair("scan_output_axes", collected),
        std::pair("scan_output_directions", collected)}) {
    if (const size_t n = s.node.Ints(name).size();
        s.node.Has(name) && static_cast<int64_t>(n) != count) {
      s.Fail(name, " has ", n, " values, expected ", count);
    }
  }
  for (const char* name : {"scan_input_directions", "scan_output_directions", "directions"}) {
    EachInRange(name, 0, 1)(s);
  }
  for (const char* name : {"scan_input_axes", "scan_output_axes"}) {
    EachInRange(name, -kMaxRank, kMaxRank - 1)(s);
  }
  const std::vector<int64_t> axes = s.node.Ints("scan_input_axes");
  for (size_t i = 0; i < axes.size() && static_cast<int64_t>(axes.size()) == scanned; ++i) {
    const int input = static_cast<int>(lengths + inputs - scanned + static_cast<int64_t>(i));
    const int rank = s.Rank(input);
    if (rank >= 0 && (axes[i] < -rank || axes[i] >= rank)) {
      s.Fail("scan_input_axes holds ", axes[i], " for input ", input, " of rank ", rank);
    }
  }
}

}  // namespace

void AddSequenceRows(Table& table) {
  AddRows(table, {"RNN"}, {Recurrent({1, 1})});
  AddRows(table, {"GRU"}, {Recurrent({3, 2})});
  AddRows(table, {"LSTM"}, {Recurrent({4, 3})});
  AddRows(table, {"Attention"},
          {CheckAttention, OneOfNumbers("qk_matmul_output_mode", {0, 1, 2, 3}),
           FloatingType("softmax_precision"), InRange("left_window_size", -1),
           InRange("right_window_size", -1)});
  AddRows(table, {"ai.onnx.preview.FlexAttention"},
          {RankIs(0, 4), RankIs(1, 4), RankIs(2, 4), FloatingType("softmax_precision")});
  AddRows(table, {"LinearAttention"},
          {CheckAttention, InRange("chunk_size", 1),
           OneOf("update_rule", {"linear", "gated", "delta", "gated_delta"})});
  AddRows(table, {"RotaryEmbedding"},
          {CheckRotary, InRange("num_heads", 0), InRange("rotary_embedding_dim", 0)});
  AddRows(table, {"If"}, {CheckIf});
  AddRows(table, {"Loop"}, {CheckLoop});
  AddRows(table, {"Scan"}, {CheckScan});
  AddRows(table, {"SequenceMap"}, {[](Subject& s) {
            const Graph* body = s.node.Subgraph("body");
            if (body == nullptr) return;
            if (body->inputs.size() != s.node.inputs.size() ||
                body->outputs.size() != s.node.outputs.size()) {
              s.Fail("the body has ", body->inputs.size(), " inputs and ", body->outputs.size(),
                     " outputs, the node ", s.node.inputs.size(), " and ", s.node.outputs.size());
            }
          }});
  AddRows(table, {"SequenceEmpty"}, {ElementType("dtype")});
  AddRows(table, {"ConcatFromSequence"},
          {OneOfNumbers("new_axis", {0, 1}), InRange("axis", -kMaxRank - 1, kMaxRank)});
  AddRows(table, {"SequenceAt"}, {Scalar(1)});
  AddRows(table, {"SequenceErase"}, {Scalar(1)});
  AddRows(table, {"SequenceInsert"}, {Scalar(2)});
  AddRows(table,
          {"SequenceConstruct", "SequenceLength", "Optional", "OptionalGetElement",
           "OptionalHasElement"},
          {});
}

}  // namespace onward::constraints
