// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/wire_scan.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

namespace onward {
namespace {

// An empty node costs as much memory as so many other empty parts.
constexpr int64_t kNodeMessages = 4;

// A place in the bytes of one message.
struct Cursor {
  ModelBytes* bytes;
  size_t at, end;
  bool ok = true;

  uint64_t Varint() {
    constexpr size_t kLongest = 10;
    const char* data = bytes->Load(at, std::min(end, at + kLongest));
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at == end) break;
      const auto byte = static_cast<uint8_t>(data[at++]);
      v |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return v;
    }
    ok = false;
    return 0;
  }
};

// kOther: messages that hold little more than text. kBytes: no message at all.
enum class MessageKind {
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kFunction,
  kTraining,
  kSparse,
  kTensor,
  kValue,
  kType,
  kOther,
  kBytes
};

// What a field holds that has a length of its own; the numbers are those of
// onnx.proto, and fields that it does not have hold bytes.
MessageKind Child(MessageKind parent, uint64_t field) {
  switch (parent) {
    case MessageKind::kModel:
      return field == 7                                 ? MessageKind::kGraph
             : field == 20                              ? MessageKind::kTraining
             : field == 25                              ? MessageKind::kFunction
             : field == 8 || field == 14 || field == 26 ? MessageKind::kOther
                                                        : MessageKind::kBytes;
    case MessageKind::kTraining:
      return field <= 2   ? MessageKind::kGraph
             : field <= 4 ? MessageKind::kOther
                          : MessageKind::kBytes;
    case MessageKind::kGraph:
      return field == 1                   ? MessageKind::kNode
             : field == 5                 ? MessageKind::kTensor
             : field == 15                ? MessageKind::kSparse
             : field >= 11 && field <= 13 ? MessageKind::kValue
             : field == 14 || field == 16 ? MessageKind::kOther
                                          : MessageKind::kBytes;
    case MessageKind::kFunction:
      return field == 7                  ? MessageKind::kNode
             : field == 11               ? MessageKind::kAttribute
             : field == 12               ? MessageKind::kValue
             : field == 9 || field == 14 ? MessageKind::kOther
                                         : MessageKind::kBytes;
    case MessageKind::kNode:
      return field == 5                  ? MessageKind::kAttribute
             : field == 9 || field == 10 ? MessageKind::kOther
                                         : MessageKind::kBytes;
    case MessageKind::kAttribute:
      return field == 6 || field == 11    ? MessageKind::kGraph
             : field == 5 || field == 10  ? MessageKind::kTensor
             : field == 22 || field == 23 ? MessageKind::kSparse
             : field == 14 || field == 15 ? MessageKind::kType
                                          : MessageKind::kBytes;
    case MessageKind::kSparse: return field <= 2 ? MessageKind::kTensor : MessageKind::kBytes;
    case MessageKind::kTensor:
      return field == 3 || field == 13 || field == 16 ? MessageKind::kOther : MessageKind::kBytes;
    case MessageKind::kValue:
      return field == 2   ? MessageKind::kType
             : field == 4 ? MessageKind::kOther
                          : MessageKind::kBytes;
    // Types, shapes and dimensions are messages all the way down; the few names among
    // them are short.
    case MessageKind::kType: return MessageKind::kType;
    case MessageKind::kOther:
    case MessageKind::kBytes: return MessageKind::kBytes;
  }
  return MessageKind::kBytes;
}

// Whether onnx.proto has a number of this field. The parser keeps those it does not
// know one by one.
bool IsNumber(MessageKind parent, uint64_t field) {
  switch (parent) {
    case MessageKind::kModel: return field == 1 || field == 5;
    case MessageKind::kAttribute:
      return field == 2 || field == 3 || field == 7 || field == 8 || field == 20;
    case MessageKind::kTensor:
      return field <= 5 || field == 7 || field == 10 || field == 11 || field == 14;
    case MessageKind::kSparse: return field == 3;
    case MessageKind::kType:
    case MessageKind::kOther: return field <= 3;
    default: return false;
  }
}

// Null for a tag that no model has.
const char* NameOfModelField(uint64_t tag) {
  constexpr std::pair<uint64_t, const char*> kFields[] = {
      {1 << 3, "ir_version"},
      {2 << 3 | 2, "producer_name"},
      {3 << 3 | 2, "producer_version"},
      {4 << 3 | 2, "domain"},
      {5 << 3, "model_version"},
      {6 << 3 | 2, "doc_string"},
      {7 << 3 | 2, "graph"},
      {8 << 3 | 2, "opset_import"},
      {14 << 3 | 2, "metadata_props"},
      {20 << 3 | 2, "training_info"},
      {25 << 3 | 2, "functions"},
      {26 << 3 | 2, "configuration"},
  };
  for (const auto& [known, name] : kFields) {
    if (known == tag) return name;
  }
  return nullptr;
}

class Scanner {
 public:
  Scanner(ModelBytes* bytes, const TensorEdit& edit) : bytes_(bytes), edit_(edit) {}

