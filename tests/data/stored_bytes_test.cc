// SPDX-License-Identifier: Apache-2.0
#include "data/stored_bytes.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "data/arrays/npy.h"
#include "data/arrays/rows.h"
#include "tests/data/deflate.h"
#include "tests/data/spec_fixture.h"

namespace onward::stored_bytes_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using StoredBytesTest = SpecTest;

std::string Slice(const StoredBytes& bytes, uint64_t offset, size_t count) {
  std::string out(count, '\0');
  const absl::Status status = bytes.Read(offset, count, out.data());
  return status.ok() ? out : std::string(status.message());
}

TEST_F(StoredBytesTest, ReadsFilesAndPartsByPosition) {
  const auto file = StoredBytes::Open(scratch_.Write("a", "0123456789"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->size(), 10u);
  EXPECT_EQ(file->memory(), nullptr);
  EXPECT_EQ(Slice(*file, 3, 4), "3456");
  const StoredBytes part = file->Part(2, 5, "middle").Part(1, 3, "inner");
  EXPECT_EQ(Slice(part, 0, 3), "345");
  EXPECT_EQ(*part.ReadAll(), "345");
  EXPECT_THAT(Slice(part, 1, 3), AllOf(HasSubstr("inner: ends early"), HasSubstr("of 3")));
  EXPECT_THAT(std::string(StoredBytes::Open("/no/such").status().message()), HasSubstr("/no/such"));
  EXPECT_THAT(std::string(StoredBytes::Open(scratch_.folder()).status().message()),
              HasSubstr("is a folder"));
}

// A mapping would end the process here.
TEST_F(StoredBytesTest, AFileCutShortIsAnError) {
  const std::string path = scratch_.Write("a", std::string(100000, 'x'));
  const auto file = StoredBytes::Open(path);
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(path, 10);
  EXPECT_THAT(Slice(*file, 50000, 4), HasSubstr("cannot be read at byte 50000"));
}

TEST_F(StoredBytesTest, UnpacksGzipOnce) {
  const std::string text(100000, 'y');
  const auto packed = StoredBytes::OpenPlainOrGzip(scratch_.Write("a.gz", Gzip(text)));
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_NE(packed->memory(), nullptr);
  EXPECT_EQ(*packed->ReadAll(), text);
  EXPECT_EQ(StoredBytes::OpenPlainOrGzip(scratch_.Write("plain", text))->memory(), nullptr);
}

TEST(Unpacking, GoesToAFileWhereItIsMuch) {
  std::string all;
  Unpacking unpacking("big", /*most_in_memory=*/1000);
  for (int i = 0; i < 300; ++i) {
    const std::string piece(i % 7 * 900, static_cast<char>('a' + i % 26));
    all += piece;
    ASSERT_TRUE(unpacking.Append(piece).ok());
  }
  const auto stored = unpacking.Finish();
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->memory(), nullptr);
  EXPECT_EQ(stored->name(), "big");
  EXPECT_EQ(*stored->ReadAll(), all);
}

TEST(Unpacking, NamesTheFolderThatCannotBeWritten) {
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  ASSERT_EQ(setenv("TMPDIR", "/proc", 1), 0);  // a folder that is there
  Unpacking unpacking("big", /*most_in_memory=*/1);
  EXPECT_THAT(std::string(unpacking.Append("abc").message()),
              AllOf(HasSubstr("big: cannot be unpacked"), HasSubstr("/proc")));
  kept.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", kept.c_str(), 1);
}

// Writes `bytes` into a file at `offset`.
void Overwrite(const std::string& path, int64_t offset, const std::string& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "r+b");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(fseeko(file, offset, SEEK_SET), 0);
  EXPECT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
  std::fclose(file);
}

// A file of 80 MB that takes no room on the disk: rows are read when they are asked for.
TEST_F(StoredBytesTest, RowsOfLargeFilesAreReadOnDemand) {
  constexpr int64_t kRows = 20000, kRowBytes = 4096;
  std::string header = absl::StrCat("{'descr': '<f4', 'fortran_order': False, 'shape': (", kRows,
                                    ", ", kRowBytes / 4, "), }");
  header.resize(117, ' ');
  header += '\n';
  const std::string start = absl::StrCat("\x93NUMPY", absl::string_view("\1\0\x76\0", 4), header);
  const std::string path = scratch_.Write("x.npy", start);
  std::filesystem::resize_file(path, start.size() + kRows * kRowBytes);
  const auto data = Open("npy:" + path);
  EXPECT_TRUE(data->reads_slowly());
  EXPECT_EQ(data->size(), kRows);
  std::vector<Tensor> batch = Take(*data, {kRows - 1});
  EXPECT_EQ(batch[0].data<float>()[1], 0.0f);
  const float value = 2.5f;
  Overwrite(path, static_cast<int64_t>(start.size()) + (kRows - 1) * kRowBytes + 4,
            std::string(reinterpret_cast<const char*>(&value), 4));
  batch = Take(*data, {0, kRows - 1});
  EXPECT_EQ(batch[0].data<float>()[kRowBytes / 4 + 1], 2.5f);
  std::filesystem::resize_file(path, 1000);
  EXPECT_THAT(std::string(data->Fill({kRows - 1}, &batch).message()),
              HasSubstr("x.npy: cannot be read"));
}

