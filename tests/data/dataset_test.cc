// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "data/arrays/npy.h"
#include "tests/data/deflate.h"
#include "tests/data/spec_fixture.h"
#include "tests/support/paths.h"

namespace onward::dataset_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Big(uint32_t v) {
  return {static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8),
          static_cast<char>(v)};
}

std::string Idx(int type, std::initializer_list<uint32_t> dims, const std::string& body) {
  std::string out = {0, 0, static_cast<char>(type), static_cast<char>(dims.size())};
  for (uint32_t d : dims) out += Big(d);
  return out + body;
}

// Four 2x2 pictures with labels 0, 1, 2, 1; pixel k of picture i is 16*i + k.
std::string Images() {
  std::string body;
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 4; ++k) body += static_cast<char>(16 * i + k);
  }
  return Idx(8, {4, 2, 2}, body);
}
std::string Labels() { return Idx(8, {4}, std::string("\0\1\2\1", 4)); }

class DatasetTest : public SpecTest {
 protected:
  std::string Idx4() {
    return absl::StrCat("idx:", scratch_.Write("i", Images()), ",", scratch_.Write("l", Labels()));
  }
};

TEST_F(DatasetTest, IdxGivesScaledPlanes) {
  const auto data = Open(Idx4());
  EXPECT_EQ(Describe(*data), "4 examples, x float [1, 2, 2], y int64 [], 3 classes");
  EXPECT_THAT(data->class_names(), ElementsAre("0", "1", "2"));
  const auto batch = Take(*data, {3, 0});
  EXPECT_EQ(batch[0].shape(), (Shape{2, 1, 2, 2}));
  EXPECT_EQ(batch[0].data<float>()[0], 48 / 255.0f);
  EXPECT_EQ(batch[0].data<float>()[5], 1 / 255.0f);
  EXPECT_THAT(Values(batch[1]), ElementsAre(1, 0));
}

TEST_F(DatasetTest, ScalingEqualsDivisionForEveryByte) {
  std::string body;
  for (int i = 0; i < 256; ++i) body += static_cast<char>(i);
  scratch_.Write("i", Idx(8, {1, 16, 16}, body));
  scratch_.Write("l", Idx(8, {1}, std::string(1, 0)));
  const auto data = Open(absl::StrCat("idx:", scratch_.Path("i"), ",", scratch_.Path("l")));
  const auto batch = Take(*data, {0});
  for (int i = 0; i < 256; ++i) {
    EXPECT_EQ(batch[0].data<float>()[i], static_cast<float>(i) / 255.0f);
  }
}

TEST_F(DatasetTest, IdxReadsGzipAndOtherTypes) {
  scratch_.Write("i.gz", Gzip(Images()));
  scratch_.Write("l.gz", Gzip(Labels()));
  EXPECT_EQ(Open(absl::StrCat("idx:", scratch_.Path("i.gz"), ",", scratch_.Path("l.gz")))->size(),
            4);
  scratch_.Write("f", Idx(0x0d, {1, 2}, std::string("\x3f\x80\0\0\xc0\0\0\0", 8)));
  scratch_.Write("l1", Idx(8, {1}, std::string(1, 0)));
  const auto data = Open(absl::StrCat("idx:", scratch_.Path("f"), ",", scratch_.Path("l1")));
  EXPECT_THAT(Values(Take(*data, {0})[0]), ElementsAre(1, -2));
}

