// SPDX-License-Identifier: Apache-2.0
// onward predict: rows and pictures in, names and probabilities out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/onnx_io/model.h"
#include "data/arrays/npy.h"
#include "data/pictures/picture.h"
#include "tests/cli/journey.h"
#include "tests/support/text_model.h"

namespace onward::predict_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PredictTest : public Journey {
 protected:
  // Logits are the inputs.
  std::string Classifier(const std::string& names) {
    Model model = TextModel("g (float[N, 3] x) => (float[N, 3] y) { y = Identity(x) }");
    model.SetMetadata("onward.classes", names);
    EXPECT_TRUE(WriteModel(model, Path("m.onnx")).ok());
    return Path("m.onnx");
  }
  std::vector<std::string> Predict(const std::string& model, const std::string& data,
                                   const std::string& more = "") {
    const CommandResult r =
        Onward("predict " + model + " --data '" + data + "' -o " + Path("out.csv") + " " + more);
    EXPECT_EQ(r.exit_code, 0) << r.errors;
    return Lines("out.csv");
  }
};

TEST_F(PredictTest, NamesAndProbabilities) {
  const std::string model = Classifier(R"(["ant","bee, wild","c\"at"])");
  const std::string rows = "csv:" + scratch_.Write("r.csv", "0,1000,0\n1000,0,0\n0,0,1000\n");
  EXPECT_THAT(Predict(model, rows), ElementsAre("row,prediction,probability", "1,\"bee, wild\",1",
                                                "2,ant,1", "3,\"c\"\"at\",1"));
  EXPECT_THAT(Predict(model, rows + "?offset=1&limit=1", "--top 2"),
              ElementsAre("row,prediction,probability,prediction_2,probability_2",
                          "1,ant,1,\"bee, wild\",0"));
  EXPECT_THAT(Predict(model, rows + "?limit=1", "--probabilities --batch 1"),
              ElementsAre("row,prediction,probability,p ant,\"p bee, wild\",\"p c\"\"at\"",
                          "1,\"bee, wild\",1,0,1,0"));
  const CommandResult json =
      Onward("predict " + model + " --json --top 2 --data '" + rows + "?limit=1'");
  EXPECT_EQ(
      json.output,
      R"({"row":1,"prediction":"bee, wild","probability":1,"probabilities":{"bee, wild":1,"ant":0}})"
      "\n");
}

TEST_F(PredictTest, LabelsAreShownBesideThem) {
  const std::string model = Classifier(R"(["ant","bee","cat"])");
  scratch_.Write("l.csv", "a,b,c,y\n0,9,0,bee\n9,0,0,cat\n");
  EXPECT_THAT(Predict(model, "csv:" + Path("l.csv") + "?label=y")[2],
              AllOf(HasSubstr("2,cat,ant,0.999")));
  // Labels that the model does not know do not matter here.
  scratch_.Write("o.csv", "a,b,c,y\n0,9,0,owl\n");
  EXPECT_THAT(Predict(model, "csv:" + Path("o.csv") + "?label=y")[1], HasSubstr("1,bee,0.99"));
}

TEST_F(PredictTest, ValuesAndOneScore) {
  ASSERT_TRUE(WriteModel(TextModel("g (float[N, 2] x) => (float[N, 2] y) { y = Identity(x) }"),
                         Path("v.onnx"))
                  .ok());
  const std::string rows = "csv:" + scratch_.Write("r.csv", "0.5,-2\n3,4\n");
  EXPECT_THAT(Predict(Path("v.onnx"), rows),
              ElementsAre("row,prediction_0,prediction_1", "1,0.5,-2", "2,3,4"));
  ASSERT_TRUE(WriteModel(TextModel("g (float[N, 1] x) => (float[N, 1] y) { y = Sigmoid(x) }"),
                         Path("s.onnx"))
                  .ok());
  EXPECT_THAT(Predict(Path("s.onnx"), "csv:" + scratch_.Write("s.csv", "0\n100\n-100\n")),
              ElementsAre("row,prediction,probability", "1,0,0.5", "2,1,1", "3,0,1"));
}

