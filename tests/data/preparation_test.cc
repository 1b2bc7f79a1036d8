// SPDX-License-Identifier: Apache-2.0
#include "data/preparation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onward::preparation_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Preparation Example() {
  TablePreparation table;
  table.label = "price";
  table.task = LabelTask::kNumber;
  table.target = {206856.25, 115395.5};
  ColumnPreparation age;
  age.name = "age\xff";
  age.fill = 28.5;
  age.scale = {{29.25, 13.125}};
  ColumnPreparation city;
  city.name = "city";
  city.kind = ColumnKind::kText;
  city.form = TextForm::kCodes;
  city.categories = {"Oslo", "Paris"};
  city.other = true;
  city.fill_text = "Paris";
  ColumnPreparation when;
  when.name = "when";
  when.kind = ColumnKind::kDate;
  when.times = true;
  when.fill = 1e9;
  when.scale = std::vector<Standard>(5);
  when.scale[0] = {2000, 10};
  table.columns = {age, city, when};
  Preparation p;
  p.table = table;
  p.pictures = PicturePreparation{.height = 32,
                                  .width = 48,
                                  .channels = 3,
                                  .fit = Fit::kCrop,
                                  .scale = 1 / 255.0,
                                  .shift = 0,
                                  .mean = {0.5, 0.25, 0.125},
                                  .deviation = {0.5}};
  p.text = TextPreparation{.tokens = TokenKind::kCharacters,
                           .vocabulary = {"\n", "a", "\xc3\xa9"},
                           .lower_case = false,
                           .length = 64,
                           .column = ""};
  return p;
}

TEST(Preparation, ComesBackFromItsText) {
  const Preparation example = Example();
  const auto back = ParsePreparation(PreparationText(example));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, example);
  EXPECT_EQ(PreparationText({}), "");
  EXPECT_TRUE(ParsePreparation("")->empty());

  Preparation unnamed;
  unnamed.table.emplace();
  unnamed.table->file_columns = 3;
  unnamed.table->label_place = 2;
  ColumnPreparation first;
  first.place = 0;
  first.scale = {Standard()};
  unnamed.table->columns = {first};
  EXPECT_EQ(ParsePreparation(PreparationText(unnamed)).value(), unnamed);
}

TEST(Preparation, NonsenseIsRefused) {
  const std::string good = PreparationText(Example());
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  for (const std::string& text :
       {std::string("x"), std::string("[]"), std::string("{}"),
        replaced("\"version\":1", "\"version\":2"), replaced("[13.125]", "[0]"),
        replaced("[13.125]", "[]"), replaced("[13.125]", "[\"a\"]"), replaced("28.5", "1e300"),
        replaced("\"codes\"", "\"odd\""), replaced("[\"Oslo\",\"Paris\"]", "[\"Oslo\",\"Oslo\"]"),
        replaced("\"fill_text\":\"Paris\"", "\"fill_text\":\"Rome\""),
        replaced("\"height\":32", "\"height\":0"), replaced("\"channels\":3", "\"channels\":2"),
        replaced("\"length\":64", "\"length\":-1"),
        replaced("\"name\":\"city\"", "\"name\":\"when\""),
        replaced("\"name\":\"city\"", "\"place\":1"),
        replaced("\"task\":\"number\"", "\"task\":1")}) {
    EXPECT_FALSE(ParsePreparation(text).ok()) << text;
  }
  EXPECT_THAT(std::string(ParsePreparation(replaced("\"codes\"", "\"odd\"")).status().message()),
              HasSubstr("column 1: 'form': expected onehot or codes"));
}

TEST(Dates, AreReadAndTakenApart) {
  EXPECT_EQ(ParseDate("1970-01-01"), 0);
  EXPECT_EQ(ParseDate("2000-02-29T12:30:05Z"), 951827405);
  EXPECT_EQ(ParseDate("2000-02-29 12:30:05.25"), 951827405);
  EXPECT_EQ(ParseDate("1969-12-31 23:59"), -60);
  for (const char* text : {"", "2000", "2001-02-29", "1900-02-29", "2000-13-01", "2000-00-10",
                           "2000-01-32", "2000-1-1", "2000-01-01T", "2000-01-01T24:00",
                           "2000-01-01x", "0000-01-01", "20000-01-01", "2000-01-01T10:00:61"}) {
    EXPECT_FALSE(ParseDate(text).has_value()) << text;
  }
  // 2024-02-29 was a Thursday.
  EXPECT_THAT(PartsOfDate(*ParseDate("2024-02-29"), false), ElementsAre(2024, 2, 29, 3));
  EXPECT_THAT(PartsOfDate(*ParseDate("1969-12-31 18:45"), true),
              ElementsAre(1969, 12, 31, 2, 18.75));
  EXPECT_THAT(PartsOfDate(*ParseDate("0001-01-01"), false), ElementsAre(1, 1, 1, 0));
  // Every day of 800 years, one after the other.
  int64_t seconds = *ParseDate("1600-01-01");
  std::vector<float> before = PartsOfDate(seconds - 86400, false);
  for (int i = 0; i < 292194; ++i, seconds += 86400) {
    const std::vector<float> day = PartsOfDate(seconds, false);
    const bool next_day = day[2] == before[2] + 1 && day[1] == before[1];
    const bool next_month = day[2] == 1 && day[1] == before[1] + 1;
    const bool next_year = day[2] == 1 && day[1] == 1 && day[0] == before[0] + 1;
    ASSERT_TRUE(next_day || next_month || next_year) << day[0] << "-" << day[1] << "-" << day[2];
    ASSERT_EQ(day[3], before[3] == 6 ? 0 : before[3] + 1);
    char text[32];
    std::snprintf(text, sizeof(text), "%04d-%02d-%02d", static_cast<int>(day[0]),
                  static_cast<int>(day[1]), static_cast<int>(day[2]));
    ASSERT_EQ(ParseDate(text), seconds);
    before = day;
  }
}

}  // namespace onward::preparation_test