TEST_F(DatasetTest, IdxNamesFileAndFault) {
  const std::string labels = scratch_.Write("l", Labels());
  const auto error = [&](const std::string& bytes, const std::string& name = "bad") {
    return ErrorOf(absl::StrCat("idx:", scratch_.Write(name, bytes), ",", labels));
  };
  EXPECT_THAT(error("hello world"), AllOf(HasSubstr("bad"), HasSubstr("not an IDX file")));
  EXPECT_THAT(error(""), HasSubstr("empty"));
  EXPECT_THAT(error(Images().substr(0, 25)), HasSubstr("truncated"));
  EXPECT_THAT(error(Images().substr(0, 10)), HasSubstr("header is truncated"));
  EXPECT_THAT(error(Idx(8, {0xffffffff, 256, 1}, "x")), HasSubstr("truncated"));
  EXPECT_THAT(error(Idx(8, {0xffffffff, 0xffffffff, 0xffffffff}, "x")), HasSubstr("too many"));
  EXPECT_THAT(error(Idx(8, {3, 1}, "abc")), HasSubstr("3 examples"));
  EXPECT_THAT(error(Gzip(Images()).substr(0, 30), "cut.gz"), HasSubstr("truncated"));
  EXPECT_THAT(error(Images(), "plain.gz"), HasSubstr("not a gzip file"));
  std::string damaged = Gzip(Images());
  damaged[damaged.size() - 6] = static_cast<char>(~damaged[damaged.size() - 6]);
  EXPECT_THAT(error(damaged, "damaged.gz"), HasSubstr("damaged gzip"));
  EXPECT_THAT(ErrorOf("idx:/no/such/file," + labels), HasSubstr("/no/such/file"));
  EXPECT_THAT(ErrorOf("idx:" + scratch_.folder() + "," + labels), HasSubstr("is a folder"));
  EXPECT_THAT(ErrorOf("idx:" + labels), HasSubstr("two files"));
}

TEST_F(DatasetTest, MnistFindsItsHalf) {
  scratch_.Write("train-images-idx3-ubyte", Images());
  scratch_.Write("train-labels-idx1-ubyte.gz", Gzip(Labels()));
  scratch_.Write("t10k-images-idx3-ubyte.gz", Gzip(Idx(8, {1, 2, 2}, "abcd")));
  scratch_.Write("t10k-labels-idx1-ubyte", Idx(8, {1}, std::string(1, 0)));
  const std::string spec = "mnist:" + scratch_.folder();
  EXPECT_EQ(Open(spec)->size(), 4);
  EXPECT_EQ(Open(spec, Split::kTest)->size(), 1);
  EXPECT_EQ(Open(spec + "?split=test")->size(), 1);
  EXPECT_EQ(Open(spec + "?split=train", Split::kTest)->size(), 4);
  EXPECT_THAT(ErrorOf("mnist:" + scratch_.Path("none")), HasSubstr("no such folder"));
}

TEST_F(DatasetTest, ReadyMadeSetsLieInTheCache) {
  ASSERT_EQ(setenv("ONWARD_CACHE", scratch_.folder().c_str(), 1), 0);
  EXPECT_THAT(ErrorOf("digits"), AllOf(HasSubstr("data/mnist"), HasSubstr("tools/data.sh")));
  for (const char* name : {"mnist", "fashion"}) {
    scratch_.Write(absl::StrCat("data/", name, "/train-images-idx3-ubyte"), Images());
    scratch_.Write(absl::StrCat("data/", name, "/train-labels-idx1-ubyte"), Labels());
  }
  EXPECT_EQ(Open("digits?limit=3")->size(), 3);
  EXPECT_EQ(Open("fashion")->class_names().at(9), "Ankle boot");
}

TEST_F(DatasetTest, OptionsApplyInOrder) {
  const std::string idx = Idx4();
  EXPECT_EQ(Open(idx + "?limit=100")->size(), 4);
  const auto slice = Open(idx + "?offset=1&limit=2&scale=1");
  EXPECT_EQ(slice->size(), 2);
  EXPECT_EQ(slice->classes(), 3);
  EXPECT_THAT(Values(Take(*slice, {0, 1})[0]), ElementsAre(16, 17, 18, 19, 32, 33, 34, 35));
  // (stored * scale + shift - mean) / std
  const auto mapped = Open(idx + "?scale=2&shift=1&mean=3&std=4&shape=4");
  EXPECT_EQ(mapped->fields()[0].shape, Shape{4});
  EXPECT_THAT(Values(Take(*mapped, {1})[0]), ElementsAre(7.5, 8, 8.5, 9));
}

