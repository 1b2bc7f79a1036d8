// SPDX-License-Identifier: Apache-2.0
// From a table to a model that takes its rows as they are, with the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/onnx_io/model.h"
#include "tests/cli/journey.h"

namespace onward::tables_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Passengers whose survival depends on fare, age, class and sex; some ages and ports are empty.
std::string Passengers(int rows, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  const auto uniform = [&] { return static_cast<double>(random() % 10000) / 10000; };
  std::string text = "id,class,sex,age,fare,port,boarded,survived\n";
  for (int i = 0; i < rows; ++i) {
    const int cabin = 1 + static_cast<int>(random() % 3);
    const bool woman = random() % 2 == 0;
    const double age = std::round(uniform() * 70), fare = 120.0 / cabin * uniform();
    const double score = (woman ? 1.5 : -1.5) + (age < 14 ? 2 : 0) - (cabin - 2) + fare / 60 - 0.5;
    const bool survived = uniform() < 1 / (1 + std::exp(-2 * score));
    absl::StrAppend(&text, "P", i, ",", cabin, ",", woman ? "woman" : "man", ",");
    if (random() % 5 != 0) absl::StrAppend(&text, age);
    absl::StrAppend(&text, ",", std::round(fare * 100) / 100, ",",
                    std::vector<std::string>{"", "Cork", "Cobh", "Dover"}[random() % 4],
                    ",1912-04-", 10 + random() % 5, ",", survived ? "yes" : "no", "\n");
  }
  return text;
}

class TablesTest : public Journey {
 protected:
  double Accuracy(const std::string& line) { return Field(line, "accuracy"); }
};

TEST_F(TablesTest, FromATableToAModelThatTakesRawRows) {
  scratch_.Write("train.csv", Passengers(800, 1));
  scratch_.Write("test.csv", Passengers(400, 2));
  const std::string train = "'csv:" + Path("train.csv") + "?label=survived&text_columns=class'";
  const CommandResult r =
      Onward("train mlp:32,32 --data " + train + " --eval csv:" + Path("test.csv") +
             " --epochs 30 -o " + Path("t.onnx"));
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_THAT(r.errors, AllOf(HasSubstr("note: " + Path("train.csv") + ": 2 numbers standardised"),
                              HasSubstr("1 date in parts standardised"), HasSubstr("sex (2)"),
                              HasSubstr("filled with the median"), HasSubstr("left out: id")));
  const double accuracy = Accuracy("eval " + Path("t.onnx") + " --data csv:" + Path("test.csv"));
  EXPECT_GT(accuracy, 0.8);

  // The plain model knows its preparation; the raw one does it itself.
  Must("export " + Path("t.onnx") + " -o " + Path("plain.onnx"));
  Must("export " + Path("t.onnx") + " --raw columns --names -o " + Path("raw.onnx"));
  Must("export " + Path("t.onnx") + " --raw matrix -o " + Path("matrix.onnx"));
  for (const char* model : {"plain.onnx", "raw.onnx", "matrix.onnx"}) {
    EXPECT_EQ(Accuracy("eval " + Path(model) + " --data csv:" + Path("test.csv")), accuracy)
        << model;
  }
  const Graph raw = InferenceGraph(ReadModel(Path("raw.onnx")).value()).value();
  std::vector<std::string> inputs;
  for (const NamedType& input : raw.inputs) inputs.push_back(input.name);
  EXPECT_THAT(inputs,
              ::testing::UnorderedElementsAre("class", "sex", "age", "fare", "port", "boarded"));
  EXPECT_EQ(raw.outputs.back().name, "label");
  EXPECT_EQ(raw.outputs.back().type.dtype, DType::kString);

  // Predictions by name, without labels, also of rows as they are typed.
  scratch_.Write("rows.csv",
                 "sex,age,fare,port,boarded,class\nwoman,9,80,,1912-04-12,1\nman,40,5,Cork,,3\n");
  for (const char* model : {"t.onnx", "plain.onnx", "raw.onnx", "matrix.onnx"}) {
    Must("predict " + Path(model) + " --data csv:" + Path("rows.csv") + " -o " + Path("p.csv"));
    const std::vector<std::string> lines = Lines("p.csv");
    ASSERT_EQ(lines.size(), 3u) << model;
    EXPECT_EQ(lines[0], "row,prediction,probability");
    EXPECT_THAT(lines[1], HasSubstr("1,yes,0.")) << model;
    EXPECT_THAT(lines[2], HasSubstr("2,no,0.")) << model;
  }
  const CommandResult shown =
      Onward("run " + Path("raw.onnx") + " -i age=25 -i fare=7.5 --json --only label");
  EXPECT_EQ(shown.exit_code, 2);  // all inputs are needed, and named
  EXPECT_THAT(shown.errors, HasSubstr("sex"));
}

