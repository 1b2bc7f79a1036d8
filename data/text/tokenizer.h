// SPDX-License-Identifier: Apache-2.0
// From text to numbers: bytes, characters, or pieces of words as BERT has them.
#ifndef ONWARD_DATA_TEXT_TOKENIZER_H_
#define ONWARD_DATA_TEXT_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/preparation.h"
#include "data/stored_bytes.h"

namespace onward {

// Immutable; may be used from several threads.
class Tokenizer {
 public:
  // An error where word pieces lack a token for unknown words.
  static absl::StatusOr<std::shared_ptr<const Tokenizer>> Create(const TextPreparation& text);

  int64_t size() const { return size_; }
  // The number of a token such as [CLS]; -1 where there is none.
  int64_t Find(const std::string& token) const;

  // Takes the first byte, character or word from the front of `text` and appends its tokens, if
  // any. How many bytes it took; 0 where the text ends within it and `last` is false, and at
  // the end. What is unknown is an error that names it.
  absl::StatusOr<size_t> Take(absl::string_view text, bool last,
                              std::vector<int64_t>* tokens) const;
  // All of a text.
  absl::StatusOr<std::vector<int64_t>> All(absl::string_view text) const;

 private:
  explicit Tokenizer(const TextPreparation& text);
  absl::StatusOr<size_t> TakeCharacter(absl::string_view text, bool last,
                                       std::vector<int64_t>* tokens) const;
  size_t TakeWord(absl::string_view text, bool last, std::vector<int64_t>* tokens) const;
  void AddPieces(const std::string& word, std::vector<int64_t>* tokens) const;

  TokenKind kind_;
  bool lower_case_;
  int64_t size_ = 0, unknown_ = -1;
  int64_t ascii_[128];  // numbers of characters
  absl::flat_hash_map<std::string, int64_t> numbers_;
};

// The characters of a text, each once, in the order of their code points; an error where it is
// no UTF-8 or has too many.
absl::StatusOr<std::vector<std::string>> CharactersOf(const StoredBytes& file);

// A vocabulary file: one token per line.
absl::StatusOr<std::vector<std::string>> ReadVocabulary(const std::string& path);
// Whether its words are all in lower case, marks such as [CLS] apart.
bool IsLowerCase(const std::vector<std::string>& vocabulary);

}  // namespace onward

#endif  // ONWARD_DATA_TEXT_TOKENIZER_H_
