// SPDX-License-Identifier: Apache-2.0
// Event files, byte by byte. That TensorBoard reads them is tested in
// tests/cli/tensorboard_test.cc.
#include "trainer/report/tensorboard/event_file.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <filesystem>

#include "tests/support/scratch.h"

namespace onward::event_file_test {

// The check value of the catalogue of CRC algorithms, and RFC 3720's.
TEST(Crc32c, HasTheValuesOfTheStandards) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c(""), 0u);
}

template <typename Number>
Number Take(std::string* bytes) {
  Number value;
  std::memcpy(&value, bytes->data(), sizeof(value));
  bytes->erase(0, sizeof(value));
  return value;
}

// Checks the framing of the next record and returns what it holds.
std::string TakeRecord(std::string* bytes) {
  const auto masked = [](const std::string& part) {
    const uint32_t crc = Crc32c(part);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  };
  const std::string head = bytes->substr(0, 8);
  const uint64_t length = Take<uint64_t>(bytes);
  EXPECT_EQ(Take<uint32_t>(bytes), masked(head));
  const std::string event = bytes->substr(0, length);
  bytes->erase(0, length);
  EXPECT_EQ(Take<uint32_t>(bytes), masked(event));
  return event;
}

TEST(EventFile, WritesRecordsOfEvents) {
  const Scratch scratch;
  auto file = EventFile::Create(scratch.Path("runs/a"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->AddScalars(300, {{"loss", 0.5}}).ok());
  std::string bytes = FileBytes(file->path());
  const std::string version = TakeRecord(&bytes);
  EXPECT_EQ(version.substr(9),
            "\x1a\x0d"
            "brain.Event:2");
  const std::string event = TakeRecord(&bytes);
  EXPECT_EQ(event[0], '\x09');  // wall_time, eight bytes
  // step 300; summary { value { tag "loss" simple_value 0.5 } }
  EXPECT_EQ(event.substr(9),
            std::string("\x10\xac\x02\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\0\x3f", 18));
  EXPECT_EQ(bytes, "");
}

TEST(EventFile, NamesDiffer) {
  const Scratch scratch;
  const auto a = EventFile::Create(scratch.folder()), b = EventFile::Create(scratch.folder());
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NE(a->path(), b->path());
  EXPECT_EQ(std::filesystem::path(a->path()).filename().string().rfind("events.out.tfevents.", 0),
            0u);
}

TEST(EventFile, SaysWhatCannotBeWritten) {
  const Scratch scratch;
  const std::string file = scratch.Write("file", "");
  EXPECT_FALSE(EventFile::Create(file + "/runs").ok());
}

}  // namespace onward::event_file_test
