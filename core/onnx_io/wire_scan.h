// SPDX-License-Identifier: Apache-2.0
// A look at a model's bytes without protobuf: parsing may use a hundred times a file's
// size, so counts are checked first, and the values of tensors can be taken out of the
// bytes, or put in, with the lengths around them made right.
#ifndef ONWARD_CORE_ONNX_IO_WIRE_SCAN_H_
#define ONWARD_CORE_ONNX_IO_WIRE_SCAN_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/onnx_io/model_bytes.h"

namespace onward {

inline constexpr int64_t kMaxMessages = 4'000'000;

// Fields of TensorProto.
inline constexpr uint64_t kRawData = 9, kExternalData = 13;

// A field that has a length of its own: its tag begins at `begin`, what it holds is from
// `payload` to `end`. `behind_raw` is where a raw_data of the same message would end if
// fields stand in the order of their numbers.
struct WireField {
  uint64_t number;
  size_t begin, payload, end;
  size_t behind_raw;
};

// Called for each such field of each tensor, wherever the tensor stands.
using TensorEdit = std::function<void(const WireField&, std::vector<Splice>*)>;

// Goes through the bytes once and returns the edits in order, those of lengths included.
// Refuses bytes whose nested messages (nodes, attributes, values, ...) and fields that
// onnx.proto does not have are more than kMaxMessages. Malformed bytes pass: the parser
// refuses them.
absl::StatusOr<std::vector<Splice>> ScanModel(ModelBytes* bytes, const TensorEdit& edit);

// Where the model's own fields of this number stand, as splices that leave them out. Ends where
// the bytes are no message any more; a field that the bytes end in is among them.
std::vector<Splice> FieldsOfModel(absl::string_view model, uint64_t number);

// The first of the model's own fields that goes on behind the end of the bytes, which were a
// model up to there: what is left of a file that was cut short.
struct CutField {
  std::string name;  // of onnx.proto
  uint64_t begin, end;
};
std::optional<CutField> FieldCutShort(absl::string_view model);

// As protobuf writes numbers.
std::string Varint(uint64_t value);

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_WIRE_SCAN_H_
