// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/wire_scan.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace onward {
namespace {

// An empty node costs as much memory as so many other empty parts.
constexpr int64_t kNodeMessages = 4;

struct Cursor {
  const uint8_t* at;
  const uint8_t* end;
  bool ok = true;

  uint64_t Varint() {
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at == end) break;
      const uint8_t byte = *at++;
      v |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return v;
    }
    ok = false;
    return 0;
  }
};

// kTensor: its parts are not messages, but strings count too. kType: types are
// messages all the way down.
enum class Message {
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kFunction,
  kTraining,
  kSparse,
  kTensor,
  kType,
  kLeaf
};

// Which submessages can hold many further ones; the field numbers are those of
// onnx.proto.
Message Child(Message parent, uint64_t field) {
  switch (parent) {
    case Message::kModel:
      return field == 7    ? Message::kGraph
             : field == 20 ? Message::kTraining
             : field == 25 ? Message::kFunction
                           : Message::kLeaf;
    case Message::kTraining: return field <= 2 ? Message::kGraph : Message::kLeaf;
    case Message::kGraph:
      return field == 1                   ? Message::kNode
             : field == 5                 ? Message::kTensor
             : field == 15                ? Message::kSparse
             : field >= 11 && field <= 14 ? Message::kType
                                          : Message::kLeaf;
    case Message::kFunction:
      return field == 7    ? Message::kNode
             : field == 11 ? Message::kAttribute
             : field == 12 ? Message::kType
                           : Message::kLeaf;
    case Message::kNode: return field == 5 ? Message::kAttribute : Message::kLeaf;
    case Message::kAttribute:
      return field == 6 || field == 11    ? Message::kGraph
             : field == 5 || field == 10  ? Message::kTensor
             : field == 22 || field == 23 ? Message::kSparse
             : field == 14 || field == 15 ? Message::kType
                                          : Message::kLeaf;
    case Message::kSparse: return Message::kTensor;
    case Message::kType: return Message::kType;
    case Message::kTensor:
    case Message::kLeaf: return Message::kLeaf;
  }
  return Message::kLeaf;
}

bool Scan(Cursor cursor, Message kind, int depth, int64_t* count) {
  if (depth > 100) return true;  // the parser's own limit refuses this
  while (cursor.ok && cursor.at < cursor.end) {
    const uint64_t tag = cursor.Varint();
    switch (tag & 7) {
      case 0: cursor.Varint(); break;
      case 1: cursor.at += std::min<ptrdiff_t>(8, cursor.end - cursor.at); break;
      case 5: cursor.at += std::min<ptrdiff_t>(4, cursor.end - cursor.at); break;
      case 2: {
        const uint64_t size = cursor.Varint();
        if (!cursor.ok || size > static_cast<uint64_t>(cursor.end - cursor.at)) return true;
        const Message child = Child(kind, tag >> 3);
        *count += child == Message::kNode ? kNodeMessages : 1;
        if (*count > kMaxMessages) return false;
        if (child != Message::kLeaf &&
            !Scan({cursor.at, cursor.at + size}, child, depth + 1, count)) {
          return false;
        }
        cursor.at += size;
        break;
      }
      case 3:
      case 4: break;  // groups are unknown fields; what they hold counts here
      default: return true;
    }
  }
  return true;
}

}  // namespace

absl::Status ScanModelBytes(absl::string_view bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  int64_t count = 0;
  if (Scan({data, data + bytes.size()}, Message::kModel, 0, &count)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the file holds more than ", kMaxMessages, " nodes, attributes and values"));
}

}  // namespace onward
