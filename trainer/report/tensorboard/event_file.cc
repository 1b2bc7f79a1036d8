// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/tensorboard/event_file.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status.h"

namespace onward {
namespace {

constexpr std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
    table[i] = crc;
  }
  return table;
}

// Checksums of data that itself holds checksums are rotated and moved, says the format.
uint32_t MaskedCrc(absl::string_view bytes) { return std::rotr(Crc32c(bytes), 15) + 0xa282ead8u; }

// Little endian, whatever the machine.
template <typename Number>
std::string Fixed(Number value) {
  std::string out;
  for (size_t i = 0; i < sizeof(value); ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

// Protocol buffers: a field is its number and wire type, then its value.
enum WireType { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string Tag(int number, WireType type) {
  return Varint(static_cast<uint64_t>(number) << 3 | static_cast<uint64_t>(type));
}
std::string Integer(int number, int64_t value) {
  return Tag(number, kVarint) + Varint(static_cast<uint64_t>(value));
}
std::string Real(int number, double value) {
  return Tag(number, kFixed64) + Fixed(std::bit_cast<uint64_t>(value));
}
std::string Real(int number, float value) {
  return Tag(number, kFixed32) + Fixed(std::bit_cast<uint32_t>(value));
}
std::string Text(int number, absl::string_view bytes) {
  return absl::StrCat(Tag(number, kLengthDelimited), Varint(bytes.size()), bytes);
}

// Field numbers of tensorflow.Event, Summary, Summary.Value, SummaryMetadata, TensorProto.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
constexpr int kSummaryValue = 1, kValueTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9;
constexpr int kPluginData = 1, kPluginName = 1;
constexpr int kDtype = 1, kShape = 2, kStringValue = 8, kShapeDim = 2, kDimSize = 1;
constexpr int kSessionStatus = 1, kSessionStart = 1, kDtString = 7;

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string Event(int64_t step, absl::string_view what) {
  return absl::StrCat(Real(kWallTime, WallSeconds()), Integer(kStep, step), what);
}

absl::Status NotWritten(const std::string& path) {
  return absl::UnavailableError(absl::StrCat(path, ": cannot be written: ", std::strerror(errno)));
}

}  // namespace

uint32_t Crc32c(absl::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = MakeCrcTable();
  uint32_t crc = ~0u;
  for (const char c : bytes)
    crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

absl::StatusOr<EventFile> EventFile::Create(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("'", folder, "': cannot be made: ", error.message()));
  }
  char host[256] = "localhost";
  if (gethostname(host, sizeof(host) - 1) != 0) std::strcpy(host, "localhost");
  const std::string stem = absl::StrFormat("%s/events.out.tfevents.%010d.%s.%d", folder,
                                           static_cast<int64_t>(WallSeconds()), host, getpid());
  // A process may write several.
  for (int number = 0;; ++number) {
    const std::string path = absl::StrCat(stem, ".", number);
    std::FILE* file = std::fopen(path.c_str(), "wbx");
    if (file == nullptr && errno == EEXIST) continue;
    if (file == nullptr) return NotWritten(path);
    EventFile events(path, file);
    ONWARD_RETURN_IF_ERROR(events.Append(
        absl::StrCat(Real(kWallTime, WallSeconds()), Text(kFileVersion, "brain.Event:2"))));
    return events;
  }
}

absl::Status EventFile::AddScalars(int64_t step,
                                   const std::vector<std::pair<std::string, double>>& values) {
  std::string summary;
  for (const auto& [tag, value] : values) {
    absl::StrAppend(
        &summary,
        Text(kSummaryValue, Text(kValueTag, tag) + Real(kSimpleValue, static_cast<float>(value))));
  }
  return Append(Event(step, Text(kSummary, summary)));
}

absl::Status EventFile::AddText(int64_t step, const std::string& tag, const std::string& text) {
  const std::string metadata = Text(kPluginData, Text(kPluginName, "text"));
  const std::string tensor =
      absl::StrCat(Integer(kDtype, kDtString), Text(kShape, Text(kShapeDim, Integer(kDimSize, 1))),
                   Text(kStringValue, text));
  const std::string value =
      absl::StrCat(Text(kValueTag, tag), Text(kTensor, tensor), Text(kMetadata, metadata));
  return Append(Event(step, Text(kSummary, Text(kSummaryValue, value))));
}

absl::Status EventFile::AddRestart(int64_t step) {
  return Append(Event(step, Text(kSessionLog, Integer(kSessionStatus, kSessionStart))));
}

absl::Status EventFile::Append(absl::string_view event) {
  const std::string length = Fixed(static_cast<uint64_t>(event.size()));
  const std::string record =
      absl::StrCat(length, Fixed(MaskedCrc(length)), event, Fixed(MaskedCrc(event)));
  if (std::fwrite(record.data(), 1, record.size(), file_.get()) != record.size() ||
      std::fflush(file_.get()) != 0) {
    return NotWritten(path_);
  }
  return absl::OkStatus();
}

}  // namespace onward