TEST_F(TablesTest, WhatTheModelKnowsDecides) {
  scratch_.Write("train.csv", "size,kind,y\n1,a,10.5\n2,b,20.5\n3,a,30.5\n4,b,41.5\n");
  const std::string train = "--data 'csv:" + Path("train.csv") + "?label=y' --batch 4 --quiet";
  Must("train mlp:8 " + train + " --epochs 5 -o " + Path("t.onnx"));
  // Other columns, other order, a name that it does not know.
  scratch_.Write("good.csv", "kind,other,size,y\nb,9,2,20.5\na,9,,30.5\n");
  Must("eval " + Path("t.onnx") + " --data csv:" + Path("good.csv"));
  Must("train x --resume --epochs 6 " + train + " -o " + Path("t.onnx"));
  scratch_.Write("bad.csv", "size,kind,y\n1,a,1\n2,c,2\n");
  scratch_.Write("lacks.csv", "kind,y\na,1\n");
  for (const std::string& line :
       {"eval " + Path("t.onnx") + " --data csv:",
        "predict " + Path("t.onnx") + " --json --data csv:",
        "train " + Path("t.onnx") + " --batch 2 -o " + Path("u.onnx") + " --data csv:",
        "train x --resume --epochs 9 -o " + Path("t.onnx") + " --data csv:"}) {
    const CommandResult bad = Onward(line + Path("bad.csv"));
    EXPECT_EQ(bad.exit_code, 2) << line;
    EXPECT_THAT(bad.errors, AllOf(HasSubstr(Path("bad.csv") + ": row 2 (line 3), column 'kind'"),
                                  HasSubstr("'c' is unknown to the model, which knows 'a', 'b'")));
    const CommandResult lacks = Onward(line + Path("lacks.csv"));
    EXPECT_EQ(lacks.exit_code, 2) << line;
    EXPECT_THAT(lacks.errors, HasSubstr("has no column 'size', which the model takes"));
  }
  // A file that says nonsense.
  Model model = ReadModel(Path("t.onnx")).value();
  model.SetMetadata("onward.preparation", "{\"version\":1,\"table\":3}");
  ASSERT_TRUE(WriteModel(model, Path("odd.onnx")).ok());
  const CommandResult odd = Onward("eval " + Path("odd.onnx") + " --data csv:" + Path("good.csv"));
  EXPECT_EQ(odd.exit_code, 2);
  EXPECT_THAT(odd.errors, AllOf(HasSubstr("odd.onnx"), HasSubstr("onward.preparation")));
}

TEST_F(TablesTest, Regression) {
  std::mt19937 random(1);
  std::string text = "a,b,town,price\n";
  for (int i = 0; i < 600; ++i) {
    const int a = static_cast<int>(random() % 100), b = static_cast<int>(random() % 100);
    const bool city = random() % 2 == 0;
    absl::StrAppend(&text, a, ",", b, ",", city ? "Bonn" : "Celle", ",",
                    1000 * (a + 2 * b) + (city ? 100000 : 0) + 250, ".5\n");
  }
  const std::string data = "'csv:" + scratch_.Write("p.csv", text) + "?label=price'";
  const CommandResult r = Onward("train mlp:32 --data " + data + " --epochs 100 --json --eval " +
                                 data + " -o " + Path("t.onnx"));
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  // In the units of the table, whose deviation is about 80000.
  const std::vector<std::string> parts = absl::StrSplit(r.output, "\"eval_rmse\":");
  double rmse = 0;
  ASSERT_EQ(parts.size(), 2u) << r.output;
  ASSERT_TRUE(absl::SimpleAtod(parts[1].substr(0, parts[1].find(',')), &rmse));
  EXPECT_LT(rmse, 8000);
  EXPECT_GT(rmse, 10);
  // Values are those of the table, from the model as trained and from one that takes raw rows.
  Must("export " + Path("t.onnx") + " --raw columns -o " + Path("raw.onnx"));
  scratch_.Write("rows.csv", "town,b,a\nBonn,50,50\n");
  std::vector<double> values;
  for (const char* model : {"t.onnx", "raw.onnx"}) {
    Must("predict " + Path(model) + " --data csv:" + Path("rows.csv") + " -o " + Path("p.out"));
    const std::vector<std::string> lines = Lines("p.out");
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0], "row,prediction");
    values.push_back(std::stod(lines[1].substr(2)));
    EXPECT_NEAR(values.back(), 250250, 25000) << model;
  }
  EXPECT_NEAR(values[0], values[1], 1);
  EXPECT_EQ(Onward("eval " + Path("raw.onnx") + " --data " + data).exit_code, 0);
}

