// SPDX-License-Identifier: Apache-2.0
// Reading zip archives in memory (stored and deflated entries, zip64), as
// numpy.savez writes them. The archive is untrusted: every offset and size is
// checked against the bytes that are there.
#ifndef ONWARD_DATA_ARRAYS_ZIP_H_
#define ONWARD_DATA_ARRAYS_ZIP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace onward {

struct ZipEntry {
  std::string name;
  int method = 0;  // 0 stored, 8 deflated
  bool encrypted = false;
  uint32_t crc = 0;
  uint64_t packed = 0;
  uint64_t unpacked = 0;
  uint64_t header = 0;  // offset of the local header
};

// The archive's directory. `name` is what messages call the archive.
absl::StatusOr<std::vector<ZipEntry>> ListZip(absl::string_view archive, absl::string_view name);

// The bytes of one entry. `name` is what messages call it.
absl::StatusOr<std::string> ExtractZip(absl::string_view archive, const ZipEntry& entry,
                                       absl::string_view name);

}  // namespace onward

#endif  // ONWARD_DATA_ARRAYS_ZIP_H_
