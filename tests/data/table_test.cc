// SPDX-License-Identifier: Apache-2.0
// Tables: what is found out about their columns, what becomes of it, and what a model that
// knows them makes of another table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "data/dataset.h"
#include "data/tables/read_table.h"
#include "tests/data/deflate.h"
#include "tests/data/spec_fixture.h"

namespace onward::table_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kPeople[] =
    "name,age,city,born,paid\n"
    "Ann,20,Oslo,1990-05-01,1\n"
    "Bob,,Paris,1991-06-02,0\n"
    "Cid,40,,1992-07-03,1\n"
    "Dan,60,Oslo,,0\n";

class TableTest : public SpecTest {
 protected:
  std::string Csv(const std::string& text, const std::string& options,
                  const std::string& name = "a.csv") {
    return absl::StrCat("csv:", scratch_.Write(name, text), "?", options);
  }
  // Field `field` of all examples.
  std::vector<double> All(const Dataset& data, int field = 0) {
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < data.size(); ++i) indices.push_back(i);
    return *ToDoubles(Take(data, indices)[field]);
  }
};

TEST_F(TableTest, EveryKindOfColumn) {
  const auto data = Open(Csv(kPeople, "label=paid&drop=name&missing=mean"));
  EXPECT_EQ(Describe(*data), "4 examples, x float [8], y int64 [], 2 classes");
  // age, then city as "", Oslo, Paris, then year, month, day and weekday; the mean of dates.
  EXPECT_THAT(All(*data), ElementsAre(20, 0, 1, 0, 1990, 5, 1, 1,  //
                                      40, 0, 0, 1, 1991, 6, 2, 6,  //
                                      40, 1, 0, 0, 1992, 7, 3, 4,  //
                                      60, 0, 1, 0, 1991, 6, 2, 6));
  EXPECT_THAT(data->notes(),
              ElementsAre(AllOf(HasSubstr("1 number as they are"), HasSubstr("1 date in parts"),
                                HasSubstr("one-hot: city (3)"), HasSubstr("filled with the mean"),
                                HasSubstr("age (1), city (1), born (1)"))));
}

TEST_F(TableTest, AModelMadeForTheDataGetsItStandardised) {
  const auto data =
      Open(Csv("x,y\n1,10.5\n3,20.5\n,30.5\n5,40.5\n", "label=y"), {.made_for_data = true});
  const double deviation = std::sqrt(8.0 / 3);
  const std::vector<double> x = All(*data), y = All(*data, 1);
  EXPECT_NEAR(x[0], -2 / deviation, 1e-6);
  EXPECT_EQ(x[1], 0);
  EXPECT_EQ(x[2], 0);  // the median
  EXPECT_NEAR(y[3], 15 / std::sqrt(125.0), 1e-6);
  EXPECT_EQ(data->target(), (Standard{25.5, std::sqrt(125.0)}));
  EXPECT_THAT(data->notes()[0], AllOf(HasSubstr("1 number standardised"),
                                      HasSubstr("label standardised (mean 25.5")));
  // As they are, for other models and where that is asked for.
  EXPECT_THAT(All(*Open(Csv("x,y\n1,10.5\n3,20.5\n", "label=y"))), ElementsAre(1, 3));
  const auto as_is =
      Open(Csv("x,y\n1,10.5\n3,20.5\n", "label=y&standardise=0"), {.made_for_data = true});
  EXPECT_THAT(All(*as_is), ElementsAre(1, 3));
  EXPECT_EQ(as_is->target(), Standard());
  EXPECT_EQ(All(*Open(Csv("x,y\n1,10.5\n3,20.5\n", "label=y&standardise=target")), 1)[0], -1);
}

