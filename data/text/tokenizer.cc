// SPDX-License-Identifier: Apache-2.0
#include "data/text/tokenizer.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"
#include "data/file_bytes.h"
#include "data/text/unicode.h"

namespace onward {
namespace {

constexpr char kUnknown[] = "[UNK]";
constexpr size_t kLongestWord = 100;  // in characters; longer ones are unknown
constexpr size_t kMostCharacters = 20000;
constexpr uint64_t kVocabularyPiece = uint64_t{1} << 20;
constexpr size_t kLongestCharacter = 4;  // in bytes

absl::Status NoUtf8(absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrFormat("byte 0x%02x begins no character of UTF-8; tokens=bytes takes any text",
                      static_cast<unsigned char>(text[0])));
}

// Whether a character that is cut off at the end of `text` may be whole in what follows.
bool MayGoOn(absl::string_view text, bool last) { return !last && text.size() < kLongestCharacter; }

}  // namespace

Tokenizer::Tokenizer(const TextPreparation& text)
    : kind_(text.tokens), lower_case_(text.lower_case) {
  std::fill(std::begin(ascii_), std::end(ascii_), -1);
  size_ = kind_ == TokenKind::kBytes ? 256 : static_cast<int64_t>(text.vocabulary.size());
  for (size_t i = 0; i < text.vocabulary.size(); ++i) {
    const std::string& token = text.vocabulary[i];
    numbers_.emplace(token, static_cast<int64_t>(i));
    if (token.size() == 1 && static_cast<unsigned char>(token[0]) < 0x80) {
      ascii_[static_cast<unsigned char>(token[0])] = static_cast<int64_t>(i);
    }
  }
  unknown_ = Find(kUnknown);
}

absl::StatusOr<std::shared_ptr<const Tokenizer>> Tokenizer::Create(const TextPreparation& text) {
  std::shared_ptr<const Tokenizer> tokenizer(new Tokenizer(text));
  if (text.tokens == TokenKind::kWordPieces && tokenizer->unknown_ < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the vocabulary has no ", kUnknown, " for unknown words"));
  }
  return tokenizer;
}

int64_t Tokenizer::Find(const std::string& token) const {
  const auto it = numbers_.find(token);
  return it == numbers_.end() ? -1 : it->second;
}

absl::StatusOr<size_t> Tokenizer::Take(absl::string_view text, bool last,
                                       std::vector<int64_t>* tokens) const {
  if (text.empty()) return 0;
  switch (kind_) {
    case TokenKind::kBytes: tokens->push_back(static_cast<unsigned char>(text[0])); return 1;
    case TokenKind::kCharacters: return TakeCharacter(text, last, tokens);
    case TokenKind::kWordPieces: break;
  }
  return TakeWord(text, last, tokens);
}

absl::StatusOr<std::vector<int64_t>> Tokenizer::All(absl::string_view text) const {
  std::vector<int64_t> tokens;
  while (!text.empty()) {
    ONWARD_ASSIGN_OR_RETURN(const size_t used, Take(text, /*last=*/true, &tokens));
    if (used == 0) break;
    text.remove_prefix(used);
  }
  return tokens;
}

absl::StatusOr<size_t> Tokenizer::TakeCharacter(absl::string_view text, bool last,
                                                std::vector<int64_t>* tokens) const {
  const unsigned char first = static_cast<unsigned char>(text[0]);
  size_t bytes = 1;
  int64_t number = first < 0x80 ? ascii_[first] : -1;
  if (first >= 0x80) {
    bytes = FirstCharacter(text).bytes;
    if (bytes == 0 && MayGoOn(text, last)) return 0;
    if (bytes == 0) return NoUtf8(text);
    const auto it = numbers_.find(text.substr(0, bytes));
    number = it == numbers_.end() ? -1 : it->second;
  }
  if (number < 0) {
    return absl::InvalidArgumentError(absl::StrCat("the character '", text.substr(0, bytes),
                                                   "' is unknown to the model, which knows ", size_,
                                                   " others"));
  }
  tokens->push_back(number);
  return bytes;
}

