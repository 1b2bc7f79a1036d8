// SPDX-License-Identifier: Apache-2.0
#include "data/text/token_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace onward {
namespace {

constexpr size_t kMostWordBytes = size_t{1} << 26;  // in bytes

}  // namespace

TokenReader::TokenReader(const StoredBytes& file, const Tokenizer& tokenizer, TokenPlace begin,
                         uint64_t piece)
    : file_(file),
      tokenizer_(tokenizer),
      piece_(piece),
      begin_(begin.byte),
      skip_(begin.piece),
      unit_(begin.byte) {}

absl::StatusOr<bool> TokenReader::Refill() {
  while (taken_ == tokens_.size()) {
    tokens_.clear();
    taken_ = 0;
    unit_ = begin_ + used_;
    const bool last = begin_ + bytes_.size() >= file_.size();
    auto used = tokenizer_.Take(absl::string_view(bytes_).substr(used_), last, &tokens_);
    if (!used.ok()) {
      return Annotate(used.status(), absl::StrCat(file_.name(), ": at byte ", unit_));
    }
    used_ += *used;
    if (*used > 0) {
      // The first unit may have begun before the token that is wanted.
      taken_ = std::min<size_t>(skip_, tokens_.size());
      skip_ = 0;
      continue;
    }
    if (last) return false;
    bytes_.erase(0, used_);
    begin_ += used_;
    used_ = 0;
    if (bytes_.size() > kMostWordBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(file_.name(), ": at byte ", begin_, ": a word without end; is it text?"));
    }
    const size_t before = bytes_.size();
    const uint64_t at = begin_ + before;
    bytes_.resize(before + static_cast<size_t>(
                               std::min(std::max<uint64_t>(piece_, before), file_.size() - at)));
    ONWARD_RETURN_IF_ERROR(file_.Read(at, bytes_.size() - before, bytes_.data() + before));
  }
  return true;
}

absl::StatusOr<bool> TokenReader::Next(int64_t* token) {
  ONWARD_ASSIGN_OR_RETURN(const bool more, Refill());
  if (more) *token = tokens_[taken_++];
  return more;
}

absl::StatusOr<TokenPlace> TokenReader::place() {
  ONWARD_RETURN_IF_ERROR(Refill().status());
  return TokenPlace{unit_, static_cast<uint32_t>(taken_)};
}

}  // namespace onward
