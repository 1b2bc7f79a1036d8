// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/zip.h"

#include <zlib.h>

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "data/file_bytes.h"

namespace onward {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kDirectoryEntry = 0x02014b50;
constexpr uint32_t kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50;
constexpr uint32_t kEnd64Locator = 0x07064b50;
// Deflate cannot expand further than this.
constexpr uint64_t kLargestRatio = 1032;
constexpr size_t kEndBytes = 22;
constexpr size_t kEnd64LocatorBytes = 20;
constexpr size_t kEnd64Bytes = 56;
constexpr size_t kLocalHeaderBytes = 30;
constexpr size_t kZipPiece = size_t{1} << 20;

uint64_t Little(absl::string_view bytes, size_t at, int count) {
  uint64_t v = 0;
  for (int i = 0; i < count; ++i) {
    v |= uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return v;
}

absl::Status Damaged(absl::string_view name, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(name, ": damaged zip archive: ", what));
}

struct Directory {
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t offset = 0;
};

// Bytes [offset, offset + count).
absl::StatusOr<std::string> Bytes(const StoredBytes& archive, uint64_t offset, uint64_t count) {
  std::string bytes(static_cast<size_t>(count), '\0');
  ONWARD_RETURN_IF_ERROR(archive.Read(offset, bytes.size(), bytes.data()));
  return bytes;
}

// The record at the end says where the directory is; a comment may follow it.
absl::StatusOr<Directory> FindDirectory(const StoredBytes& archive) {
  const std::string& name = archive.name();
  if (archive.size() < kEndBytes) return Damaged(name, "it is too short");
  const uint64_t tail_begin =
      archive.size() - std::min<uint64_t>(archive.size(), kEnd64LocatorBytes + kEndBytes + 65535);
  ONWARD_ASSIGN_OR_RETURN(const std::string tail,
                          Bytes(archive, tail_begin, archive.size() - tail_begin));
  const size_t lowest = tail.size() > kEndBytes + 65535 ? tail.size() - kEndBytes - 65535 : 0;
  for (size_t at = tail.size() - kEndBytes;; --at) {
    if (Little(tail, at, 4) == kEnd) {
      Directory d{Little(tail, at + 10, 2), Little(tail, at + 12, 4), Little(tail, at + 16, 4)};
      if (at >= kEnd64LocatorBytes && Little(tail, at - kEnd64LocatorBytes, 4) == kEnd64Locator) {
        const uint64_t end64 = Little(tail, at - kEnd64LocatorBytes + 8, 8);
        std::string record;
        if (archive.size() >= kEnd64Bytes && end64 <= archive.size() - kEnd64Bytes) {
          ONWARD_ASSIGN_OR_RETURN(record, Bytes(archive, end64, kEnd64Bytes));
        }
        if (record.empty() || Little(record, 0, 4) != kEnd64) {
          return Damaged(name, "its zip64 directory is not where it should be");
        }
        d = {Little(record, 32, 8), Little(record, 40, 8), Little(record, 48, 8)};
      }
      if (d.offset > archive.size() || d.bytes > archive.size() - d.offset) {
        return Damaged(name, "its directory lies outside the file");
      }
      return d;
    }
    if (at == lowest) break;
  }
  ONWARD_ASSIGN_OR_RETURN(const std::string start, Bytes(archive, 0, 4));
  return Damaged(name, absl::StrCat("no directory at its end; the file is truncated or not a zip "
                                    "archive (starts with ",
                                    FirstBytes(start), ")"));
}

// Sizes that do not fit 32 bits are in the zip64 extra field, in this order.
absl::Status ReadZip64(absl::string_view extra, absl::string_view name, ZipEntry* entry) {
  while (extra.size() >= 4) {
    const uint64_t id = Little(extra, 0, 2), length = Little(extra, 2, 2);
    extra.remove_prefix(4);
    if (length > extra.size()) return Damaged(name, "an extra field is cut off");
    if (id == 1) {
      absl::string_view field = extra.substr(0, length);
      for (uint64_t* value : {&entry->unpacked, &entry->packed, &entry->header}) {
        if (*value != 0xffffffff) continue;
        if (field.size() < 8) return Damaged(name, "a zip64 size is missing");
        *value = Little(field, 0, 8);
        field.remove_prefix(8);
      }
    }
    extra.remove_prefix(length);
  }
  return absl::OkStatus();
}

using TakePiece = absl::FunctionRef<absl::Status(absl::string_view)>;

absl::Status ReadInPieces(const StoredBytes& bytes, TakePiece take) {
  std::string piece;
  for (uint64_t at = 0; at < bytes.size(); at += piece.size()) {
    piece.resize(static_cast<size_t>(std::min<uint64_t>(kZipPiece, bytes.size() - at)));
    ONWARD_RETURN_IF_ERROR(bytes.Read(at, piece.size(), piece.data()));
    ONWARD_RETURN_IF_ERROR(take(piece));
  }
  return absl::OkStatus();
}

// Unpacks a raw deflate stream piece by piece.
class Inflater {
 public:
  Inflater() : ready_(inflateInit2(&z_, -MAX_WBITS) == Z_OK), out_(kZipPiece, '\0') {}
  ~Inflater() { inflateEnd(&z_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // False where the bytes are no such stream; what they unpack to goes to `take`.
  absl::StatusOr<bool> Add(absl::string_view packed, TakePiece take) {
    if (!ready_) return absl::InternalError("zlib cannot start");
    z_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    z_.avail_in = static_cast<uInt>(packed.size());
    do {
      if (ended_) return true;  // whatever follows
      z_.next_out = reinterpret_cast<Bytef*>(out_.data());
      z_.avail_out = static_cast<uInt>(out_.size());
      const int code = inflate(&z_, Z_NO_FLUSH);
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) return false;
      const bool stuck = z_.avail_in > 0 && z_.avail_out == out_.size();
      if (code == Z_BUF_ERROR && stuck) return false;
      ended_ = code == Z_STREAM_END;
      ONWARD_RETURN_IF_ERROR(take(absl::string_view(out_.data(), out_.size() - z_.avail_out)));
    } while (z_.avail_in > 0 || z_.avail_out == 0);
    return true;
  }
  bool ended() const { return ended_; }

 private:
  z_stream z_{};
  bool ready_, ended_ = false;
  std::string out_;
};

absl::StatusOr<StoredBytes> Unpack(const StoredBytes& packed, const ZipEntry& entry) {
  const absl::Status wrong =
      Damaged(packed.name(), "its compressed bytes do not unpack to the size given");
  Unpacking unpacking(packed.name());
  Inflater inflater;
  ONWARD_RETURN_IF_ERROR(ReadInPieces(packed, [&](absl::string_view piece) -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(const bool good,
                            inflater.Add(piece, [&](absl::string_view part) -> absl::Status {
                              if (part.size() > entry.unpacked - unpacking.size()) return wrong;
                              return unpacking.Append(part);
                            }));
    return good ? absl::OkStatus() : wrong;
  }));
  if (!inflater.ended() || unpacking.size() != entry.unpacked) return wrong;
  return unpacking.Finish();
}

}  // namespace