TEST_F(TableTest, MissingValues) {
  const std::string text = "x,y\n1,0\n,1\n9,1\n2,0\n";
  EXPECT_THAT(All(*Open(Csv(text, "label=y&missing=mean"))), ElementsAre(1, 4, 9, 2));
  EXPECT_THAT(All(*Open(Csv(text, "label=y&missing=median"))), ElementsAre(1, 2, 9, 2));
  EXPECT_THAT(All(*Open(Csv(text, "label=y&missing=-7.5"))), ElementsAre(1, -7.5, 9, 2));
  EXPECT_THAT(All(*Open(Csv(text, "label=y&missing=skip"))), ElementsAre(1, 9, 2));
  for (const char* option : {"label=y", "label=y&missing=refuse", "label=y&missing=error"}) {
    EXPECT_THAT(ErrorOf(Csv(text, option)), HasSubstr("row 2 (line 3), column 'x': is empty"));
  }
  EXPECT_THAT(ErrorOf(Csv(text, "label=y&missing=often")), HasSubstr("expected mean, median"));
  EXPECT_THAT(ErrorOf(Csv("x,y\n,0\n,1\n", "label=y&missing=mean")),
              HasSubstr("no column is left"));
  EXPECT_THAT(ErrorOf(Csv("x,y\n,0\n", "label=y&missing=skip")), HasSubstr("every row"));
}

TEST_F(TableTest, AllFindingsAtOnce) {
  std::string text = "x,z,y\n";
  for (int i = 0; i < 400; ++i) {
    absl::StrAppend(&text, i % 10 == 3 ? "" : absl::StrCat(i), ",", i == 20 ? "much" : "1", ",",
                    i % 2, "\n");
  }
  EXPECT_THAT(
      ErrorOf(Csv(text, "label=y")),
      AllOf(HasSubstr("41 things are wrong"), HasSubstr("row 4 (line 5), column 'x': is empty"),
            HasSubstr("row 14 (line 15), column 'x'"),
            HasSubstr("row 21 (line 22), column 'z': 'much' is not a number"), HasSubstr("drop=z"),
            HasSubstr("text_columns=z"), HasSubstr("and 21 more")));
  EXPECT_THAT(ErrorOf(Csv("a,b\n1,2\n3\n4,5,6\n", "label=b")),
              AllOf(HasSubstr("row 2 (line 3) has 1 fields, expected 2"),
                    HasSubstr("row 3 (line 4) has 3 fields, expected 2")));
}

TEST_F(TableTest, ManyNames) {
  std::string text = "id,town,y\n";
  for (int i = 0; i < 60; ++i) {
    absl::StrAppend(&text, "u", i, ",t", i < 40 ? i % 4 : i, ",", i % 2, "\n");
  }
  const auto few = Open(Csv(text, "label=y&max_categories=4"));
  EXPECT_EQ(few->fields()[0].shape, Shape{5});
  EXPECT_THAT(few->notes()[0], AllOf(HasSubstr("town (4 and other)"),
                                     HasSubstr("left out: id (almost all different)")));
  const auto common = Open(Csv(text, "label=y&rare=2&drop=id"));
  EXPECT_EQ(common->fields()[0].shape, Shape{5});
  const auto kept = Open(Csv(text, "label=y&drop=town&keep=id&max_categories=50"));
  EXPECT_EQ(kept->fields()[0].shape, Shape{51});
  const auto forced = Open(Csv(text, "label=y&drop=town&text_columns=id"));
  EXPECT_EQ(forced->fields()[0].shape, Shape{60});
}

TEST_F(TableTest, NamesThatAllDifferAreLeftOut) {
  const auto table = [](int rows) {
    std::string text = "name,x,y\n";
    for (int i = 0; i < rows; ++i) absl::StrAppend(&text, "n", i, ",", i % 3, ",", i % 2, "\n");
    return text;
  };
  EXPECT_EQ(Open(Csv(table(10), "label=y"))->fields()[0].shape, Shape{1});
  EXPECT_EQ(Open(Csv(table(9), "label=y"))->fields()[0].shape, Shape{10});
  EXPECT_EQ(Open(Csv(table(10), "label=y&keep=name"))->fields()[0].shape, Shape{11});
}

