// SPDX-License-Identifier: Apache-2.0
// A look at a model's bytes before protobuf parses them: parsing may use a
// hundred times the file's size, so counts are checked first.
#ifndef ONWARD_CORE_ONNX_IO_WIRE_SCAN_H_
#define ONWARD_CORE_ONNX_IO_WIRE_SCAN_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace onward {

inline constexpr int64_t kMaxMessages = 4'000'000;

// Refuses bytes whose nested messages (nodes, attributes, values, ...) and fields that
// onnx.proto does not have are more than kMaxMessages. Malformed bytes pass: the parser refuses
// them.
absl::Status ScanModelBytes(absl::string_view bytes);

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_WIRE_SCAN_H_