TEST_F(DatasetTest, MeanAndStdMayDifferByChannel) {
  const std::string x = scratch_.Path("x.npy");
  ASSERT_TRUE(WriteNpy(x, Tensor::FromValues<float>({1, 2, 1, 2}, {1, 2, 3, 4})).ok());
  const auto planes = Open("npy:" + x + "?mean=1,3&std=1,0.5");
  EXPECT_THAT(Values(Take(*planes, {0})[0]), ElementsAre(0, 1, 0, 2));
  const auto last = Open("npy:" + x + "?mean=1,3&std=1,0.5&layout=nhwc");
  EXPECT_EQ(last->fields()[0].shape, (Shape{1, 2, 2}));
  EXPECT_THAT(Values(Take(*last, {0})[0]), ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(ErrorOf("npy:" + x + "?mean=1,2,3"), HasSubstr("2 channels, but 3 numbers"));
}

TEST_F(DatasetTest, ShuffleKeepsExamplesWhole) {
  const auto data = Open(Idx4() + "?shuffle=7&scale=1");
  const auto again = Open(Idx4() + "?shuffle=7&scale=1");
  const auto batch = Take(*data, {0, 1, 2, 3});
  EXPECT_EQ(Values(batch[0]), Values(Take(*again, {0, 1, 2, 3})[0]));
  const int64_t labels[] = {0, 1, 2, 1};
  for (int i = 0; i < 4; ++i) {
    const int original = static_cast<int>(batch[0].data<float>()[4 * i]) / 16;
    EXPECT_EQ(batch[1].data<int64_t>()[i], labels[original]);
  }
}

TEST_F(DatasetTest, RefusesWrongSpecs) {
  const std::string idx = Idx4();
  EXPECT_THAT(ErrorOf(idx + "?colour=1"),
              AllOf(HasSubstr("unknown option of idx data 'colour'"), HasSubstr("limit")));
  EXPECT_THAT(ErrorOf(idx + "?sise=8x8"), HasSubstr("did you mean 'size'"));
  EXPECT_THAT(ErrorOf("image:photos"), HasSubstr("; did you mean images:photos"));
  EXPECT_THAT(ErrorOf(idx + "?split=test"),
              HasSubstr("split=test: expected a share between 0 and 1"));
  EXPECT_THAT(ErrorOf(idx + "?limit=1&limit=2"), HasSubstr("given twice"));
  EXPECT_THAT(ErrorOf(idx + "?limit"), HasSubstr("needs a value"));
  for (const char* option : {"limit=0", "limit=x", "offset=-1", "scale=0", "scale=1/0", "scale=nan",
                             "std=0", "mean=a", "shape=0x2", "shape=2x", "layout=abc", "task=x"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat(idx, "?", option)), HasSubstr("expected")) << option;
  }
  EXPECT_THAT(ErrorOf(idx + "?shape=3x3"),
              AllOf(HasSubstr("9 elements"), HasSubstr("4 per example")));
  EXPECT_THAT(ErrorOf(idx + "?offset=4"), HasSubstr("leaves nothing of 4"));
  EXPECT_THAT(ErrorOf("data.csv"), HasSubstr("did you mean csv:data.csv"));
  EXPECT_THAT(ErrorOf("zip:a"), HasSubstr("images:DIR"));
  EXPECT_THAT(ErrorOf("mnist:"), HasSubstr("write mnist:DIR"));
  EXPECT_THAT(ErrorOf("digits:x"), HasSubstr("write digits"));
}