// Of a model that is made for the data, a rare name of the other part is no reason to stop.
TEST_F(TableTest, RareNamesOfTheOtherPart) {
  std::string text = "town,x,y\n";
  for (int i = 0; i < 40; ++i) {
    absl::StrAppend(&text, i % 4 == 0 ? absl::StrCat("t", i) : "common", ",", i % 5, ",", i % 2,
                    "\n");
  }
  for (const char* part : {"split=0.5", "fold=1/4"}) {
    const std::string spec = Csv(text, absl::StrCat("label=y&", part));
    const auto train = Open(spec, {.made_for_data = true});
    // x, common and other.
    EXPECT_EQ(train->fields()[0].shape, Shape{3}) << part;
    EXPECT_TRUE(ParseDataSpec(spec, Split::kTest, {.preparation = train->preparation()}).ok())
        << part;
  }
}

TEST_F(TableTest, WhatIsNoTextIsNamed) {
  const std::pair<std::string, const char*> cases[] = {
      {"PK\x03\x04 and so on", "Excel workbook; save the sheet as CSV"},
      {"PAR1 and so on", "a Parquet file"},
      {"\x93NUMPY and so on", "a NumPy array, which npy: reads"},
      {std::string("\xff\xfex\0,\0y\0\n\0", 10), "UTF-16; convert it: iconv -f UTF-16 -t UTF-8"},
      {std::string("x,y\n1,\0\n", 9), "holds zero bytes"},
  };
  for (const auto& [bytes, what] : cases) {
    EXPECT_THAT(ErrorOf(Csv(bytes, "label=y")), AllOf(HasSubstr("a.csv: "), HasSubstr(what)));
  }
}

// Names that are kept in the model have to be text for other programs, too.
TEST_F(TableTest, OtherEncodingsAreRefusedWhereTextIsKept) {
  const std::string header = "town,note,y\n", row = "K\xf6ln,a,0\nUlm,b,1\n";
  EXPECT_THAT(ErrorOf(Csv(header + row, "label=y")),
              AllOf(HasSubstr("a.csv: column 1 has text that is no UTF-8 ('K\\xf6ln')"),
                    HasSubstr("iconv -f WINDOWS-1252 -t UTF-8")));
  EXPECT_THAT(ErrorOf(Csv(header + row, "label=town")), HasSubstr("no UTF-8"));
  EXPECT_THAT(ErrorOf(Csv("gr\xf6\xdf"
                          "e,y\n1,0\n2,1\n",
                          "label=y")),
              HasSubstr("column 1 has text that is no UTF-8"));
  EXPECT_EQ(Open(Csv(header + row, "label=y&drop=town"))->size(), 2);
  EXPECT_EQ(Open(Csv("town,y\nKöln,0\nUlm,1\n", "label=y"))->size(), 2);
}

TEST_F(TableTest, NamesOfColumns) {
  EXPECT_THAT(ErrorOf(Csv("a,Survived\n1,0\n2,1\n", "label=survived")),
              HasSubstr("no column 'survived'; the file has columns a, Survived; did you mean "
                        "'Survived'?"));
  const std::string twice = "a,b,a,y\n1,2,3,0\n2,3,4,1\n";
  EXPECT_THAT(ErrorOf(Csv(twice, "label=y")),
              AllOf(HasSubstr("two columns are named 'a'"), HasSubstr("drop=2")));
  EXPECT_EQ(Open(Csv(twice, "label=y&drop=2"))->fields()[0].shape, Shape{2});
  // Those that are left out anyway may have any name.
  EXPECT_EQ(Open(Csv("a,y,,\n1,0,,\n2,1,,\n", "label=y"))->fields()[0].shape, Shape{1});
}