// Blanks before the word count to it. A mark or an ideograph is a word.
size_t Tokenizer::TakeWord(absl::string_view text, bool last, std::vector<int64_t>* tokens) const {
  std::string word;
  size_t at = 0, characters = 0;
  while (at < text.size()) {
    const absl::string_view left = text.substr(at);
    Character c = FirstCharacter(left);
    if (c.bytes == 0 && MayGoOn(left, last)) return 0;
    if (c.bytes == 0) c = {0xfffd, 1};
    const bool ends = IsBlank(c.value) || IsPunctuation(c.value) || IsIdeograph(c.value);
    if (ends && characters > 0) break;
    at += c.bytes;
    if (IsBlank(c.value) || IsControl(c.value)) continue;
    ++characters;
    if (characters <= kLongestWord + 1) {
      if (lower_case_) {
        AppendSimple(c.value, &word);
      } else {
        word.append(left.data(), c.bytes);
      }
    }
    if (ends) break;
    if (at == text.size() && !last) return 0;
  }
  if (characters > kLongestWord) {
    tokens->push_back(unknown_);
  } else if (!word.empty()) {
    AddPieces(word, tokens);
  }
  return at;
}

// The longest piece that fits, again and again; all of the word is unknown where one is missing.
void Tokenizer::AddPieces(const std::string& word, std::vector<int64_t>* tokens) const {
  const size_t before = tokens->size();
  for (size_t begin = 0; begin < word.size();) {
    int64_t found = -1;
    size_t end = word.size();
    for (; end > begin; --end) {
      const bool whole = end == word.size() || (word[end] & 0xc0) != 0x80;
      if (!whole) continue;
      found = Find(absl::StrCat(begin > 0 ? "##" : "", word.substr(begin, end - begin)));
      if (found >= 0) break;
    }
    if (found < 0) {
      tokens->resize(before);
      tokens->push_back(unknown_);
      return;
    }
    tokens->push_back(found);
    begin = end;
  }
}

absl::StatusOr<std::vector<std::string>> CharactersOf(const StoredBytes& file) {
  std::set<std::pair<uint32_t, std::string>> seen;
  bool ascii[128] = {};
  std::string piece;
  for (uint64_t at = 0; at < file.size();) {
    const size_t count = static_cast<size_t>(std::min(kVocabularyPiece, file.size() - at));
    piece.resize(count);
    ONWARD_RETURN_IF_ERROR(file.Read(at, count, piece.data()));
    const bool last = at + count == file.size();
    size_t used = 0;
    while (used < count) {
      const unsigned char first = static_cast<unsigned char>(piece[used]);
      if (first < 0x80) {
        ascii[first] = true;
        ++used;
        continue;
      }
      const absl::string_view left = absl::string_view(piece).substr(used);
      const Character c = FirstCharacter(left);
      if (c.bytes == 0 && MayGoOn(left, last)) break;
      if (c.bytes == 0)
        return Annotate(NoUtf8(left), absl::StrCat(file.name(), ": at byte ", at + used));
      seen.emplace(c.value, std::string(left.substr(0, c.bytes)));
      used += c.bytes;
    }
    at += used;
    if (seen.size() > kMostCharacters) {
      return absl::InvalidArgumentError(absl::StrCat(file.name(), ": has more than ",
                                                     kMostCharacters,
                                                     " different characters; use tokens=bytes"));
    }
  }
  std::vector<std::string> characters;
  for (int c = 0; c < 128; ++c) {
    if (ascii[c]) characters.push_back(std::string(1, static_cast<char>(c)));
  }
  for (const auto& [value, text] : seen) characters.push_back(text);
  return characters;
}

absl::StatusOr<std::vector<std::string>> ReadVocabulary(const std::string& path) {
  ONWARD_ASSIGN_OR_RETURN(const std::string bytes, ReadPlainOrGzip(path));
  std::vector<std::string> tokens;
  std::set<std::string> seen;
  for (absl::string_view line : absl::StrSplit(bytes, '\n')) {
    const std::string token(absl::StripTrailingAsciiWhitespace(line));
    if (token.empty()) continue;
    if (!seen.insert(token).second) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": '", token, "' stands there twice"));
    }
    tokens.push_back(token);
  }
  if (tokens.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": holds no tokens"));
  return tokens;
}

bool IsLowerCase(const std::vector<std::string>& vocabulary) {
  return std::none_of(vocabulary.begin(), vocabulary.end(), [](const std::string& token) {
    return !absl::StartsWith(token, "[") && std::any_of(token.begin(), token.end(), [](char c) {
      return absl::ascii_isupper(static_cast<unsigned char>(c));
    });
  });
}

}  // namespace onward