TEST_F(DatasetTest, FillChecksIndicesAndReusesTensors) {
  const auto data = Open(Idx4());
  std::vector<Tensor> batch;
  EXPECT_FALSE(data->Fill({4}, &batch).ok());
  EXPECT_FALSE(data->Fill({-1}, &batch).ok());
  ASSERT_TRUE(data->Fill({0, 1}, &batch).ok());
  const void* memory = batch[0].raw();
  ASSERT_TRUE(data->Fill({2, 3}, &batch).ok());
  EXPECT_EQ(batch[0].raw(), memory);
  ASSERT_TRUE(data->Fill({}, &batch).ok());
  EXPECT_EQ(batch[0].shape(), (Shape{0, 1, 2, 2}));
}

TEST_F(DatasetTest, CsvWithHeaderAndWords) {
  const std::string path = scratch_.Write(
      "a.csv",
      "\xef\xbb\xbfwidth,\"the \"\"height\"\"\",kind\r\n1,2.5,\"dog, big\"\r\n\r\n-3,4e1,cat\r\n");
  const auto data = Open("csv:" + path + "?label=kind");
  EXPECT_EQ(Describe(*data), "2 examples, x float [2], y int64 [], 2 classes");
  EXPECT_THAT(data->class_names(), ElementsAre("cat", "dog, big"));
  const auto batch = Take(*data, {0, 1});
  EXPECT_THAT(Values(batch[0]), ElementsAre(1, 2.5, -3, 40));
  EXPECT_THAT(Values(batch[1]), ElementsAre(1, 0));
  EXPECT_EQ(Open("csv:" + path + "?label=2")->class_names().size(), 2u);
  EXPECT_EQ(Open("csv:" + path + "?label=-1")->class_names().size(), 2u);
}

TEST_F(DatasetTest, CsvWithoutHeaderAndOtherSeparators) {
  for (const char* text : {"1,2,0\n3,4,1\n", "1;2;0\n3;4;1", "1\t2\t0\n3\t4\t1\n"}) {
    const auto data = Open("csv:" + scratch_.Write("a.csv", text) + "?label=-1");
    EXPECT_EQ(Describe(*data), "2 examples, x float [2], y int64 [], 2 classes") << text;
    EXPECT_THAT(Values(Take(*data, {1})[0]), ElementsAre(3, 4));
  }
  const auto packed =
      Open("csv:" + scratch_.Write("a.csv.gz", Gzip("1,2,0\n3,4,1\n")) + "?label=0");
  EXPECT_EQ(packed->size(), 2);
}

TEST_F(DatasetTest, CsvLabelsMayBeNumbers) {
  const std::string prices = scratch_.Write("a.csv", "x,y\n1,2.0\n2,3.5\n");
  const auto data = Open("csv:" + prices + "?label=y");
  EXPECT_EQ(Describe(*data), "2 examples, x float [1], y float [1]");
  EXPECT_THAT(Values(Take(*data, {0, 1})[1]), ElementsAre(2, 3.5));
  const std::string whole = scratch_.Write("b.csv", "x,y\n1,250000\n2,350000\n");
  EXPECT_EQ(Open("csv:" + whole + "?label=y")->classes(), 0);
  const std::string few = scratch_.Write("c.csv", "x,y\n1,0\n2,1\n3,1\n");
  EXPECT_EQ(Open("csv:" + few + "?label=y")->classes(), 2);
  EXPECT_EQ(Open("csv:" + few + "?label=y&task=regression")->classes(), 0);
  EXPECT_EQ(Open("csv:" + whole + "?label=y&task=classes")->classes(), 350001);
  EXPECT_THAT(ErrorOf("csv:" + prices + "?label=y&task=classes"), HasSubstr("whole numbers"));
}

TEST_F(DatasetTest, CsvReadsScikitLearnHeaders) {
  const std::string path = scratch_.Write("a.csv", "3,2,no,yes\n1,2,0\n3,4,1\n5,6,1\n");
  const auto data = Open("csv:" + path);
  EXPECT_EQ(data->size(), 3);
  EXPECT_THAT(data->class_names(), ElementsAre("no", "yes"));
}

