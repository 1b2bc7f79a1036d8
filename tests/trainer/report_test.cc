// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/page/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "data/sha256.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "trainer/report/page/confusion_chart.h"
#include "trainer/report/page/html.h"
#include "trainer/report/page/report_chart.h"
#include "trainer/report/page/report_script.h"
#include "trainer/report/page/report_sections.h"

namespace onward::report_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

ReportData Sample() {
  ReportData data;
  data.title = "model.onnx";
  data.figures = {{"Accuracy", "98.9 %", "10,000 examples"}};
  data.settings = {{"optimizer", "adamw"}};
  for (int i = 1; i <= 300; ++i) data.steps.push_back({i, 2.0 / i, 1 - 1.0 / i, 1e-3});
  data.evals = {{150, 0.1, 0.9}, {300, 0.05, 0.95}};
  data.confusion = *ConfusionMatrix::Create(3);
  data.class_names = {"cat", "dog"};
  for (int a = 0; a < 3; ++a) (void)data.confusion->Add(a, a == 2 ? 1 : a);
  data.wrong = {{{{2, 2, 1}, {0, 255, 128, 3}}, "dog", "bird", 0.75}};
  data.wrong_total = 5;
  data.timing = {{"training", "1:42"}};
  data.notes = {{"trains 6 of 6 constants"}, {"row 3 has a NaN", true}};
  data.command = "onward train model.onnx --data digits";
  data.calibration.emplace();
  data.calibration->Add(0.9, true);
  data.pairs = {{1.5, 2.5}, {3, 3}};
  data.norms = {{150, {{"fc.weight", 4, 1.25, 0.5}}}, {300, {{"fc.weight", 4, 1.5, 0.25}}}};
  data.operators = {{"Gemm", 7.5, 3}, {"Relu", 2.5, 1}};
  data.files = {{"model", "a.onnx", Sha256("abc"), 1234567}};
  data.next = {{"Evaluate it", "onward eval a.onnx --data 'csv:a.csv?label=y&limit=3'"}};
  return data;
}

// Without the one script that every page has.
std::string Unscripted(const std::string& html) {
  return absl::StrReplaceAll(html, {{absl::StrCat("<script>", kReportScript, "</script>"), ""}});
}

