// SPDX-License-Identifier: Apache-2.0
#include "core/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onward::json_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Json, ReadsValues) {
  const Json v =
      *ParseJson(R"( {"a": [1, -2.5e1, "x\n\u00e9\ud83d\ude00"], "b": {"c": true}, "d": null} )");
  ASSERT_TRUE(v.is(Json::Kind::kObject));
  const Json& a = *v.Find("a");
  ASSERT_EQ(a.items().size(), 3u);
  EXPECT_EQ(a.items()[0].number(), 1);
  EXPECT_EQ(a.items()[1].text(), "-2.5e1");
  EXPECT_EQ(a.items()[2].text(), "x\n\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_TRUE(v.Find("b")->Find("c")->truth());
  EXPECT_TRUE(v.Find("d")->is(Json::Kind::kNull));
  EXPECT_EQ(v.Find("e"), nullptr);
  EXPECT_TRUE(ParseJson("NaN")->is(Json::Kind::kNull));
}

TEST(Json, RefusesWhatIsNone) {
  for (const char* text :
       {"", "{", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "01x", "+1", ".5", "1e999", "\"a",
        "\"\\q\"", "\"\\ud800\"", "tru", "1 2", "[1 2]", "\"\n\"", "--1", "1-1"}) {
    EXPECT_THAT(std::string(ParseJson(text).status().message()), HasSubstr("is no JSON")) << text;
  }
  EXPECT_FALSE(ParseJson(std::string(100000, '[')).ok());
  EXPECT_FALSE(ParseJson(std::string(100000, '{')).ok());
}

TEST(Json, ListsHoldAnyBytes) {
  const std::vector<std::string> names = {"", "a\"b", "\xff\x80", "\xc3\xa9", std::string("\0", 1)};
  EXPECT_EQ(*ParseJsonStringList(JsonStringList(names)), names);
  JsonWriter w;
  w.BeginObject().Key("n").Bytes("\xff").EndObject();
  EXPECT_EQ(ParseJson(w.text())->Find("n")->text(), "\xff");
  EXPECT_THAT(*ParseJsonStringList(" [ ] "), ElementsAre());
  for (const char* text : {"{}", "[1]", "\"a\"", "[\"a\",null]"}) {
    EXPECT_FALSE(ParseJsonStringList(text).ok()) << text;
  }
}

}  // namespace onward::json_test