TEST_F(StoredBytesTest, SmallFilesAreHeld) {
  const std::string path = scratch_.Path("x.npy");
  ASSERT_TRUE(WriteNpy(path, Tensor::FromValues<float>({3, 2}, {1, 2, 3, 4, 5, 6})).ok());
  const auto data = Open("npy:" + path);
  EXPECT_FALSE(data->reads_slowly());
  std::filesystem::remove(path);
  EXPECT_THAT(Values(Take(*data, {2, 0})[0]), ElementsAre(5, 6, 1, 2));
}

// Big-endian numbers, bools of any byte and rows behind an odd header, one by one.
TEST_F(StoredBytesTest, NpyRowsEqualTheWholeArray) {
  struct Case {
    const char* descr;
    const char* shape;
    bool fortran;
    std::string body;
  };
  for (const Case& c : {Case{">i2", "(2, 2)", false, std::string("\1\2\xff\xfe\0\3\0\4", 8)},
                        Case{"|b1", "(2, 2)", false, std::string("\0\7\1\0", 4)},
                        Case{"<f4", "(2, 1)", false, std::string("\0\0\x80\x3f\0\0\0\x40", 8)},
                        Case{"|u1", "(2, 3)", true, std::string("\0\3\1\4\2\5", 6)},
                        Case{"<U1", "(2,)", false, std::string("a\0\0\0b\0\0\0", 8)}}) {
    const std::string header =
        absl::StrCat("{'descr': '", c.descr, "', 'fortran_order': ", c.fortran ? "True" : "False",
                     ", 'shape': ", c.shape, "}\n");
    std::string bytes = "\x93NUMPY";
    bytes += std::string("\1\0", 2);
    bytes += static_cast<char>(header.size());
    bytes += std::string(1, '\0') + header + c.body;
    const auto array = OpenNpy(StoredBytes::Viewing(bytes, "a.npy"));
    ASSERT_TRUE(array.ok()) << array.status();
    const auto rows = NpyRows(*array);
    ASSERT_TRUE(rows.ok()) << rows.status();
    const Tensor whole = *ParseNpy(bytes, "a.npy");
    EXPECT_TRUE(Identical(*ReadRows(*rows), whole)) << c.descr;
    if (whole.dtype() == DType::kString) continue;
    std::string second((*rows)->row_bytes(), '\0');
    ASSERT_TRUE((*rows)->Read(1, 1, second.data()).ok());
    EXPECT_EQ(second, std::string(whole.data<char>() + second.size(), second.size())) << c.descr;
  }
}

// A picture of classes for each example: read twice, held never.
TEST_F(StoredBytesTest, LargeLabelsStayInTheirFile) {
  const std::string x = scratch_.Path("x.npy"), y = scratch_.Path("y.npy");
  ASSERT_TRUE(WriteNpy(x, Tensor::FromValues<float>({2, 1}, {1, 2})).ok());
  ASSERT_TRUE(WriteNpy(y, Tensor::FromValues<uint8_t>({2, 2, 2}, {0, 1, 2, 0, 4, 0, 0, 1})).ok());
  const auto data = Open("npy:" + x + "," + y);
  EXPECT_EQ(Describe(*data), "2 examples, x float [1], y int64 [2, 2], 5 classes");
  EXPECT_THAT(Values(Take(*data, {1})[1]), ElementsAre(4, 0, 0, 1));
  EXPECT_EQ(data->class_labels().shape(), (Shape{2, 2, 2}));
  const auto numbers = Open("npy:" + x + "," + y + "?task=regression");
  EXPECT_EQ(Describe(*numbers), "2 examples, x float [1], y float [2, 2]");
  ASSERT_TRUE(WriteNpy(y, Tensor::FromValues<float>({2, 2}, {0, 1.5, 2, 0})).ok());
  EXPECT_THAT(ErrorOf("npy:" + x + "," + y + "?task=classes"), HasSubstr("whole numbers"));
}

TEST_F(StoredBytesTest, RowsOfSeveralFilesFollowEachOther) {
  const Rows rows = ConcatenatedRows({Rows(Tensor::FromValues<int32_t>({2, 1}, {1, 2})),
                                      Rows(Tensor::FromValues<int32_t>({1, 1}, {3})),
                                      Rows(Tensor::FromValues<int32_t>({2, 1}, {4, 5}))});
  EXPECT_EQ(rows->count(), 5);
  EXPECT_TRUE(rows.in_memory());
  int32_t some[3] = {};
  ASSERT_TRUE(rows->Read(1, 3, some).ok());
  EXPECT_THAT(some, ElementsAre(2, 3, 4));
  EXPECT_EQ(*static_cast<const int32_t*>(rows->View(4)), 5);
}

}  // namespace onward::stored_bytes_test