TEST_F(DatasetTest, CsvNamesRowAndColumn) {
  const std::string path = scratch_.Write("a.csv", "a,b,y\n1,red,0\n,blue,1\n");
  EXPECT_THAT(ErrorOf("csv:" + path + "?label=y&drop=b"),
              AllOf(HasSubstr("row 2 (line 3), column 'a': is empty"), HasSubstr("missing=skip")));
  EXPECT_EQ(Open("csv:" + path + "?label=y&drop=b&missing=skip")->size(), 1);
  EXPECT_THAT(ErrorOf("csv:" + path), HasSubstr("which column is the label"));
  EXPECT_THAT(ErrorOf("csv:" + path + "?label=z"), HasSubstr("columns a, b, y"));
  EXPECT_THAT(ErrorOf("csv:" + path + "?label=y&drop=y"), HasSubstr("names the label"));
  EXPECT_THAT(ErrorOf("csv:" + path + "?label=y&drop=a,b"), HasSubstr("no column is left"));
  const auto error = [&](const std::string& text) {
    return ErrorOf("csv:" + scratch_.Write("b.csv", text) + "?label=-1");
  };
  EXPECT_THAT(error("1,2\n3\n"), HasSubstr("row 2 (line 2) has 1 fields, expected 2"));
  EXPECT_THAT(error("1,\"2\n3,4\n"), HasSubstr("quote is not closed"));
  EXPECT_THAT(error("1,\"2\"x\n"), HasSubstr("follows a closing quote"));
  EXPECT_THAT(error("1,2\n1e39,4\n"), HasSubstr("too large"));
  EXPECT_THAT(error("1,2\nnan,4\n"), HasSubstr("no value"));
  EXPECT_THAT(error(""), HasSubstr("empty"));
}

TEST_F(DatasetTest, NpyKeepsTypes) {
  const std::string x = scratch_.Path("x.npy"), y = scratch_.Path("y.npy");
  ASSERT_TRUE(WriteNpy(x, Tensor::FromValues<double>({2, 1}, {0.5, 1.5})).ok());
  ASSERT_TRUE(WriteNpy(y, Tensor::FromValues<int32_t>({2, 1}, {3, 0})).ok());
  const auto data = Open("npy:" + x + "," + y);
  EXPECT_EQ(Describe(*data), "2 examples, x double [1], y int64 [], 4 classes");
  const auto regression = Open("npy:" + x + "," + y + "?task=regression");
  EXPECT_EQ(Describe(*regression), "2 examples, x double [1], y float [1]");
  EXPECT_EQ(Open("npy:" + y + "," + x)->classes(), 0);
  EXPECT_EQ(Describe(*Open("npy:" + y + "?scale=1/2")), "2 examples, x float [1]");
  ASSERT_TRUE(WriteNpy(y, Tensor::FromValues<int32_t>({3}, {0, 1, 2})).ok());
  EXPECT_THAT(ErrorOf("npy:" + x + "," + y), HasSubstr("2 examples but 'y' has 3"));
  ASSERT_TRUE(WriteNpy(y, ScalarOf(DType::kInt32, 1)).ok());
  EXPECT_THAT(ErrorOf("npy:" + x + "," + y), HasSubstr("single number"));
}

TEST_F(DatasetTest, CifarRecords) {
  std::string one(3073, 'a'), two(3073, 'b');
  one[0] = 3;
  two[0] = 9;
  const std::string a = scratch_.Write("a.bin", one), b = scratch_.Write("b.bin.gz", Gzip(two));
  const auto data = Open("cifar:" + a + "," + b);
  EXPECT_EQ(Describe(*data), "2 examples, x float [3, 32, 32], y int64 [], 10 classes");
  EXPECT_EQ(data->class_names()[9], "truck");
  EXPECT_THAT(Values(Take(*data, {1})[1]), ElementsAre(9));
  EXPECT_THAT(ErrorOf("cifar:" + scratch_.Write("c", one + "x")), HasSubstr("3074 bytes"));
  one[0] = 10;
  EXPECT_THAT(ErrorOf("cifar:" + scratch_.Write("c", one)), HasSubstr("label 10"));
}