absl::StatusOr<std::vector<ZipEntry>> ListZip(const StoredBytes& archive) {
  const std::string& name = archive.name();
  ONWARD_ASSIGN_OR_RETURN(const Directory directory, FindDirectory(archive));
  ONWARD_RETURN_IF_ERROR(CheckFitsInMemory(name, directory.bytes));
  ONWARD_ASSIGN_OR_RETURN(const std::string listing,
                          Bytes(archive, directory.offset, directory.bytes));
  absl::string_view rest = listing;
  std::vector<ZipEntry> entries;
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (rest.size() < 46 || Little(rest, 0, 4) != kDirectoryEntry) {
      return Damaged(name, absl::StrCat("entry ", i + 1, " of its directory is cut off"));
    }
    const uint64_t name_length = Little(rest, 28, 2), extra_length = Little(rest, 30, 2),
                   comment_length = Little(rest, 32, 2);
    if (rest.size() - 46 < name_length + extra_length + comment_length) {
      return Damaged(name, absl::StrCat("entry ", i + 1, " of its directory is cut off"));
    }
    ZipEntry entry;
    entry.encrypted = (Little(rest, 8, 2) & 1) != 0;
    entry.method = static_cast<int>(Little(rest, 10, 2));
    entry.crc = static_cast<uint32_t>(Little(rest, 16, 4));
    entry.packed = Little(rest, 20, 4);
    entry.unpacked = Little(rest, 24, 4);
    entry.header = Little(rest, 42, 4);
    entry.name = std::string(rest.substr(46, name_length));
    ONWARD_RETURN_IF_ERROR(ReadZip64(rest.substr(46 + name_length, extra_length), name, &entry));
    rest.remove_prefix(46 + name_length + extra_length + comment_length);
    entries.push_back(std::move(entry));
  }
  return entries;
}

absl::StatusOr<StoredBytes> OpenZipEntry(const StoredBytes& archive, const ZipEntry& entry,
                                         std::string name) {
  if (entry.encrypted) return absl::UnimplementedError(absl::StrCat(name, ": is encrypted"));
  if (entry.method != 0 && entry.method != 8) {
    return absl::UnimplementedError(absl::StrCat(name, ": is packed with method ", entry.method,
                                                 "; only stored and deflated entries are read"));
  }
  std::string header;
  if (entry.header <= archive.size() && archive.size() - entry.header >= kLocalHeaderBytes) {
    ONWARD_ASSIGN_OR_RETURN(header, Bytes(archive, entry.header, kLocalHeaderBytes));
  }
  if (header.empty() || Little(header, 0, 4) != kLocalHeader) {
    return Damaged(name, "its header is not where the directory says");
  }
  const uint64_t data =
      entry.header + kLocalHeaderBytes + Little(header, 26, 2) + Little(header, 28, 2);
  if (data > archive.size() || entry.packed > archive.size() - data) {
    return Damaged(name, "it reaches past the end of the file");
  }
  if (entry.method == 0 ? entry.unpacked != entry.packed
                        : entry.unpacked / kLargestRatio > entry.packed + 1) {
    return Damaged(name, absl::StrCat(entry.packed, " bytes cannot unpack to ", entry.unpacked));
  }
  StoredBytes bytes = archive.Part(data, entry.packed, std::move(name));
  if (entry.method == 8) {
    ONWARD_ASSIGN_OR_RETURN(bytes, Unpack(bytes, entry));
  }
  uLong crc = crc32(0, nullptr, 0);
  ONWARD_RETURN_IF_ERROR(ReadInPieces(bytes, [&](absl::string_view piece) {
    crc = crc32(crc, reinterpret_cast<const Bytef*>(piece.data()), static_cast<uInt>(piece.size()));
    return absl::OkStatus();
  }));
  if (crc != entry.crc) return Damaged(bytes.name(), "its checksum is wrong");
  return bytes;
}

}  // namespace onward