// A model that fixes its batch gets the last examples filled up, and tells all of them.
TEST_F(PredictTest, FixedBatches) {
  ASSERT_TRUE(
      WriteModel(TextModel("g (float[2, 1] x) => (float[2, 1] y) <int64[2] s = {1, 2}> "
                           "{ a = Reshape(x, s) b = Add(a, a) y = Transpose <perm = [1, 0]> (b) }"),
                 Path("f.onnx"))
          .ok());
  EXPECT_THAT(Predict(Path("f.onnx"), "csv:" + scratch_.Write("r.csv", "1\n2\n3\n")),
              ElementsAre("row,prediction", "1,2", "2,4", "3,6"));
}

TEST_F(PredictTest, PicturesByFile) {
  const auto grey = [](uint8_t value) {
    return *EncodePng({{2, 2, 1}, std::vector<uint8_t>(4, value)});
  };
  for (const char* name : {"train/dark/a.png", "train/dark/b.png"}) scratch_.Write(name, grey(10));
  for (const char* name : {"train/light/a.png", "train/light/b.png"})
    scratch_.Write(name, grey(240));
  const CommandResult r = Onward("train mlp:8 --data images:" + Path("train") +
                                 " --batch 2 --epochs 40 --lr 0.03 -o " + Path("t.onnx"));
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  // Of another size, without labels: the model knows its own.
  scratch_.Write("new/x.png", *EncodePng({{5, 7, 1}, std::vector<uint8_t>(35, 20)}));
  scratch_.Write("new/y.png", *EncodePng({{9, 4, 3}, std::vector<uint8_t>(108, 230)}));
  const std::vector<std::string> lines = Predict(Path("t.onnx"), "images:" + Path("new"));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "file,prediction,probability");
  EXPECT_THAT(lines[1], HasSubstr(Path("new/x.png") + ",dark,"));
  EXPECT_THAT(lines[2], HasSubstr(Path("new/y.png") + ",light,"));
  // As bytes, in both orders.
  for (const std::string form : {"nchw", "nhwc"}) {
    const std::string raw = Path(form + ".onnx");
    ASSERT_EQ(
        Onward("export " + Path("t.onnx") + " --raw " + form + " --names -o " + raw).exit_code, 0);
    const std::vector<std::string> again = Predict(raw, "images:" + Path("new"));
    ASSERT_EQ(again.size(), 3u) << form;
    EXPECT_THAT(again[1], HasSubstr(",dark,"));
    EXPECT_THAT(again[2], HasSubstr(",light,"));
    const Tensor bytes = Tensor::FromValues<uint8_t>(
        form == "nchw" ? Shape{1, 1, 2, 2} : Shape{1, 2, 2, 1}, {240, 240, 240, 240});
    ASSERT_TRUE(WriteNpy(Path("b.npy"), bytes).ok());
    const CommandResult run =
        Onward("run " + raw + " -i " + Path("b.npy") + " --output-dir " + Path(form));
    ASSERT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_EQ(ReadNpy(Path(form + "/label.npy"))->values<std::string>()[0], "light");
  }
}

TEST_F(PredictTest, WhatIsMissingIsSaid) {
  const std::string model = Classifier("");
  const std::string rows = "csv:" + scratch_.Write("r.csv", "0,1,0\n");
  EXPECT_THAT(Onward("predict " + model + " --data " + rows).errors, HasSubstr("-o OUT.csv"));
  EXPECT_THAT(Onward("predict " + model + " --json --train-output z --data " + rows).errors,
              HasSubstr("'z' is not an output"));
  EXPECT_EQ(Onward("predict " + model + " --data " + rows + " -o " + Path("r.csv")).exit_code, 2);
}

}  // namespace onward::predict_test
