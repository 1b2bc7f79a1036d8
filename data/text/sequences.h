// SPDX-License-Identifier: Apache-2.0
// Texts of different length as batches of tokens, padded to the longest (data/padded.h).
#ifndef ONWARD_DATA_TEXT_SEQUENCES_H_
#define ONWARD_DATA_TEXT_SEQUENCES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"

namespace onward {

inline constexpr char kPadToken[] = "[PAD]";

struct Sequences {
  std::string source;
  std::shared_ptr<const Preparation> preparation;
  TrainingHints hints;
  int64_t count = 0;
  int64_t pad = 0;  // the token that fills up
  // Tokens of an example, no more than the preparation's length (NextTokens: one more); called
  // from several threads.
  std::function<absl::StatusOr<std::vector<int64_t>>(int64_t example)> tokens;
  std::function<std::string(int64_t example)> place;
};

// x is all tokens but the last, y all but the first and kNoToken where there is none.
absl::StatusOr<std::unique_ptr<Dataset>> NextTokens(Sequences sequences, int64_t vocabulary);

// What the texts are labelled with; without labels where the tensor is undefined.
struct TextLabels {
  Tensor labels;  // one for each example
  int64_t classes = 0;
  std::vector<std::string> class_names;
  Standard target;
};
// input_ids, and for inputs of these names attention_mask (1 where there is a token) and
// token_type_ids (0); and the label.
absl::StatusOr<std::unique_ptr<Dataset>> LabelledTexts(Sequences sequences, TextLabels labels);

}  // namespace onward

#endif  // ONWARD_DATA_TEXT_SEQUENCES_H_
