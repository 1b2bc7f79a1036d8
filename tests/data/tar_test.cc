// SPDX-License-Identifier: Apache-2.0
#include "data/tar.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "data/pictures/json_field.h"
#include "data/pictures/picture.h"
#include "tests/data/deflate.h"
#include "tests/data/picture_bytes.h"
#include "tests/data/spec_fixture.h"

namespace onward::tar_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using TarTest = SpecTest;

std::string Png(uint8_t value) { return *EncodePng(Filled(1, 2, 1, value)); }

std::vector<std::string> Names(const std::string& bytes) {
  const auto members = ListTar(StoredBytes::Viewing(bytes, "t.tar"));
  EXPECT_TRUE(members.ok()) << members.status();
  std::vector<std::string> names;
  for (const TarMember& m : members.ok() ? *members : std::vector<TarMember>()) {
    names.push_back(absl::StrCat(m.name, "=", bytes.substr(m.offset, m.size)));
  }
  return names;
}

TEST(ListTar, FindsMembersByTheirHeaders) {
  const std::string long_name = absl::StrCat(std::string(120, 'd'), "/x.txt");
  EXPECT_THAT(Names(Tar({{"a.txt", "one"}, {long_name, "two"}, {"empty", ""}})),
              ElementsAre("a.txt=one", absl::StrCat(long_name, "=two"), "empty="));
  // Folders and links are passed over; a pax header names what follows it.
  EXPECT_THAT(
      Names(TarMemberBytes("d", "", '5') + TarMemberBytes("p", "22 path=b/renamed.txt\n", 'x') +
            TarMemberBytes("short", "three", '0')),
      ElementsAre("b/renamed.txt=three"));
}

TEST(ListTar, SurvivesDamage) {
  const std::string good = Tar({{"a.txt", "one"}, {std::string(120, 'n'), "two"}});
  const auto list = [](const std::string& bytes) {
    return ListTar(StoredBytes::Viewing(bytes, "t.tar"));
  };
  for (size_t n = 0; n < good.size(); n += 7) (void)list(good.substr(0, n));
  for (size_t i = 0; i < good.size(); ++i) {
    for (int value : {0, 0x7f, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = static_cast<char>(value);
      const auto members = list(bad);
      if (!members.ok()) continue;
      for (const TarMember& m : *members) EXPECT_LE(m.offset + m.size, bad.size());
    }
  }
  EXPECT_THAT(std::string(list("hello" + std::string(600, 'x')).status().message()),
              HasSubstr("t.tar: is not a tar archive"));
  EXPECT_THAT(std::string(list(good.substr(0, 514)).status().message()),
              HasSubstr("reaches past the end"));
}

TEST_F(TarTest, PicturesWithClasses) {
  const std::string one = Tar({{"000.png", Png(1)},
                               {"000.cls", "2\n"},
                               {"001.cls", "0"},
                               {"001.jpg.png", Png(2)},
                               {"notes.txt", "no picture"}});
  const std::string two = Tar({{"d/002.png", Png(3)}, {"d/002.cls", "1"}});
  scratch_.Write("s-000.tar", one);
  scratch_.Write("s-001.tar.gz", Gzip(two));
  const std::string spec = "tar:" + scratch_.Path("s-*");
  const auto data = Open(spec + "?scale=1");
  EXPECT_EQ(Describe(*data), "3 examples, x float [1, 1, 2], y int64 [], 3 classes");
  const auto batch = Take(*data, {2, 0});
  EXPECT_THAT(Values(batch[0]), ElementsAre(3, 3, 1, 1));
  EXPECT_THAT(Values(batch[1]), ElementsAre(1, 2));
  EXPECT_EQ(data->place(1), scratch_.Path("s-000.tar") + " (001.jpg.png)");
  ASSERT_EQ(data->notes().size(), 1u);
  EXPECT_THAT(data->notes()[0], HasSubstr("1 samples have no picture"));
  EXPECT_EQ(Open(absl::StrCat("tar:", scratch_.Path("s-000.tar"), ",",
                              scratch_.Path("s-001.tar.gz"), "?limit=2&size=4x4"))
                ->fields()[0]
                .shape,
            (Shape{1, 4, 4}));
  EXPECT_EQ(Describe(*Open(spec + "?label=none")), "3 examples, x float [1, 1, 2]");
}

TEST_F(TarTest, LabelsInJson) {
  scratch_.Write("s.tar", Tar({{"a.png", Png(1)},
                               {"a.json", R"({"size": [1, {"label": 7}], "label": "dog"})"},
                               {"b.json", R"({"label": "cat", "age": 2.5})"},
                               {"b.png", Png(2)}}));
  const std::string spec = "tar:" + scratch_.Path("s.tar");
  EXPECT_THAT(Open(spec)->class_names(), ElementsAre("cat", "dog"));
  EXPECT_THAT(ErrorOf(spec + "?label=age"), HasSubstr("s.tar (a.json): has no 'age'"));
  EXPECT_THAT(ErrorOf(spec + "?label=size"), HasSubstr("'size' is no single value"));
}

TEST_F(TarTest, NamesWhatIsWrong) {
  const auto error = [&](const std::string& bytes) {
    return ErrorOf("tar:" + scratch_.Write("s.tar", bytes));
  };
  EXPECT_THAT(error(Tar({{"a.png", Png(1)}, {"a.cls", "1"}, {"b.png", Png(1)}})),
              HasSubstr("s.tar: 'b' has no label"));
  EXPECT_THAT(error(Tar({{"b.png", Png(1)}, {"c.png", Png(1)}, {"c.cls", "1"}})),
              HasSubstr("'c' has a label, but samples before it have none"));
  EXPECT_THAT(error(Tar({{"a.txt", "x"}})), HasSubstr("holds no pictures"));
  EXPECT_THAT(error(Tar({{"a.png", Png(1).substr(0, 40)}, {"a.cls", "1"}})),
              AllOf(HasSubstr("s.tar (a.png): damaged picture")));
  EXPECT_THAT(error(""), HasSubstr("is empty"));
  EXPECT_THAT(ErrorOf("tar:" + scratch_.Path("none-*.tar")), HasSubstr("none-*.tar"));
}

TEST(JsonScalar, FindsMembersOfTheObjectItself) {
  const auto text = [](const std::string& json, const std::string& key) -> std::string {
    const auto value = JsonScalar(json, key);
    if (!value.ok()) return absl::StrCat("error: ", value.status().message());
    return value->value_or("nothing");
  };
  EXPECT_EQ(text(R"({"a": 1, "b" : "x\"\u00e9\n"})", "b"), "x\"\xc3\xa9\n");
  EXPECT_EQ(text(R"({"a": {"b": 1}, "b": -2.5e3})", "b"), "-2.5e3");
  EXPECT_EQ(text("{}", "a"), "nothing");
  EXPECT_EQ(text(R"({"a": "b"})", "b"), "nothing");
  for (const char* bad : {"", "[1]", "{\"a\" 1}", "{\"a\": ", "{\"a\": \"x", "{\"a\": [1",
                          "{\"a\": 1", "{\"a\": \"\\u12"}) {
    EXPECT_THAT(text(bad, "b"), HasSubstr("error: is no JSON object")) << bad;
  }
}

}  // namespace onward::tar_test
