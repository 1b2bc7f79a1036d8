// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/zip.h"

#include <zlib.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
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

absl::StatusOr<Directory> FindDirectory(absl::string_view archive, absl::string_view name) {
  if (archive.size() < 22) return Damaged(name, "it is too short");
  const size_t lowest = archive.size() > 22 + 65535 ? archive.size() - 22 - 65535 : 0;
  for (size_t at = archive.size() - 22;; --at) {
    if (Little(archive, at, 4) == kEnd) {
      Directory d{Little(archive, at + 10, 2), Little(archive, at + 12, 4),
                  Little(archive, at + 16, 4)};
      if (at >= 20 && Little(archive, at - 20, 4) == kEnd64Locator) {
        const uint64_t end64 = Little(archive, at - 20 + 8, 8);
        if (archive.size() < 56 || end64 > archive.size() - 56 ||
            Little(archive, end64, 4) != kEnd64) {
          return Damaged(name, "its zip64 directory is not where it should be");
        }
        d = {Little(archive, end64 + 32, 8), Little(archive, end64 + 40, 8),
             Little(archive, end64 + 48, 8)};
      }
      if (d.offset > archive.size() || d.bytes > archive.size() - d.offset) {
        return Damaged(name, "its directory lies outside the file");
      }
      return d;
    }
    if (at == lowest) break;
  }
  return Damaged(name, absl::StrCat("no directory at its end; the file is truncated or not a zip "
                                    "archive (starts with ",
                                    FirstBytes(archive), ")"));
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

absl::StatusOr<std::string> Inflate(absl::string_view packed, uint64_t unpacked,
                                    absl::string_view name) {
  std::string out(unpacked, '\0');
  z_stream z{};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return absl::InternalError("zlib cannot start");
  size_t in_used = 0, out_used = 0;
  int code = Z_OK;
  constexpr size_t kStep = size_t{1} << 30;
  while (code == Z_OK) {
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data())) + in_used;
    z.avail_in = static_cast<uInt>(std::min(packed.size() - in_used, kStep));
    z.next_out = reinterpret_cast<Bytef*>(out.data()) + out_used;
    z.avail_out = static_cast<uInt>(std::min(out.size() - out_used, kStep));
    const size_t in_before = z.avail_in, out_before = z.avail_out;
    code = inflate(&z, Z_NO_FLUSH);
    in_used += in_before - z.avail_in;
    out_used += out_before - z.avail_out;
    if (code == Z_OK && in_before == z.avail_in && out_before == z.avail_out) break;
  }
  inflateEnd(&z);
  if (code != Z_STREAM_END || out_used != out.size()) {
    return Damaged(name, "its compressed bytes do not unpack to the size given");
  }
  return out;
}

}  // namespace

absl::StatusOr<std::vector<ZipEntry>> ListZip(absl::string_view archive, absl::string_view name) {
  ONWARD_ASSIGN_OR_RETURN(const Directory directory, FindDirectory(archive, name));
  absl::string_view rest = archive.substr(directory.offset, directory.bytes);
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

absl::StatusOr<std::string> ExtractZip(absl::string_view archive, const ZipEntry& entry,
                                       absl::string_view name) {
  if (entry.encrypted) return absl::UnimplementedError(absl::StrCat(name, ": is encrypted"));
  if (entry.method != 0 && entry.method != 8) {
    return absl::UnimplementedError(absl::StrCat(name, ": is packed with method ", entry.method,
                                                 "; only stored and deflated entries are read"));
  }
  if (entry.header > archive.size() || archive.size() - entry.header < 30 ||
      Little(archive, entry.header, 4) != kLocalHeader) {
    return Damaged(name, "its header is not where the directory says");
  }
  const uint64_t data = entry.header + 30 + Little(archive, entry.header + 26, 2) +
                        Little(archive, entry.header + 28, 2);
  if (data > archive.size() || entry.packed > archive.size() - data) {
    return Damaged(name, "it reaches past the end of the file");
  }
  if (entry.method == 0 ? entry.unpacked != entry.packed
                        : entry.unpacked / kLargestRatio > entry.packed + 1) {
    return Damaged(name, absl::StrCat(entry.packed, " bytes cannot unpack to ", entry.unpacked));
  }
  ONWARD_RETURN_IF_ERROR(CheckFitsInMemory(name, entry.unpacked));
  const absl::string_view packed = archive.substr(data, entry.packed);
  std::string bytes;
  if (entry.method == 0) {
    bytes = std::string(packed);
  } else {
    ONWARD_ASSIGN_OR_RETURN(bytes, Inflate(packed, entry.unpacked, name));
  }
  uLong crc = crc32(0, nullptr, 0);
  for (size_t at = 0; at < bytes.size(); at += size_t{1} << 30) {
    const size_t count = std::min(bytes.size() - at, size_t{1} << 30);
    crc = crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()) + at, static_cast<uInt>(count));
  }
  if (crc != entry.crc) return Damaged(name, "its checksum is wrong");
  return bytes;
}

}  // namespace onward
