// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "data/sha256.h"
#include "trainer/report/report_chart.h"

namespace onward {
namespace {

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
  data.files = {{"model", "a.onnx", Sha256("abc"), 1234567}};
  data.next = {{"Evaluate it", "onward eval a.onnx --data 'csv:a.csv?label=y&limit=3'"}};
  return data;
}

// Every tag that is opened is closed, in order.
void ExpectBalanced(const std::string& html) {
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
  for (const char* text : {"model.onnx", "98.9 %", "Loss", "Accuracy", "Learning rate", "Classes",
                           "Wrong answers", "1 of 5", "Settings", "adamw", "Time", "1:42", "Files",
                           "ba7816bf8f01cfea", "1,234,567 bytes", "What to type next"}) {
    EXPECT_THAT(html, HasSubstr(text));
  }
  EXPECT_THAT(html, HasSubstr("data:image/png;base64,iVBORw0KGgo"));
  EXPECT_THAT(html, HasSubstr("label=y&amp;limit=3"));
}

TEST(Report, NeedsNothingFromOutside) {
  const std::string html = RenderReport(Sample());
  for (const char* text : {"http://", "https://", "<script", "<link", "@import", "src=\"/"}) {
    EXPECT_THAT(html, Not(HasSubstr(text)));
  }
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
  const std::string html = RenderReport(data);
  EXPECT_THAT(html, Not(HasSubstr("<script")));
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

TEST(NiceTicks, AreRoundNumbers) {
  EXPECT_THAT(NiceTicks(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(NiceTicks(-1, 1, 4), ElementsAre(-1, -0.5, 0, 0.5, 1));
  EXPECT_EQ(NiceTicks(1, 1, 5).size(), 1u);
  EXPECT_EQ(NiceTicks(0, INFINITY, 5).size(), 1u);
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

}  // namespace
}  // namespace onward