// Every tag that is opened is closed, in order.
void ExpectBalanced(const std::string& page) {
  const std::string html = Unscripted(page);
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const size_t end = html.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = html.substr(at + 1, end - at - 1);
    if (tag[0] == '!' || tag.back() == '/') continue;
    const std::string name = tag.substr(tag[0] == '/', tag.find_first_of(" \n") - (tag[0] == '/'));
    if (name == "meta" || name == "img" || name == "br") continue;
    if (tag[0] != '/') {
      open.push_back(name);
    } else {
      ASSERT_FALSE(open.empty()) << tag;
      ASSERT_EQ(open.back(), name);
      open.pop_back();
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(Report, ShowsEverySection) {
  const std::string html = RenderReport(Sample());
  ExpectBalanced(html);
  for (const char* text : {"model.onnx",
                           "98.9 %",
                           "Loss",
                           "Accuracy",
                           "Learning rate",
                           "Classes",
                           "Wrong answers",
                           "1 of 5",
                           "Settings",
                           "adamw",
                           "Time and memory",
                           "1:42",
                           "Files",
                           "ba7816bf8f01cfea",
                           "1,234,567 bytes",
                           "What to type next",
                           "Right answers by confidence",
                           "Predicted against actual",
                           "Layers",
                           "fc.weight",
                           "Gemm",
                           "75.0%",
                           "onward train model.onnx --data digits",
                           "<h2>Warnings</h2>\n<div class=\"card warned\"><ul><li>row 3 has a NaN",
                           "<h2>Notes</h2>\n<div class=\"card\"><ul><li>trains 6 of 6 constants",
                           "What the numbers mean"}) {
    EXPECT_THAT(html, HasSubstr(text));
  }
  EXPECT_THAT(html, HasSubstr("data:image/png;base64,iVBORw0KGgo"));
  EXPECT_THAT(html, HasSubstr("label=y&amp;limit=3"));
}

TEST(Report, NeedsNothingFromOutside) {
  const std::string html = RenderReport(Sample());
  for (const char* text : {"http://", "https://", "<link", "@import", "src=\"/"}) {
    EXPECT_THAT(html, Not(HasSubstr(text)));
  }
  for (const char* text : {"fetch(", "XMLHttpRequest", "import(", "WebSocket", "eval("}) {
    EXPECT_THAT(std::string(kReportScript), Not(HasSubstr(text)));
  }
}

// Browsers refuse every script but ours, whatever text may bring one in.
TEST(Report, RunsItsOwnScriptAlone) {
  const std::string html = RenderReport(Sample());
  EXPECT_THAT(Unscripted(html), Not(HasSubstr("<script")));
  EXPECT_NE(Unscripted(html), html);
  const std::string hash = absl::Base64Escape(absl::HexStringToBytes(Sha256(kReportScript)));
  EXPECT_THAT(html, HasSubstr("script-src 'sha256-" + hash + "'\""));
}

TEST(Report, IsLoadedAgainOnlyWhileItIsWritten) {
  ReportData data = Sample();
  EXPECT_THAT(RenderReport(data), Not(HasSubstr("http-equiv=\"refresh\"")));
  data.running = true;
  EXPECT_THAT(RenderReport(data), HasSubstr("http-equiv=\"refresh\" content=\"5\""));
}

TEST(Report, EscapesEverythingFromTheUser) {
  const std::string evil = "<script>alert('x')</script>\"&";
  ReportData data = Sample();
  data.title = data.subtitle = data.metric_name = evil;
  data.figures = {{evil, evil, evil}};
  data.settings = data.timing = {{evil, evil}};
  data.class_names = {evil, evil, evil};
  data.wrong[0].predicted = data.wrong[0].actual = evil;
  data.files = {{evil, evil, evil, 1}};
  data.next = {{evil, evil}};
  data.notes = {{evil}, {evil, true}};
  data.early = data.command = evil;
  data.norms[1].layers[0].name = data.operators[0].op = evil;
  const std::string html = RenderReport(data);
  EXPECT_THAT(Unscripted(html), Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("alert('")));
  ExpectBalanced(html);
}

TEST(Report, LeavesOutWhatIsNotThere) {
  const std::string html = RenderReport({});
  ExpectBalanced(html);
  EXPECT_THAT(html, Not(HasSubstr("<h2>")));
  EXPECT_THAT(html, Not(HasSubstr("<svg")));
}

TEST(Report, SurvivesNumbersThatAreNotFinite) {
  ReportData data;
  for (int i = 0; i < 50; ++i) {
    data.steps.push_back({i, i % 7 == 0 ? NAN : i % 5 == 0 ? INFINITY : 1.0 * i, NAN, NAN});
  }
  const std::string html = RenderReport(data);
  EXPECT_THAT(html, HasSubstr("values are not finite"));
  for (const char* text : {"\"nan", "nan ", "inf ", "Lnan", "Minf"}) {
    EXPECT_THAT(html, Not(HasSubstr(text)));
  }
  for (double v : {0.0, 1e-300, 1e300, -5.0}) {
    data.steps = {{1, v, NAN, v}};
    ExpectBalanced(RenderReport(data));
  }
}

TEST(Report, StaysSmallForLongRuns) {
  ReportData data;
  for (int i = 0; i < 200000; ++i) data.steps.push_back({i, 1.0 / (i + 1), 0.5, 1e-3});
  EXPECT_LT(RenderReport(data).size(), 300000u);
}

TEST(Report, ListsManyClassesInsteadOfDrawingThem) {
  ReportData data;
  data.confusion = *ConfusionMatrix::Create(500);
  for (int i = 0; i < 500; ++i) (void)data.confusion->Add(i, (i * 7) % 500);
  const std::string html = RenderReport(data);
  EXPECT_THAT(html, Not(HasSubstr("<svg")));
  EXPECT_THAT(html, HasSubstr("15 weakest of 500"));
}

double Pixels(const std::string& html, const std::string& drawing) {
  const size_t at = html.find(absl::StrCat("class=\"", drawing, "\" style=\"width:"));
  return at == std::string::npos ? -1 : std::atof(html.c_str() + html.find(':', at) + 1);
}

// The matrix is no wider than what holds it, with names of any length, as long as squares can be
// read.
TEST(Report, TheMatrixFitsItsCard) {
  for (const int64_t n : {2, 10, 12, 13, 25, 26, 50, 65}) {
    for (const size_t letters : {1, 10, 40}) {
      auto matrix = *ConfusionMatrix::Create(n);
      for (int64_t i = 0; i < n; ++i) (void)matrix.Add(i, i, 12345);
      const std::vector<std::string> names(static_cast<size_t>(n), std::string(letters, 'w'));
      const std::string drawing = RenderConfusion(matrix, names);
      const double matrix_width = Pixels(drawing, "confusion");
      SCOPED_TRACE(absl::StrCat(n, " classes, ", letters, " letters"));
      EXPECT_GE(matrix_width, 12 * static_cast<double>(n));
      EXPECT_LE(Pixels(drawing, "rows") + matrix_width,
                n <= kMostClassesBeside ? kBesideWidth : kAloneWidth);
    }
  }
}

// Every name is there, in letters that do not shrink with the number of classes.
TEST(Report, NamesOf65ClassesStayLegible) {
  ReportData data;
  data.confusion = *ConfusionMatrix::Create(65);
  for (int i = 0; i < 65; ++i) {
    data.class_names.push_back(absl::StrCat("class_", i, "_"));
    (void)data.confusion->Add(i, (i * i) % 65);
  }
  const std::string drawing = RenderConfusion(*data.confusion, data.class_names);
  for (const std::string& name : data.class_names) {
    const std::string label = absl::StrCat(">", name, "</text>");
    const size_t row = drawing.find(label);
    ASSERT_NE(row, std::string::npos) << name;
    EXPECT_NE(drawing.find(label, row + 1), std::string::npos) << name;
  }
  // One unit of the drawing is one pixel: the width is 65 squares, not that of the page.
  EXPECT_THAT(drawing, HasSubstr("class=\"confusion\" style=\"width:847px;"));
  EXPECT_THAT(drawing, HasSubstr("viewBox=\"0 0 847"));
  const std::string html = RenderReport(data);
  EXPECT_THAT(html, HasSubstr("All 65 classes"));
  ExpectBalanced(html);
}

// The page and the figure "training loss" smooth alike.
TEST(Report, TheCurveEndsAtTheFigure) {
  SmoothedMean mean(kStepDecay);
  std::vector<ReportStep> steps;
  for (int i = 1; i <= 500; ++i) {
    steps.push_back({.step = i, .loss = 1.0 / i + (i % 3)});
    mean.Add(steps.back().loss);
  }
  EXPECT_EQ(SmoothedLosses(steps).back().y, mean.mean());
}

TEST(Report, MistakesWithoutPicturesAreListed) {
  ReportData data;
  data.wrong = {{{}, "dog", "cat", 0.75, 12}};
  const std::string html = RenderReport(data);
  for (const char* text : {"<td class=\"n\">12</td>", "dog", "75.0%", "cat"}) {
    EXPECT_THAT(html, HasSubstr(text));
  }
}

TEST(Report, MarksTheBestEvaluation) {
  ReportData data;
  data.evals = {{0, 3, 0.1, 0, true}, {10, 1, 0.5, 1}, {20, 2, 0.4, 2}};
  data.best = 1;
  EXPECT_THAT(RenderReport(data), HasSubstr(">best</text>"));
}

TEST(Comparison, ShowsRunsBesideEachOther) {
  ReportData a = Sample(), b = Sample();
  a.title = "a.jsonl";
  b.title = "b<.jsonl";
  a.settings = {{"Batch", "16"}, {"Seed", "1"}};
  b.settings = {{"Batch", "32"}, {"Seed", "1"}};
  const std::string html = RenderComparison({a, b});
  ExpectBalanced(html);
  for (const char* text : {"2 runs", "a.jsonl", "b&lt;.jsonl", "line run0", "line run1", "Batch",
                           "<td>16</td><td>32</td>", "Training loss, smoothed", "Evaluation loss",
                           "Evaluation Accuracy", "Learning rate", "Gradient norm"}) {
    EXPECT_THAT(html, HasSubstr(text));
  }
  EXPECT_THAT(html, Not(HasSubstr("<td>Seed</td>"))) << "what is the same is left out";
}

// A number has one definition, in the page and in the documentation.
TEST(Definitions, AreThoseOfTheDocumentation) {
  const std::string page = FileBytes(SourceFolder() + "/docs/report.md");
  for (const Definition& d : Definitions()) {
    EXPECT_THAT(page, HasSubstr(absl::StrCat("| ", d.name, " | ", d.meaning, " |")));
  }
}

TEST(NiceTicks, AreRoundNumbers) {
  EXPECT_THAT(NiceTicks(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(NiceTicks(-1, 1, 4), ElementsAre(-1, -0.5, 0, 0.5, 1));
  EXPECT_EQ(NiceTicks(1, 1, 5).size(), 1u);
  EXPECT_EQ(NiceTicks(0, INFINITY, 5).size(), 1u);
}

TEST(FourDigits, LargeNumbersAreWhole) {
  for (const auto& [value, text] : std::vector<std::pair<double, std::string>>{
           {0.123456, "0.1235"}, {9999.4, "9999"}, {56479.46, "56,479"}, {2e9, "2e+09"}}) {
    EXPECT_EQ(FourDigits(value), text);
  }
}

TEST(WithCommas, GroupsThousands) {
  EXPECT_EQ(WithCommas(0), "0");
  EXPECT_EQ(WithCommas(999), "999");
  EXPECT_EQ(WithCommas(1000), "1,000");
  EXPECT_EQ(WithCommas(-123456), "-123,456");
}

TEST(PictureOf, KnowsTheUsualLayouts) {
  const auto planes = PictureOf(Tensor::Zeros(DType::kFloat, {2, 3, 4, 5}), 1);
  ASSERT_TRUE(planes.ok());
  EXPECT_EQ(planes->info.height, 4);
  EXPECT_EQ(planes->info.channels, 3);
  EXPECT_EQ(PictureOf(Tensor::Zeros(DType::kUint8, {1, 4, 5, 3}), 0)->info.channels, 3);
  EXPECT_EQ(PictureOf(Tensor::Zeros(DType::kFloat, {1, 784}), 0)->info.width, 28);
  EXPECT_EQ(PictureOf(Tensor::Zeros(DType::kFloat, {1, 4, 5}), 0)->info.width, 5);
  EXPECT_FALSE(PictureOf(Tensor::Zeros(DType::kFloat, {1, 13}), 0).ok());
  EXPECT_FALSE(PictureOf(Tensor::Zeros(DType::kFloat, {1, 7, 4, 5}), 0).ok());
  EXPECT_FALSE(PictureOf(Tensor::Zeros(DType::kFloat, {1, 784}), 1).ok());
}

TEST(PictureOf, KeepsBrightnessAndStretchesTheRest) {
  const auto shares = PictureOf(Tensor::FromValues<float>({1, 1, 1, 2}, {0.0f, 0.5f}), 0);
  EXPECT_THAT(shares->pixels, ElementsAre(0, 128));
  const auto bytes = PictureOf(Tensor::FromValues<uint8_t>({1, 1, 1, 2}, {7, 200}), 0);
  EXPECT_THAT(bytes->pixels, ElementsAre(7, 200));
  const auto other = PictureOf(Tensor::FromValues<float>({1, 1, 1, 3}, {-1, 0, 1}), 0);
  EXPECT_THAT(other->pixels, ElementsAre(0, 128, 255));
}

TEST(Sha256, MatchesTheStandard) {
  EXPECT_EQ(Sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace onward::report_test
