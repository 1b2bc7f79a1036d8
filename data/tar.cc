// SPDX-License-Identifier: Apache-2.0
#include "data/tar.h"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "data/file_bytes.h"

namespace onward {
namespace {

constexpr uint64_t kBlock = 512;
constexpr uint64_t kLongestName = 1 << 16;

using Header = std::array<char, kBlock>;

absl::Status Damaged(const StoredBytes& archive, uint64_t at, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat(archive.name(), ": damaged tar archive: ", what, " at byte ", at));
}

// Text in a field of fixed length, up to the first zero.
absl::string_view Text(const Header& h, size_t at, size_t length) {
  const absl::string_view field(h.data() + at, length);
  return field.substr(0, field.find('\0'));
}

// Octal digits, or where the first bit is set a big-endian number.
std::optional<uint64_t> Number(const Header& h, size_t at, size_t length) {
  uint64_t v = 0;
  if ((h[at] & 0x80) != 0) {
    for (size_t i = 1; i < length; ++i) {
      if (v >> 56 != 0) return std::nullopt;
      v = v << 8 | static_cast<unsigned char>(h[at + i]);
    }
    return v;
  }
  bool digits = false;
  for (size_t i = 0; i < length; ++i) {
    const char c = h[at + i];
    if (c == ' ' && !digits) continue;
    if (c == ' ' || c == '\0') break;
    if (c < '0' || c > '7') return std::nullopt;
    digits = true;
    v = v << 3 | static_cast<uint64_t>(c - '0');
  }
  return v;
}

// The sum of all bytes, those of the checksum itself taken for blanks.
bool ChecksumHolds(const Header& h) {
  uint64_t sum = 0;
  for (size_t i = 0; i < h.size(); ++i) {
    sum += i >= 148 && i < 156 ? static_cast<unsigned char>(' ') : static_cast<unsigned char>(h[i]);
  }
  return Number(h, 148, 8) == sum;
}

bool IsEmpty(const Header& h) {
  return std::all_of(h.begin(), h.end(), [](char c) { return c == '\0'; });
}

std::string NameOf(const Header& h) {
  const absl::string_view name = Text(h, 0, 100);
  const bool ustar = Text(h, 257, 5) == "ustar";
  const absl::string_view prefix = ustar && h[262] == '\0' ? Text(h, 345, 155) : "";
  return prefix.empty() ? std::string(name) : absl::StrCat(prefix, "/", name);
}

// What extended headers say of the member that follows them.
struct Extended {
  std::optional<std::string> name;
  std::optional<uint64_t> size;
};

// Records "LENGTH KEY=VALUE\n", the length counting itself.
absl::Status ReadPax(absl::string_view records, Extended* extended) {
  while (!records.empty() && records[0] != '\0') {
    const size_t space = records.find(' ');
    uint64_t length = 0;
    if (space == absl::string_view::npos || !absl::SimpleAtoi(records.substr(0, space), &length) ||
        length > records.size() || length < space + 3) {
      return absl::DataLossError("a record of its extended header is cut off");
    }
    const absl::string_view record = records.substr(space + 1, length - space - 2);
    const size_t equals = record.find('=');
    if (equals == absl::string_view::npos) {
      return absl::DataLossError("a record of its extended header lacks '='");
    }
    const absl::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") extended->name = std::string(value);
    uint64_t size = 0;
    if (key == "size") {
      if (!absl::SimpleAtoi(value, &size)) {
        return absl::DataLossError("the size in its extended header is no number");
      }
      extended->size = size;
    }
    records.remove_prefix(length);
  }
  return absl::OkStatus();
}

absl::Status ReadExtended(const StoredBytes& archive, uint64_t data, uint64_t size, char type,
                          Extended* extended) {
  if (size > kLongestName) return Damaged(archive, data, "an extended header is too long");
  std::string text(static_cast<size_t>(size), '\0');
  ONWARD_RETURN_IF_ERROR(archive.Read(data, text.size(), text.data()));
  if (type == 'L') {
    extended->name = text.substr(0, text.find('\0'));
    return absl::OkStatus();
  }
  const absl::Status read = ReadPax(text, extended);
  return read.ok() ? read : Damaged(archive, data, read.message());
}

}  // namespace

absl::StatusOr<std::vector<TarMember>> ListTar(const StoredBytes& archive) {
  std::vector<TarMember> members;
  Extended extended;
  uint64_t at = 0;
  while (archive.size() - at >= kBlock) {
    Header h;
    ONWARD_RETURN_IF_ERROR(archive.Read(at, h.size(), h.data()));
    if (IsEmpty(h)) return members;
    if (!ChecksumHolds(h)) {
      if (at > 0) return Damaged(archive, at, "a header has the wrong checksum");
      return absl::InvalidArgumentError(
          absl::StrCat(archive.name(), ": is not a tar archive (starts with ",
                       FirstBytes(absl::string_view(h.data(), 8), 8), ")"));
    }
    const uint64_t data = at + kBlock;
    const char type = h[156];
    const bool describes = type == 'L' || type == 'x' || type == 'K' || type == 'g';
    std::optional<uint64_t> size = Number(h, 124, 12);
    if (!describes && extended.size) size = extended.size;
    if (!size || *size > archive.size() - data) {
      return Damaged(archive, at, "a member reaches past the end of the file");
    }
    if (type == 'L' || type == 'x') {
      ONWARD_RETURN_IF_ERROR(ReadExtended(archive, data, *size, type, &extended));
    } else if (!describes) {
      if (type == '0' || type == '\0' || type == '7') {
        members.push_back({extended.name.value_or(NameOf(h)), data, *size});
      }
      extended = {};
    }
    at = data + std::min((*size + kBlock - 1) / kBlock * kBlock, archive.size() - data);
  }
  if (at == 0) return absl::InvalidArgumentError(absl::StrCat(archive.name(), ": is empty"));
  return members;
}

}  // namespace onward