  // False where there are too many parts. `growth` tells by how much splices change the
  // message's length.
  bool Scan(Cursor cursor, MessageKind kind, int depth, int64_t* growth) {
    if (depth > 100) return true;    // the parser's own limit refuses this
    int64_t groups = 0;              // around the cursor; all that is in them is unknown
    size_t behind_raw = cursor.end;  // where raw_data would end, among a tensor's fields
    while (cursor.ok && cursor.at < cursor.end) {
      const size_t begin = cursor.at;
      const uint64_t tag = cursor.Varint();
      const bool number = groups == 0 && IsNumber(kind, tag >> 3);
      const MessageKind child = groups == 0 ? Child(kind, tag >> 3) : MessageKind::kBytes;
      if (tag >> 3 > kRawData) behind_raw = std::min(behind_raw, begin);
      switch (tag & 7) {
        case 0: cursor.Varint(); break;
        case 1: cursor.at += std::min<size_t>(8, cursor.end - cursor.at); break;
        case 5: cursor.at += std::min<size_t>(4, cursor.end - cursor.at); break;
        case 2: {
          const size_t length_at = cursor.at;
          const uint64_t size = cursor.Varint();
          if (!cursor.ok || size > cursor.end - cursor.at) return true;
          if (!Count(child == MessageKind::kNode ? kNodeMessages : 1)) return false;
          const WireField field{tag >> 3, begin, cursor.at, cursor.at + size, behind_raw};
          if (kind == MessageKind::kTensor && groups == 0) *growth += Edit(field);
          if (child != MessageKind::kBytes && !ScanChild(field, child, depth, length_at, growth)) {
            return false;
          }
          cursor.at = field.end;
          continue;
        }
        case 3: ++groups; break;
        case 4: --groups; continue;
        default: return true;
      }
      if (!number && !Count(1)) return false;
    }
    return true;
  }

  std::vector<Splice> TakeSplices() {
    std::stable_sort(splices_.begin(), splices_.end(),
                     [](const Splice& a, const Splice& b) { return a.begin < b.begin; });
    return std::move(splices_);
  }

 private:
  bool Count(int64_t parts) { return (count_ += parts) <= kMaxMessages; }

  int64_t Edit(const WireField& field) {
    const size_t before = splices_.size();
    if (edit_) edit_(field, &splices_);
    int64_t growth = 0;
    for (size_t i = before; i < splices_.size(); ++i) growth += splices_[i].growth();
    return growth;
  }

  bool ScanChild(const WireField& field, MessageKind child, int depth, size_t length_at,
                 int64_t* growth) {
    int64_t inner = 0;
    if (!Scan({bytes_, field.payload, field.end}, child, depth + 1, &inner)) return false;
    if (inner == 0) return true;
    const auto size = static_cast<int64_t>(field.end - field.payload) + inner;
    splices_.push_back({length_at, field.payload, Varint(static_cast<uint64_t>(size))});
    *growth += inner + splices_.back().growth();
    return true;
  }

  ModelBytes* bytes_;
  const TensorEdit& edit_;
  std::vector<Splice> splices_;
  int64_t count_ = 0;
};

}  // namespace

std::vector<Splice> FieldsOfModel(absl::string_view model, uint64_t number) {
  ModelBytes bytes(model);
  Cursor cursor{&bytes, 0, model.size()};
  std::vector<Splice> found;
  while (cursor.ok && cursor.at < cursor.end) {
    const size_t begin = cursor.at;
    const uint64_t tag = cursor.Varint();
    uint64_t skip = 0;
    switch (tag & 7) {
      case 0: cursor.Varint(); break;
      case 1: skip = 8; break;
      case 2: skip = cursor.Varint(); break;
      case 5: skip = 4; break;
      default: return found;
    }
    if (!cursor.ok || skip > cursor.end - cursor.at) {
      // Of a file that was cut short the rest is all of it.
      if (tag >> 3 == number && (tag & 7) == 2) found.push_back({begin, model.size()});
      break;
    }
    cursor.at += skip;
    if (tag >> 3 == number) found.push_back({begin, cursor.at});
  }
  return found;
}

std::optional<CutField> FieldCutShort(absl::string_view model) {
  ModelBytes bytes(model);
  Cursor cursor{&bytes, 0, model.size()};
  while (cursor.at < cursor.end) {
    const size_t begin = cursor.at;
    const uint64_t tag = cursor.Varint();
    const char* name = NameOfModelField(tag);
    if (!cursor.ok || name == nullptr) return std::nullopt;
    const uint64_t value = cursor.Varint();
    if (!cursor.ok) return std::nullopt;
    if ((tag & 7) == 0) continue;
    // A first field alone may be anything: text that begins with ':' has one.
    if (value > cursor.end - cursor.at) {
      const bool plausible = begin > 0 && value <= static_cast<uint64_t>(kMostModelBytes);
      if (!plausible) return std::nullopt;
      return CutField{name, begin, cursor.at + value};
    }
    cursor.at += value;
  }
  return std::nullopt;
}

std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}

absl::StatusOr<std::vector<Splice>> ScanModel(ModelBytes* bytes, const TensorEdit& edit) {
  Scanner scanner(bytes, edit);
  int64_t growth = 0;
  if (!scanner.Scan({bytes, 0, bytes->size()}, MessageKind::kModel, 0, &growth)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the file holds more than ", kMaxMessages,
                     " nodes, attributes, values and unknown fields; it is damaged, or no model"));
  }
  return scanner.TakeSplices();
}

}  // namespace onward