TEST_F(TablesTest, SpelledAsElsewhere) {
  std::string text = "Datum;Preis;Ort;teuer\n";
  for (int i = 0; i < 60; ++i) {
    absl::StrAppend(&text, 1 + i % 28, "/", 1 + i % 12, "/2024;", i, ",5;", i % 2 ? "Bonn" : "Ulm",
                    ";", i < 30 ? "nein" : "ja", "\n");
  }
  scratch_.Write("t.csv", text);
  const CommandResult r = Onward("train mlp:8 --data 'csv:" + Path("t.csv") +
                                 "?label=teuer' --epochs 40 -o " + Path("t.onnx"));
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_THAT(r.errors, AllOf(HasSubstr("1 number with decimal commas standardised"),
                              HasSubstr("1 date (day/month/year) in parts standardised")));
  // One row tells neither what a comma nor what the first number of a date is: the model does.
  scratch_.Write("row.csv", "Datum;Preis;Ort\n1/2/2024;1,125;Ulm\n");
  scratch_.Write("iso.csv", "Datum,Preis,Ort\n2024-02-01,1.125,Ulm\n");
  for (const char* rows : {"row.csv", "iso.csv"}) {
    Must("predict " + Path("t.onnx") + " --data csv:" + Path(rows) + " -o " + Path(rows) + ".out");
  }
  EXPECT_EQ(Lines("row.csv.out"), Lines("iso.csv.out"));
  EXPECT_THAT(Lines("row.csv.out")[1], HasSubstr("1,nein,"));
}

TEST_F(TablesTest, ExportLikeKeepsColumnsAndNames) {
  scratch_.Write("t.csv", "size,kind,y\n1,a,no\n2,b,yes\n3,a,no\n4,b,yes\n");
  const std::string data = " --data 'csv:" + Path("t.csv") + "?label=y'";
  Must("new mlp:4" + data + " -o " + Path("new.onnx"));
  Model bare = ReadModel(Path("new.onnx")).value();
  bare.SetMetadata("onward.preparation", "");
  ASSERT_TRUE(WriteModel(bare, Path("bare.onnx")).ok());
  Must("train " + Path("new.onnx") + data + " --batch 2 --epochs 3 -o " + Path("t.onnx"));
  Must("export " + Path("t.onnx") + " --like " + Path("bare.onnx") + " -o " + Path("like.onnx"));
  Must("export " + Path("t.onnx") + " -o " + Path("plain.onnx"));
  scratch_.Write("rows.csv", "kind,size\nb,3\na,\n");
  for (const char* model : {"like.onnx", "plain.onnx"}) {
    Must("predict " + Path(model) + " --data 'csv:" + Path("rows.csv") + "?limit=1' -o " +
         Path(model) + ".csv");
  }
  EXPECT_EQ(Lines("like.onnx.csv"), Lines("plain.onnx.csv"));
  EXPECT_THAT(Lines("like.onnx.csv")[1], ::testing::AnyOf(HasSubstr(",yes,"), HasSubstr(",no,")));
  // `run` takes the tensors of the model, whatever its file knows of tables.
  const CommandResult run = Onward("run " + Path("like.onnx") + " -i x=3 --json");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.errors, HasSubstr("x"));
}

