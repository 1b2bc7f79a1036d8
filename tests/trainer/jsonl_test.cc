// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/log/jsonl.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <limits>

#include "tests/support/scratch.h"

namespace onward::jsonl_test {

TEST(JsonWriter, WritesObjectsAndArrays) {
  JsonWriter w;
  w.BeginObject().Field("step", 3).Field("loss", 0.5).Field("name", "a\"b").Field("done", true);
  w.Key("dims").Values(std::vector<int64_t>{1, 2}).Key("none").Null().Key("empty").BeginObject();
  w.EndObject().Key("list").BeginArray().BeginArray().EndArray().Value(1u).EndArray().EndObject();
  EXPECT_EQ(w.text(),
            R"({"step":3,"loss":0.5,"name":"a\"b","done":true,"dims":[1,2],"none":null,"empty":{},)"
            R"("list":[[],1]})");
}

TEST(JsonWriter, RefusesWrongOrder) {
  EXPECT_DEATH(JsonWriter().BeginObject().Value(1), "key");
  EXPECT_DEATH(JsonWriter().BeginArray().Key("a"), "key");
  EXPECT_DEATH(JsonWriter().BeginArray().EndObject(), "brackets");
  EXPECT_DEATH(JsonWriter().Value(1).Value(2), "one value");
}

TEST(JsonNumber, ReadsBackAsTheSameNumber) {
  for (double v : {0.0, -0.0, 0.1, 1.0 / 3, 1e-310, 1.7976931348623157e308, 123456789012345680.0}) {
    EXPECT_EQ(std::bit_cast<uint64_t>(std::strtod(JsonNumber(v).c_str(), nullptr)),
              std::bit_cast<uint64_t>(v));
  }
  for (float v : {0.1f, 1e-45f, 3.4028235e38f, 16777217.0f}) {
    EXPECT_EQ(std::strtof(JsonNumber(v).c_str(), nullptr), v);
  }
  EXPECT_EQ(JsonNumber(0.1f), "0.1");
  EXPECT_EQ(JsonNumber(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(JsonNumber(-std::numeric_limits<float>::infinity()), "null");
}

TEST(JsonWriter, KeepsLargeIntegers) {
  JsonWriter w;
  w.BeginArray()
      .Value(std::numeric_limits<int64_t>::min())
      .Value(std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(w.EndArray().text(), "[-9223372036854775808,18446744073709551615]");
}

TEST(JsonString, EscapesWhatJsonRequires) {
  EXPECT_EQ(JsonString("a\"\\\n\r\t"), R"("a\"\\\n\r\t")");
  EXPECT_EQ(JsonString(absl::string_view("\0\x1f\x7f", 3)), R"("\u0000\u001f\u007f")");
  EXPECT_EQ(JsonString("h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "\"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
}

TEST(JsonString, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(JsonString("\xff"), R"("\ufffd")");
  EXPECT_EQ(JsonString("a\xc3"), R"("a\ufffd")");
  EXPECT_EQ(JsonString("\xc0\xaf"), R"("\ufffd\ufffd")");                      // overlong
  EXPECT_EQ(JsonString("\xed\xa0\x80"), R"("\ufffd\ufffd\ufffd")");            // surrogate
  EXPECT_EQ(JsonString("\xf4\x90\x80\x80"), R"("\ufffd\ufffd\ufffd\ufffd")");  // past U+10FFFF
}

JsonWriter Number(int n) {
  JsonWriter w;
  w.Value(n);
  return w;
}

TEST(JsonlFile, StartsOrContinues) {
  Scratch scratch;
  const std::string path = scratch.Path("log.jsonl");
  ASSERT_TRUE(JsonlFile::Open(path, true)->Append(Number(1)).ok());
  ASSERT_TRUE(JsonlFile::Open(path, true)->Append(Number(2)).ok());
  EXPECT_EQ(scratch.Read("log.jsonl"), "1\n2\n");
  ASSERT_TRUE(JsonlFile::Open(path, false)->Append(Number(3)).ok());
  EXPECT_EQ(scratch.Read("log.jsonl"), "3\n");
}

TEST(JsonlFile, CutsHalfALineBeforeContinuing) {
  Scratch scratch;
  const std::string path = scratch.Write("log.jsonl", "1\n{\"step\":");
  ASSERT_TRUE(JsonlFile::Open(path, true)->Append(Number(2)).ok());
  EXPECT_EQ(scratch.Read("log.jsonl"), "1\n2\n");
}

TEST(JsonlFile, ReportsFailure) {
  EXPECT_FALSE(JsonlFile::Open("/no/such/folder/log.jsonl", false).ok());
  auto full = JsonlFile::Open("/dev/full", false);
  ASSERT_TRUE(full.ok());
  EXPECT_FALSE(full->Append(Number(1)).ok());
}

}  // namespace onward::jsonl_test