TEST(ConvertTensor, KeepsValuesOrSaysWhyNot) {
  const Tensor t = Tensor::FromValues<double>({2}, {1, -2});
  EXPECT_TRUE(Identical(*ConvertTensor(t, DType::kInt8), Tensor::FromValues<int8_t>({2}, {1, -2})));
  EXPECT_TRUE(Identical(*ConvertTensor(t, DType::kFloat), Tensor::FromValues<float>({2}, {1, -2})));
  EXPECT_THAT(std::string(ConvertTensor(t, DType::kUint8).status().message()), HasSubstr("-2"));
  EXPECT_FALSE(ConvertTensor(Tensor::FromValues<float>({1}, {0.5f}), DType::kInt64).ok());
  EXPECT_FALSE(ConvertTensor(Tensor::FromValues<float>({1}, {1e30f}), DType::kInt64).ok());
  EXPECT_FALSE(ConvertTensor(Tensor::FromValues<int64_t>({1}, {300}), DType::kUint8).ok());
  EXPECT_FALSE(ConvertTensor(Tensor::FromValues<std::string>({1}, {"a"}), DType::kFloat).ok());
  EXPECT_FALSE(ConvertTensor(t, DType::kString).ok());
}

class SharedDataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (SharedPath("datasets").empty()) {
      GTEST_SKIP() << "the shared data sets are absent";
    }
  }
  std::string DescribeSpec(const std::string& spec) {
    const auto data = ParseDataSpec(spec, Split::kTrain);
    return data.ok() ? Describe(**data) : std::string(data.status().message());
  }
};

TEST_F(SharedDataTest, ReadsMnist) {
  const std::string spec = "mnist:" + SharedPath("datasets/mnist");
  EXPECT_EQ(DescribeSpec(spec), "60000 examples, x float [1, 28, 28], y int64 [], 10 classes");
  const auto data = ParseDataSpec(spec, Split::kTest);
  ASSERT_TRUE(data.ok()) << data.status();
  std::vector<Tensor> batch;
  ASSERT_TRUE((*data)->Fill({0, 9999}, &batch).ok());
  EXPECT_EQ(batch[1].data<int64_t>()[0], 7);
  EXPECT_EQ(batch[1].data<int64_t>()[1], 6);
}

TEST_F(SharedDataTest, ReadsTables) {
  EXPECT_EQ(DescribeSpec("csv:" + SharedPath("datasets/digits-8x8/digits.csv.gz") +
                         "?label=-1&shape=1x8x8"),
            "1797 examples, x float [1, 8, 8], y int64 [], 10 classes");
  EXPECT_EQ(DescribeSpec("csv:" + SharedPath("datasets/uci-tabular/iris.csv")),
            "150 examples, x float [4], y int64 [], 3 classes");
  const std::string housing = "csv:" + SharedPath("datasets/california-housing/housing.csv.gz") +
                              "?label=median_house_value";
  EXPECT_THAT(DescribeSpec(housing),
              AllOf(HasSubstr("207 things are wrong"),
                    HasSubstr("row 291 (line 292), column 'total_bedrooms': is empty"),
                    HasSubstr("and 187 more\nfill it in")));
  EXPECT_EQ(DescribeSpec(housing + "&missing=median"), "20640 examples, x float [13], y float [1]");
  EXPECT_EQ(DescribeSpec(housing + "&drop=ocean_proximity&missing=skip"),
            "20433 examples, x float [8], y float [1]");
}

TEST_F(SharedDataTest, ReadsCifar) {
  EXPECT_EQ(DescribeSpec("cifar:" + SharedPath("datasets/cifar10-subset/train_4000.bin.gz")),
            "4000 examples, x float [3, 32, 32], y int64 [], 10 classes");
}

}  // namespace onward::dataset_test