TEST_F(TablesTest, NewModels) {
  scratch_.Write("d.csv", "a,b,y\n1,x,0\n2,y,1\n3,x,2\n4,y,1\n");
  const std::string data = " --data 'csv:" + Path("d.csv") + "?label=y";
  Must("new mlp:5,7" + data + "' -o " + Path("m.onnx"));
  const Graph graph = InferenceGraph(ReadModel(Path("m.onnx")).value()).value();
  EXPECT_EQ(graph.initializers.at("layer1.weight").shape(), (Shape{5, 3}));
  EXPECT_EQ(graph.initializers.at("layer2.weight").shape(), (Shape{7, 5}));
  EXPECT_EQ(graph.initializers.at("head.weight").shape(), (Shape{3, 7}));
  Must("new mlp" + data + "&text=codes' --seed 3 -o " + Path("codes.onnx"));
  Must("check " + Path("codes.onnx"));
  // Made, then trained: the same as at once.
  Must("train " + Path("m.onnx") + data + "' --batch 2 --epochs 2 --optimizer sgd:lr=0.1 -o " +
       Path("a.onnx"));
  Must("train mlp:5,7" + data +
       "' --batch 2 --epochs 2 --optimizer sgd:lr=0.1 --schedule constant -o " + Path("b.onnx"));
  const auto weight = [&](const char* name) {
    return *ToDoubles(
        InferenceGraph(ReadModel(Path(name)).value()).value().initializers.at("head.weight"));
  };
  EXPECT_EQ(weight("a.onnx"), weight("b.onnx"));
  // What it says to do next is what `train` does by itself.
  const std::string made =
      Onward("new mlp:5,7" + data + "' --overwrite -o " + Path("m.onnx")).output;
  const std::string next = made.substr(made.find("next: onward ") + 13);
  Must(next.substr(0, next.find("OUT")) + Path("d.onnx"));
  Must("train mlp:5,7" + data + "' -o " + Path("e.onnx"));
  EXPECT_EQ(weight("d.onnx"), weight("e.onnx"));
  Must("train " + Path("codes.onnx") + data + "' --batch 2 -o " + Path("c.onnx"));
  Must("export " + Path("c.onnx") + " --raw columns -o " + Path("c.raw.onnx"));
  Must("predict " + Path("c.raw.onnx") + data + "' -o " + Path("c.csv"));
  for (const char* word : {"mlp:", "mlp:0", "mlp:a", "mlp:8,", "tree"}) {
    const CommandResult r = Onward(absl::StrCat("new ", word, data, "' -o ", Path("n.onnx")));
    EXPECT_EQ(r.exit_code, 2) << word;
    EXPECT_THAT(r.errors, HasSubstr("mlp")) << word;
  }
}

TEST_F(TablesTest, RawOfWhatIsNotKnown) {
  scratch_.Write("d.csv", "a,y\n1,0\n2,1\n");
  Must("new mlp:2 --data 'csv:" + Path("d.csv") + "?label=y' -o " + Path("m.onnx"));
  const auto error = [&](const std::string& line) {
    const CommandResult r =
        Onward("export " + Path("m.onnx") + " -o " + Path("o.onnx") + " " + line);
    EXPECT_EQ(r.exit_code, 2) << line;
    return r.errors;
  };
  EXPECT_THAT(error("--raw nchw"), HasSubstr("trained on a table: columns or matrix"));
  EXPECT_THAT(error("--names"), HasSubstr("does not say what its classes are called"));
  EXPECT_THAT(error("--raw columns --portable-step"), HasSubstr("--portable-step"));
  Must("export " + Path("m.onnx") + " --raw matrix -o " + Path("r.onnx"));
  EXPECT_THAT(Onward("export " + Path("r.onnx") + " --raw columns -o " + Path("s.onnx")).errors,
              HasSubstr("takes raw rows already"));
  Model bare = ReadModel(Path("m.onnx")).value();
  bare.SetMetadata("onward.preparation", "");
  ASSERT_TRUE(WriteModel(bare, Path("m.onnx")).ok());
  EXPECT_THAT(error("--raw columns"), HasSubstr("its file says nothing"));
}

}  // namespace onward::tables_test