// What numbers the rows says nothing of them.
TEST_F(TableTest, RunningNumbersAreLeftOut) {
  const auto table = [](const std::string& name, int64_t step, int64_t start) {
    std::string text = absl::StrCat(name, ",x,y\n");
    for (int64_t i = 0; i < 24; ++i) {
      absl::StrAppend(&text, start + step * i, ",", i % 5, ",", i % 2, "\n");
    }
    return text;
  };
  const auto note_of = [&](const std::string& text, const std::string& options = "label=y") {
    const auto data = Open(Csv(text, options));
    return absl::StrCat(data->fields()[0].shape[0], " ", data->notes().at(0));
  };
  for (const char* name : {"PassengerId", "id", "ID", "user_id", "user id", "USER_ID", "index",
                           "Unnamed: 0", "", "#", "row"}) {
    // Rising, falling, with gaps.
    for (const int64_t step : {1, 7, -1}) {
      const std::string called = *name == '\0' ? "0" : name;
      EXPECT_THAT(
          note_of(table(name, step, 100)),
          AllOf(StartsWith("1 "),
                HasSubstr(absl::StrCat("left out: ", called,
                                       " (a number for each row; keep=", called, " takes it)"))))
          << name << step;
    }
  }
  const std::string ids = table("id", 1, 1);
  EXPECT_THAT(note_of(ids, "label=y&keep=id"),
              AllOf(StartsWith("2 "), Not(HasSubstr("left out")), Not(HasSubstr("counts"))));
  EXPECT_THAT(ErrorOf(Csv(ids, "label=y&keep=no")), HasSubstr("no column 'no'"));
  EXPECT_THAT(note_of(table("", 1, 1), "label=y&keep=0"), StartsWith("2 "));
  // Names of other things, and numbers that come again.
  for (const char* name : {"paid", "GRID", "year", "0", "identity"}) {
    EXPECT_THAT(note_of(table(name, 7, 100)), StartsWith("2 ")) << name;
  }
  EXPECT_THAT(note_of(table("id", 0, 1)), AllOf(StartsWith("2 "), Not(HasSubstr("left out"))));
  // No name tells: taken, and said.
  for (const int64_t start : {0, 1}) {
    EXPECT_THAT(note_of(table("day", 1, start), "label=y&split=0.5"),
                AllOf(StartsWith("2 "), HasSubstr("day only counts the rows (drop=day?)")));
  }
  EXPECT_THAT(note_of(table("day", 1, 2)), Not(HasSubstr("counts")));
  EXPECT_THAT(ErrorOf(Csv("id,y\n1,0\n2,1\n3,1\n", "label=y")),
              HasSubstr("no column is left as input; left out: id (a number for each row; keep=id "
                        "takes it); keep=NAME takes a column all the same"));
}

TEST_F(TableTest, NumbersThatAreNames) {
  const auto data = Open(Csv("zip,y\n10,0\n20,1\n10,1\n", "label=y&text_columns=zip"));
  EXPECT_THAT(All(*data), ElementsAre(1, 0, 0, 1, 1, 0));
  EXPECT_THAT(ErrorOf(Csv("zip,y\n10,0\n", "label=y&text_columns=zap")),
              HasSubstr("no column 'zap'"));
}

TEST_F(TableTest, CodesForEmbeddings) {
  const auto data = Open(Csv(kPeople, "label=paid&drop=name,born&missing=mean&text=codes"));
  EXPECT_EQ(Describe(*data), "4 examples, x float [1], codes int64 [1], y int64 [], 2 classes");
  EXPECT_THAT(All(*data, 1), ElementsAre(1, 2, 0, 1));
}

TEST_F(TableTest, Separators) {
  for (const char* s : {",", ";", "\t", "|"}) {
    std::string text =
        absl::StrJoin({"a", "b", "y"}, s) + "\n" + absl::StrJoin({"1", "2", "0"}, s) + "\n";
    EXPECT_THAT(All(*Open(Csv(text, "label=y"))), ElementsAre(1, 2)) << s;
  }
  EXPECT_THAT(All(*Open(Csv("a|b\n1|0\n", "label=b"))), ElementsAre(1));
  EXPECT_EQ(Open(Csv("a,b\nx,y\nz,y\n", "label=1&header=0"))->size(), 3);
  EXPECT_EQ(Open(Csv("1,2\n3,4\n5,6\n", "label=2&header=1"))->size(), 2);
}

