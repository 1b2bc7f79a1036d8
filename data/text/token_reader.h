// SPDX-License-Identifier: Apache-2.0
// The tokens of a text file from any of them on, read in pieces.
#ifndef ONWARD_DATA_TEXT_TOKEN_READER_H_
#define ONWARD_DATA_TEXT_TOKEN_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/stored_bytes.h"
#include "data/text/tokenizer.h"

namespace onward {

// Where a token stands: the byte at which its character or word begins (blanks before it may
// count to it), and which of its pieces it is.
struct TokenPlace {
  uint64_t byte = 0;
  uint32_t piece = 0;
};

class TokenReader {
 public:
  // Both have to outlive it. `piece` is how many bytes are read at a time.
  TokenReader(const StoredBytes& file, const Tokenizer& tokenizer, TokenPlace begin,
              uint64_t piece);

  // False at the end.
  absl::StatusOr<bool> Next(int64_t* token);
  // Of the token that Next gives next, or the end.
  absl::StatusOr<TokenPlace> place();

 private:
  // Makes sure that a token is there; false at the end.
  absl::StatusOr<bool> Refill();

  const StoredBytes& file_;
  const Tokenizer& tokenizer_;
  uint64_t piece_, begin_;  // of bytes_ in the file
  uint32_t skip_;
  std::string bytes_;
  size_t used_ = 0;
  uint64_t unit_ = 0;  // where the tokens at hand begin
  std::vector<int64_t> tokens_;
  size_t taken_ = 0;
};

}  // namespace onward

#endif  // ONWARD_DATA_TEXT_TOKEN_READER_H_
