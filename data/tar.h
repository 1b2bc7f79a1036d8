// SPDX-License-Identifier: Apache-2.0
// The members of a tar archive: ustar, with GNU's and pax's long names and sizes. The archive
// is untrusted: every size is checked against the bytes that are there.
#ifndef ONWARD_DATA_TAR_H_
#define ONWARD_DATA_TAR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/stored_bytes.h"

namespace onward {

struct TarMember {
  std::string name;
  uint64_t offset = 0;  // of its bytes in the archive
  uint64_t size = 0;
};

// The ordinary files, in their order. Only headers are read.
absl::StatusOr<std::vector<TarMember>> ListTar(const StoredBytes& archive);

}  // namespace onward

#endif  // ONWARD_DATA_TAR_H_
