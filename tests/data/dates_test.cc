// SPDX-License-Identifier: Apache-2.0
// Dates and numbers as files of other places write them.
#include "data/dates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/data/spec_fixture.h"

namespace onward::dates_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kDay = DateOrder::kDayFirst, kMonth = DateOrder::kMonthFirst,
               kUnknown = DateOrder::kUnknown;

TEST(Dates, OtherSpellings) {
  const struct {
    const char *text, *iso;
    DateOrder order;
  } cases[] = {
      {"2024/2/9", "2024-02-09", kUnknown},
      {"2024/02/09 7:05", "2024-02-09 07:05", kUnknown},
      {"9.2.2024", "2024-02-09", kUnknown},
      {"09.02.2024 23:59:58", "2024-02-09 23:59:58", kMonth},
      {"9/2/2024", "2024-02-09", kDay},
      {"9/2/2024", "2024-09-02", kMonth},
      {"09-02-2024", "2024-02-09", kDay},
      {"2/29/2024 11:59 PM", "2024-02-29 23:59", kMonth},
      {"2/29/2024 12:30 am", "2024-02-29 00:30", kMonth},
      {"29/2/2024T12:00:01PM", "2024-02-29 12:00:01", kDay},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(ParseDate(c.text, c.order), ParseDate(c.iso)) << c.text;
    EXPECT_TRUE(ParseDate(c.iso).has_value()) << c.iso;
  }
  for (const char* text : {"9/2/24", "9/2-2024", "9/13/2024", "31/4/2024", "2024/2-9", "9.13.2024",
                           "1/2/2024 13:00 PM", "1/2/2024 0:30 AM", "1/2/2024x", "1/2", "1.5"}) {
    EXPECT_FALSE(ParseDate(text, kDay).has_value()) << text;
  }
  EXPECT_TRUE(NeedsDateOrder("1/2/2024"));
  EXPECT_TRUE(NeedsDateOrder("13-1-2024"));
  for (const char* text : {"1.2.2024", "2024/1/2", "13/13/2024", "word"}) {
    EXPECT_FALSE(NeedsDateOrder(text)) << text;
  }
}

class SpelledTest : public SpecTest {
 protected:
  std::string Csv(const std::string& text, const std::string& options) {
    return absl::StrCat("csv:", scratch_.Write("a.csv", text), "?label=y", options);
  }
  std::vector<double> X(const std::string& spec, const DataContext& context = {}) {
    const auto data = Open(spec, context);
    std::vector<int64_t> all;
    for (int64_t i = 0; i < data->size(); ++i) all.push_back(i);
    return Values(Take(*data, all)[0]);
  }
  // Year, month, day, weekday.
  std::vector<double> OfMarchSecond() { return {2024, 3, 2, 5}; }
};

TEST_F(SpelledTest, TheFileTellsWhichComesFirst) {
  EXPECT_THAT(X(Csv("d,y\n2/3/2024,0\n13/3/2024,1\n", "")),
              ElementsAre(2024, 3, 2, 5, 2024, 3, 13, 2));
  EXPECT_THAT(X(Csv("d,y\n3/2/2024,0\n3/13/2024,1\n", "")),
              ElementsAre(2024, 3, 2, 5, 2024, 3, 13, 2));
  // Another column tells as well.
  EXPECT_THAT(X(Csv("d,e,y\n2/3/2024,31-12-1999,0\n", "")),
              ElementsAre(2024, 3, 2, 5, 1999, 12, 31, 4));
  EXPECT_THAT(Open(Csv("d,y\n2/3/2024,0\n13/3/2024,1\n", ""))->notes(),
              ElementsAre(HasSubstr("1 date (day/month/year) in parts")));
  EXPECT_THAT(Open(Csv("d,y\n2.3.2024,0\n", ""))->notes(), ElementsAre(HasSubstr("1 date in")));
}

TEST_F(SpelledTest, WhereNothingTellsTheUserHasTo) {
  const std::string open = "d,e,y\n2/3/2024,1-2-2023,0\n4/5/2024,3-4-2023,1\n";
  EXPECT_THAT(ErrorOf(Csv(open, "")),
              AllOf(HasSubstr("column 'd' (2/3/2024) and column 'e' (1-2-2023)"),
                    HasSubstr("dates=dmy or dates=mdy")));
  EXPECT_EQ(X(Csv("d,y\n2/3/2024,0\n", "&dates=dmy")), OfMarchSecond());
  EXPECT_EQ(X(Csv("d,y\n3/2/2024,0\n", "&dates=mdy")), OfMarchSecond());
  EXPECT_THAT(ErrorOf(Csv("d,y\n13/2/2024,0\n", "&dates=mdy")),
              HasSubstr("row 1 (line 2), column 'd': '13/2/2024' is no date with the month first"));
  EXPECT_THAT(ErrorOf(Csv("d,e,y\n13/2/2024,2/13/2024,0\n", "")),
              HasSubstr("column 'd' has the day first and column 'e' the month"));
  EXPECT_THAT(ErrorOf(Csv(open, "&dates=ymd")), HasSubstr("expected dmy or mdy"));
}

