// SPDX-License-Identifier: Apache-2.0
#include "cli/toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace onward::toml_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Shown(const TomlValue& v) {
  switch (v.kind) {
    case TomlValue::Kind::kString: return absl::StrCat("'", v.text, "'");
    case TomlValue::Kind::kNumber:
    case TomlValue::Kind::kBoolean: return v.text;
    case TomlValue::Kind::kList: break;
  }
  return absl::StrCat(
      "[",
      absl::StrJoin(v.items, " ",
                    [](std::string* out, const TomlValue& item) { out->append(Shown(item)); }),
      "]");
}

// "table.key@line=value" of every entry.
std::vector<std::string> Read(const std::string& text) {
  const auto entries = ParseToml(text);
  EXPECT_TRUE(entries.ok()) << entries.status();
  std::vector<std::string> shown;
  if (!entries.ok()) return shown;
  for (const TomlEntry& e : *entries) {
    shown.push_back(absl::StrCat(e.table, ".", e.key, "@", e.line, "=", Shown(e.value)));
  }
  return shown;
}

TEST(Toml, ReadsKeysValuesTablesAndComments) {
  EXPECT_THAT(Read("# a run\n"
                   "model = \"a \\\"b\\\".onnx\"  # here\n"
                   "\n"
                   "save-every=10\r\n"
                   "lr = -1_000.5e-3\n"
                   "'odd key' = 'c:\\x'\n"
                   "quiet = true\n"
                   "[optimizer]\n"
                   "  name = \"adamw\"\n"
                   "  betas = [0.9, # first\n"
                   "           0.999,\n"
                   "          ]\n"
                   "[ data ]\n"
                   "list = [['a'], []]"),
              ElementsAre(".model@2='a \"b\".onnx'", ".save-every@4=10", ".lr@5=-1000.5e-3",
                          ".odd key@6='c:\\x'", ".quiet@7=true", "optimizer.name@9='adamw'",
                          "optimizer.betas@10=[0.9 0.999]", "data.list@14=[['a'] []]"));
  EXPECT_THAT(Read(""), ElementsAre());
  EXPECT_THAT(Read("a = \"\\u00e9\\U0001F600\\t\\\\\""),
              ElementsAre(".a@1='\xc3\xa9\xf0\x9f\x98\x80\t\\'"));
}

TEST(Toml, RefusesEverythingElseWithItsLine) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"a", "line 1: expected '=' behind 'a'"},
           {"\n= 3", "line 2: expected KEY = VALUE"},
           {"a =", "line 1: a value is missing"},
           {"a = # nothing", "line 1: a value is missing"},
           {"a = b", "line 1: 'b' is no number, true or false; text stands in quotes: \"b\""},
           {"a = 1 b = 2", "line 1: expected the end of the line, got 'b = 2'"},
           {"a = 1\na = 2", "line 2: 'a' stands twice"},
           {"a = \"b", "line 1: a string does not end with \""},
           {"a = 'b\n'", "line 1: a string does not end with '"},
           {"a = \"\\x\"", "is no escape"},
           {"a = \"\\ud800\"", "is no escape"},
           {"a = \"\"\"b\"\"\"", "strings of several lines"},
           {"a = [1,\n2\n", "line 1: a list that begins here"},
           {"a = [1 2]", "line 1: a list that begins here"},
           {"a = [[[[[[[[[1]]]]]]]]]", "too deep"},
           {"a = {b = 1}", "tables on one line"},
           {"a.b = 1", "keys with dots"},
           {"[a]\n[a]", "line 2: table [a] stands twice"},
           {"[a.b]", "tables within tables"},
           {"[[a]]", "lists of tables"},
           {"[a", "expected ']'"},
           {"[a] b = 1", "expected the end of the line"},
           {"a = 012", "'012' is no number"},
           {"a = 1__0", "is no number"},
           {"a = .5", "is no number"},
           {"a = 5.", "is no number"},
           {"a = 1e", "is no number"},
           {"a = 0x10", "is no number"},
           {"a = nan", "is no number"},
           {"a = True", "is no number"},
           {std::string("a = \"b\0\"", 8), "does not end"}}) {
    const auto entries = ParseToml(text);
    EXPECT_FALSE(entries.ok()) << text;
    EXPECT_THAT(std::string(entries.status().message()), HasSubstr(message)) << text;
  }
}

TEST(Toml, WritesWhatItReads) {
  for (const char* text :
       {"plain", "1e-3", "012", "true", "a\"b\\c\n", "", "0.5", "-7", "1_000", "é"}) {
    const auto entries = ParseToml(absl::StrCat("a = ", TomlText(text)));
    ASSERT_TRUE(entries.ok()) << entries.status();
    EXPECT_EQ(entries->at(0).value.text, text);
  }
  EXPECT_EQ(TomlText("1e-3"), "1e-3");
  EXPECT_EQ(TomlText("cross_entropy"), "\"cross_entropy\"");
}

}  // namespace onward::toml_test