// Read in pieces, rows are the same wherever the pieces end.
TEST_F(TableTest, RowsThatAreReadAgain) {
  std::string text = "a,\"b\nc\",y\n";
  for (int i = 0; i < 50000; ++i) {
    absl::StrAppend(&text, i, ",\"", i % 3 == 0 ? "o\"\"n\ne" : "two, three", "\",", i % 2, "\n");
    if (i % 7 == 0) text += "\r\n";
  }
  for (const bool packed : {false, true}) {
    const std::string path =
        packed ? scratch_.Write("big.csv.gz", Gzip(text)) : scratch_.Write("big.csv", text);
    DataOptions options;
    options.label = "y";
    options.shuffle = 3;
    options.limit = 20000;
    auto held = ReadTable(path, TableFile::kCsv, options, {});
    auto streamed = ReadTable(path, TableFile::kCsv, options, {}, /*most_bytes=*/1000);
    ASSERT_TRUE(held.ok() && streamed.ok()) << held.status() << streamed.status();
    EXPECT_TRUE(held->arrays.back().rows.in_memory());
    EXPECT_FALSE(streamed->arrays.back().rows.in_memory());
    EXPECT_EQ(held->place(17), streamed->place(17));
    const auto a = MakeArrayDataset(*std::move(held), options).value();
    const auto b = MakeArrayDataset(*std::move(streamed), options).value();
    EXPECT_EQ(Describe(*a), Describe(*b));
    EXPECT_EQ(All(*a), All(*b));
    EXPECT_EQ(All(*a, 1), All(*b, 1));
    EXPECT_TRUE(b->reads_slowly());
  }
}

// What is held out for evaluation says nothing about the preparation.
TEST_F(TableTest, FittedOnTheTrainingPart) {
  std::string text = "x,t,y\n";
  for (int i = 0; i < 40; ++i)
    absl::StrAppend(&text, i * i, ",t", i % 20, ",", i % 2 == 0 ? "a" : "b", "\n");
  const std::string spec = Csv(text, "label=y&split=0.5&standardise=1&rare=2");
  const auto train = Open(spec);
  const std::vector<double> x = All(*train);
  const size_t width = x.size() / 20;
  double sum = 0, squares = 0;
  for (size_t i = 0; i < 20; ++i) {
    sum += x[i * width];
    squares += x[i * width] * x[i * width];
  }
  EXPECT_NEAR(sum, 0, 1e-4);
  EXPECT_NEAR(squares, 20, 1e-3);
  const Preparation known = *train->preparation();
  const auto rest = ParseDataSpec(spec, Split::kTest, {.preparation = &known}).value();
  EXPECT_EQ(rest->size(), 20);
  EXPECT_EQ(rest->fields()[0].shape, train->fields()[0].shape);
}

// Names that only the held-out part has: refused, or taken for rare ones.
TEST_F(TableTest, NamesThatTheTrainingPartLacks) {
  std::string text = "x,t,y\n";
  for (int i = 0; i < 10; ++i) absl::StrAppend(&text, i, ",t", i, ",", i % 2, "\n");
  EXPECT_THAT(ErrorOf(Csv(text, "label=y&split=0.5")),
              AllOf(HasSubstr("5 things are wrong"), HasSubstr("is unknown to the model"),
                    HasSubstr("rare=N"), Not(HasSubstr("text_columns"))));
  EXPECT_EQ(Open(Csv(text, "label=y&split=0.5&rare=2"))->fields()[0].shape, Shape{2});
}

