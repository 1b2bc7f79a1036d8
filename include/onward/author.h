// SPDX-License-Identifier: Apache-2.0
// Turning an inference model into one that carries its training.
//
// Threads: MakeTrainable may run on several threads at once.
#ifndef ONWARD_AUTHOR_H_
#define ONWARD_AUTHOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "onward/environment.h"
#include "onward/model.h"
#include "onward/status.h"

namespace onward::api {

// The same choices as the flags of `onward make-trainable`, in the same words.
struct AuthorOptions {
  std::string loss = "cross_entropy";  // with options: "cross_entropy:ignore_index=-100"
  // In the place of `loss`: a weighted sum, "cross_entropy@logits" and "0.1*l1@mask", each at
  // its outputs, or ONNX files: "my_loss.onnx".
  std::vector<std::string> losses;
  // Low-rank adapters beside the weights that the patterns mean: "attention.*:rank=8,alpha=16".
  // They learn, and a new head, and what `train` names; nothing else does (onward/adapters.h).
  std::vector<std::string> lora;
  std::string optimizer = "adamw";       // "adamw:lr=1e-3,weight_decay=0.01", "my_optimizer.onnx"
  std::string schedule = "constant";     // "cosine:warmup=100,total=1000"
  std::vector<std::string> train;        // patterns ('*', '?') of names; none: all weights
  std::vector<std::string> freeze;       // patterns of names that stay as they are
  std::vector<std::string> groups;       // "head.*:lr=10x,weight_decay=0"; the first that matches
  std::vector<std::string> no_decay;     // patterns without weight decay; "norm": normalisations
  bool freeze_statistics = false;        // of BatchNormalization: used, not learned
  int64_t accumulate = 1;                // calls of Step that one update is made of
  double ema = 0;                        // decay of averages of the weights; 0: none are kept
  std::string precision;                 // "bfloat16", "float16": of products; "": the model's
  double clip_norm = 0;                  // bound on the gradients' global norm; 0: none
  double clip_value = 0;                 // bound on each element of a gradient; 0: none
  double clip_adaptive = 0;              // bound relative to the weights of each unit; 0: none
  int64_t head_classes = 0;              // classes of a new last layer; 0: keep the model's
  bool expand_gradient = false;          // plain operators instead of one Gradient node
  std::string label = "label";           // the name of the new label input
  std::vector<std::string> more_labels;  // those of further losses; else label_OUTPUT
  std::string output;                    // what the loss compares with labels; "": the first
  bool free_batch = false;               // make a fixed batch size variable
  std::string init = "default";          // what Initialize and a new head draw: "kaiming_normal"
  uint64_t seed = 0;                     // of new weights
};

struct AuthorResult {
  Model model;                       // to be written, or opened by TrainingSession
  std::vector<std::string> trained;  // initializers that learn
  std::vector<std::string> notes;    // what was changed or chosen, in sentences
};

// Writes loss, gradients, optimizer and its state into a copy of the model. The model's
// opset is kept, but raised to 18 where it is older.
Result<AuthorResult> MakeTrainable(const Model& model, const AuthorOptions& options = {},
                                   const Environment& environment = {});

}  // namespace onward::api

#endif  // ONWARD_AUTHOR_H_
