// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/wire_scan.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace onward {
namespace {

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

enum class Message { kModel, kGraph, kNode, kAttribute, kFunction, kTraining, kLeaf };

// Which submessages can hold many further ones; the field numbers are those of
// onnx.proto.
Message Child(Message parent, uint64_t field) {
  switch (parent) {
    case Message::kModel:
      return field == 7 ? Message::kGraph : field == 20 ? Message::kTraining
             : field == 25 ? Message::kFunction : Message::kLeaf;
    case Message::kTraining: return field <= 2 ? Message::kGraph : Message::kLeaf;
    case Message::kGraph: return field == 1 ? Message::kNode : Message::kLeaf;
    case Message::kFunction: return field == 7 ? Message::kNode : Message::kLeaf;
    case Message::kNode: return field == 5 ? Message::kAttribute : Message::kLeaf;
    case Message::kAttribute: return field == 6 || field == 11 ? Message::kGraph : Message::kLeaf;
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
        if (++*count > kMaxMessages) return false;
        const Message child = Child(kind, tag >> 3);
        if (child != Message::kLeaf &&
            !Scan({cursor.at, cursor.at + size}, child, depth + 1, count)) {
          return false;
        }
        cursor.at += size;
        break;
      }
      default: return true;
    }
  }
  return true;
}

}  // namespace

absl::Status ScanModelBytes(const std::string& bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  int64_t count = 0;
  if (Scan({data, data + bytes.size()}, Message::kModel, 0, &count)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the file holds more than ", kMaxMessages, " nodes, attributes and values"));
}

}  // namespace onward