TEST_F(TableTest, JsonLines) {
  const std::string path = scratch_.Write(
      "a.jsonl",
      "{\"age\": 3, \"city\": \"Oslo\", \"ok\": true, \"y\": \"no\"}\n\n"
      "{\"y\": \"yes\", \"city\": \"12\", \"age\": null, \"late\": 1}\n"
      "{\"age\": 5.5, \"city\": \"Oslo\", \"ok\": false, \"late\": 2, \"y\": \"no\"}");
  const auto data = Open("jsonl:" + path + "?label=y&missing=0");
  // age, city as "12" and Oslo, ok, late.
  EXPECT_THAT(All(*data), ElementsAre(3, 0, 1, 1, 0, 0, 1, 0, 0, 1, 5.5, 0, 1, 0, 2));
  EXPECT_THAT(data->class_names(), ElementsAre("no", "yes"));
  EXPECT_THAT(data->place(1), HasSubstr("row 2 (line 3)"));
  const auto error = [&](const std::string& text) {
    return ErrorOf("jsonl:" + scratch_.Write("b.jsonl", text) + "?label=y");
  };
  EXPECT_THAT(error("{\"y\":1}\n{\"y\":}\n"),
              AllOf(HasSubstr("b.jsonl: line 2"), HasSubstr("is no JSON")));
  EXPECT_THAT(error("[1]\n"), HasSubstr("no JSON object"));
  EXPECT_THAT(error("[\n {\"y\": 1}\n]\n"), HasSubstr("jq -c '.[]' LIST.json > rows.jsonl"));
  EXPECT_THAT(error("{\n \"y\": 1\n}\n"), HasSubstr("expected one JSON object on every line"));
  EXPECT_THAT(error("{\"x\":[1],\"y\":1}\n"), HasSubstr("'x' is a list"));
  EXPECT_THAT(error(""), HasSubstr("empty"));
}

// --- A model that knows its table

class KnownTableTest : public TableTest {
 protected:
  KnownTableTest() {
    const auto data = Open(Csv(kPeople, "label=paid&drop=name&missing=median&standardise=1"));
    known_ = *data->preparation();
    rows_ = All(*data);
  }
  DataContext Context(bool labels_optional = false) {
    return {.preparation = &known_, .labels_optional = labels_optional};
  }
  Preparation known_;
  std::vector<double> rows_;
};

TEST_F(KnownTableTest, ColumnsGoByName) {
  const auto data = Open(Csv("extra,paid,born,city,age\n"
                             "x,1,1990-05-01,Oslo,20\n"
                             "x,0,1991-06-02,Paris,\n"
                             "x,1,1992-07-03,,40\n"
                             "x,0,,Oslo,60\n",
                             "label=paid"),
                         Context());
  EXPECT_EQ(All(*data), rows_);
  EXPECT_TRUE(data->notes().empty());
  EXPECT_EQ(*data->preparation(), known_);
  // The label's name is known, too, and it may be absent where that is allowed.
  EXPECT_EQ(Open(Csv(kPeople, ""), Context())->classes(), 2);
  const std::string unlabelled = "age,city,born\n20,Oslo,1990-05-01\n";
  EXPECT_THAT(ErrorOf(Csv(unlabelled, ""), Context()), HasSubstr("which column is the label"));
  const auto rows = Open(Csv(unlabelled, ""), Context(/*labels_optional=*/true));
  EXPECT_EQ(rows->fields().size(), 1u);
  EXPECT_EQ(All(*rows), std::vector<double>(rows_.begin(), rows_.begin() + 8));
}

TEST_F(KnownTableTest, WhatItDoesNotKnowIsRefused) {
  EXPECT_THAT(
      ErrorOf(Csv("age,city,born,paid\n20,Rome,1990-05-01,1\n30,Oslo,never,1\n", ""), Context()),
      AllOf(HasSubstr("row 1 (line 2), column 'city': 'Rome' is unknown to the model, "
                      "which knows '', 'Oslo', 'Paris'"),
            HasSubstr("row 2 (line 3), column 'born': 'never' is no date")));
  EXPECT_THAT(ErrorOf(Csv("age,town,paid\n20,Rome,1\n", ""), Context()),
              AllOf(HasSubstr("has no column 'city', 'born', which the model takes"),
                    HasSubstr("columns age, town, paid")));
  EXPECT_THAT(ErrorOf(Csv("20,Rome,1990-05-01,1\n", "label=-1"), Context()),
              HasSubstr("has no column"));
}