TEST_F(SpelledTest, AModelRemembersTheOrder) {
  const auto trained = Open(Csv("d,y\n2/3/2024,0\n13/3/2024,1\n", ""));
  EXPECT_EQ(trained->preparation()->table->dates, kDay);
  const auto kept = ParsePreparation(PreparationText(*trained->preparation()));
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(*kept, *trained->preparation());
  const DataContext knows{.preparation = &*kept};
  EXPECT_EQ(X(Csv("d,y\n2/3/2024,0\n", ""), knows), OfMarchSecond());
  EXPECT_EQ(X(Csv("d,y\n2024-03-02,0\n", ""), knows), OfMarchSecond());
  EXPECT_EQ(X(Csv("d,y\n3/2/2024,0\n", "&dates=mdy"), knows), OfMarchSecond());
  const auto iso = Open(Csv("d,y\n2024-03-02,0\n", ""));
  EXPECT_THAT(ErrorOf(Csv("d,y\n2/3/2024,0\n", ""), {.preparation = iso->preparation()}),
              HasSubstr("may have the day or the month first: say dates=dmy or dates=mdy"));
}

TEST_F(SpelledTest, DecimalCommas) {
  const struct {
    const char *text, *options;
    std::vector<double> x;
  } cases[] = {
      {"a;b;y\n1,5;2,25;0\n-0,125;3;1\n", "", {1.5, 2.25, -0.125, 3}},
      {"a\tb\ty\n1,5e3\t,5\t0\n", "", {1500, 0.5}},
      {"a;b;y\n1,125;7;0\n", "&decimal=comma", {1.125, 7}},
      {"a;b;y\n1,125;0,5;0\n", "", {1.125, 0.5}},
      {"a;b;y\n1.5;7;0\n", "", {1.5, 7}},
  };
  for (const auto& c : cases) EXPECT_EQ(X(Csv(c.text, c.options)), c.x) << c.text;
  // Without a header, too: the commas do not separate.
  EXPECT_THAT(X("csv:" + scratch_.Write("n.csv", "1,5;2,25;0\n1,75;3;1\n") + "?label=-1"),
              ElementsAre(1.5, 2.25, 1.75, 3));
  const auto data = Open(Csv("a;b;y\n1,5;2,25;0,5\n2,5;2,75;7,5\n", ""));
  EXPECT_THAT(data->notes(), ElementsAre(HasSubstr("2 numbers with decimal commas as they are")));
  EXPECT_THAT(Values(Take(*data, {0, 1})[1]), ElementsAre(0.5, 7.5));
  EXPECT_THAT(Open(Csv("a;y\n1;0\n", ""))->notes(), ElementsAre(Not(HasSubstr("commas"))));
}

TEST_F(SpelledTest, ThousandsAreLeftAlone) {
  EXPECT_THAT(ErrorOf(Csv("a;y\n1,234;0\n5;1\n", "")),
              AllOf(HasSubstr("line 2: the comma of 1,234 may be"), HasSubstr("decimal=comma")));
  // Other numbers tell that commas are no decimal ones: what has them is text, as before.
  for (const char* text :
       {"a;b;y\n1,234;0.5;0\n5,678;1.5;1\n", "a;b;y\n1,234,567;5;0\n1,234;6;1\n"}) {
    EXPECT_THAT(Open(Csv(text, ""))->notes()[0], HasSubstr("one-hot: a (2)")) << text;
  }
  // Where commas are decimal, points separate thousands: a mistake among numbers.
  std::string rows = "a;y\n1.234;0\n";
  for (int i = 0; i < 20; ++i) absl::StrAppend(&rows, i, ",5;1\n");
  EXPECT_THAT(ErrorOf(Csv(rows, "")), HasSubstr("row 1 (line 2), column 'a': '1.234' is not a"));
  EXPECT_THAT(ErrorOf(Csv("a,y\n1,0\n", "&decimal=comma")), HasSubstr("commas between its fields"));
  EXPECT_THAT(ErrorOf(Csv("a;y\n1;0\n", "&decimal=dot")), HasSubstr("expected comma or point"));
}

TEST_F(SpelledTest, AModelRemembersDecimalCommas) {
  const auto trained = Open(Csv("a;y\n1,5;0\n2,5;1\n", ""));
  EXPECT_TRUE(trained->preparation()->table->decimal_comma);
  EXPECT_THAT(X(Csv("a;y\n1,125;0\n", ""), {.preparation = trained->preparation()}),
              ElementsAre(1.125));
  EXPECT_THAT(X(Csv("a,y\n1.5,0\n", ""), {.preparation = trained->preparation()}),
              ElementsAre(1.5));
}

}  // namespace onward::dates_test