TEST_F(KnownTableTest, OthersAreTakenForRareOnes) {
  const auto data = Open(Csv("t,y\na,0\na,1\nb,1\nb,0\nc,1\n", "label=y&rare=2"));
  const Preparation known = *data->preparation();
  EXPECT_THAT(data->notes(), ElementsAre(Not(HasSubstr("taken for"))));
  const auto others =
      Open(Csv("t,y\nb,1\nz,0\n,1\nw,0\n", "label=y&missing=skip"), {.preparation = &known});
  EXPECT_THAT(All(*others), ElementsAre(0, 1, 0, 0, 0, 1, 0, 0, 1));
  EXPECT_THAT(others->notes(),
              ElementsAre(HasSubstr("a.csv: taken for 'other', as rare names were: t ('z' in row 2 "
                                    "(line 3), 2 rows)")));
  const auto none = Open(Csv("t,y\nz,0\nb,1\n", "label=y"), {.preparation = &known});
  EXPECT_THAT(All(*none), ElementsAre(0, 0, 1, 0, 1, 0));
}

TEST_F(KnownTableTest, WithoutHeaderByPlace) {
  const auto data = Open(Csv("1,0,5\n2,1,6\n", "label=1"));
  const Preparation known = *data->preparation();
  EXPECT_EQ(known.table->file_columns, 3);
  EXPECT_THAT(All(*Open(Csv("9,1,8\n", ""), {.preparation = &known})), ElementsAre(9, 8));
  EXPECT_THAT(All(*Open(Csv("9,8\n", ""), {.preparation = &known, .labels_optional = true})),
              ElementsAre(9, 8));
  EXPECT_THAT(ErrorOf(Csv("9\n", ""), {.preparation = &known, .labels_optional = true}),
              HasSubstr("has 1 columns, the model takes 3"));
}

TEST_F(KnownTableTest, NumbersStayNumbers) {
  const auto data = Open(Csv("x,y\n1,10.5\n2,20.25\n", "label=y"));
  const Preparation known = *data->preparation();
  // These would be taken for classes.
  EXPECT_EQ(Open(Csv("x,y\n1,1\n2,0\n", "label=y"), {.preparation = &known})->classes(), 0);
  EXPECT_THAT(ErrorOf(Csv("x,y\n1,few\n", "label=y"), {.preparation = &known}),
              HasSubstr("are words"));
}

TEST_F(KnownTableTest, RawColumns) {
  known_.table->raw = RawTable::kColumns;
  const auto data = Open(Csv(kPeople, ""), Context());
  const std::vector<FieldInfo> fields = data->fields();
  ASSERT_EQ(fields.size(), 4u);
  EXPECT_EQ(fields[0].name, "age");
  EXPECT_EQ(fields[1].dtype, DType::kString);
  std::vector<Tensor> batch;
  ASSERT_TRUE(data->Fill({1, 2, 3}, &batch).ok());
  EXPECT_TRUE(std::isnan(batch[0].data<float>()[0]));
  EXPECT_THAT(batch[1].values<std::string>(), ElementsAre("Paris", "", "Oslo"));
  EXPECT_EQ(batch[2].data<int64_t>()[2], std::numeric_limits<int64_t>::min());
}

TEST_F(TableTest, DamageIsNoCrash) {
  const std::string good = std::string(kPeople) + "\"a\"\"b\",1,\"c\n\",2000-01-01,0\n";
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(~bad[i]);
    (void)ParseDataSpec(Csv(bad, "label=-1&missing=mean"), Split::kTrain);
    (void)ParseDataSpec(Csv(good.substr(0, i), "label=-1"), Split::kTrain);
    bad[i] = '"';
    (void)ParseDataSpec(Csv(bad, "label=-1&missing=median"), Split::kTrain);
  }
}

}  // namespace onward::table_test
