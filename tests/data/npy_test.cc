// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/deflate.h"
#include "tests/support/scratch.h"

namespace onward::npy_test {

using ::testing::HasSubstr;

// An .npy file with any header and body.
std::string Npy(const std::string& dictionary, const std::string& body, int version = 1) {
  std::string header = dictionary + "\n";
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    out += static_cast<char>(header.size() >> (8 * i) & 0xff);
  }
  return out + header + body;
}

std::string Header(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }";
}

std::string ErrorOf(const std::string& bytes) {
  return std::string(ParseNpy(bytes, "a.npy").status().message());
}

void Little(std::string* out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) *out += static_cast<char>(value >> (8 * i) & 0xff);
}

// A zip archive with one entry, as numpy.savez and savez_compressed write it.
std::string Zip(const std::string& name, const std::string& bytes, bool deflated) {
  const std::string packed = deflated ? Deflate(bytes, -15) : bytes;
  const uint32_t crc = crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  std::string common;
  Little(&common, 20, 2);
  Little(&common, 0, 2);
  Little(&common, deflated ? 8 : 0, 2);
  Little(&common, 0, 4);
  Little(&common, crc, 4);
  Little(&common, packed.size(), 4);
  Little(&common, bytes.size(), 4);
  Little(&common, name.size(), 2);
  Little(&common, 0, 2);
  std::string out = "PK\x03\x04" + common + name + packed;
  const size_t directory = out.size();
  out += "PK\x01\x02";
  Little(&out, 20, 2);
  out += common;
  out.append(14, '\0');
  out += name;
  const size_t size = out.size() - directory;
  out += "PK\x05\x06";
  Little(&out, 0, 4);
  Little(&out, 1, 2);
  Little(&out, 1, 2);
  Little(&out, size, 4);
  Little(&out, directory, 4);
  Little(&out, 0, 2);
  return out;
}

TEST(Npy, RoundTripsEveryTypeNumpyHas) {
  Scratch scratch;
  for (DType dtype : {DType::kFloat, DType::kDouble, DType::kFloat16, DType::kInt8, DType::kUint8,
                      DType::kInt16, DType::kUint16, DType::kInt32, DType::kUint32, DType::kInt64,
                      DType::kUint64, DType::kBool, DType::kComplex64, DType::kComplex128}) {
    Tensor t = Tensor::Zeros(dtype, {2, 3});
    for (size_t i = 0; i < t.bytes(); i += 2) t.data<uint8_t>()[i] = 1;
    ASSERT_TRUE(WriteNpy(scratch.Path("t.npy"), t).ok());
    const auto back = ReadNpy(scratch.Path("t.npy"));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(Identical(*back, t)) << DTypeName(dtype);
  }
}

TEST(Npy, KeepsScalarsAndEmptyArrays) {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 0, 2}, Shape{5}}) {
    const Tensor t = Tensor::Zeros(DType::kFloat, shape);
    const auto back = ParseNpy(*SerializeNpy(t), "t");
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->shape(), shape);
  }
}

TEST(Npy, StartsElementsAt64Bytes) {
  const std::string bytes = *SerializeNpy(Tensor::Zeros(DType::kFloat, {100}));
  EXPECT_EQ((bytes.size() - 400) % 64, 0u);
}

TEST(Npy, RoundTripsStrings) {
  const Tensor t = Tensor::FromValues<std::string>({3}, {"", "abc", "h\xc3\xa9\xf0\x9f\x98\x80"});
  const auto back = ParseNpy(*SerializeNpy(t), "t");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(Identical(*back, t));
}

TEST(Npy, ReadsByteStrings) {
  const auto t = ParseNpy(Npy(Header("|S3", "(2,)"), std::string("ab\0xyz", 6)), "t");
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_EQ(t->data<std::string>()[0], "ab");
  EXPECT_EQ(t->data<std::string>()[1], "xyz");
}

TEST(Npy, WritesTypesNumpyLacksAsWiderOnes) {
  Tensor b(DType::kBFloat16, {1});
  *b.data<BFloat16>() = BFloat16(1.5f);
  const auto wide = ParseNpy(*SerializeNpy(b), "t");
  EXPECT_TRUE(Identical(*wide, Tensor::FromValues<float>({1}, {1.5f})));
  Tensor n = Tensor::Zeros(DType::kInt4, {2});
  *n.data<uint8_t>() = 0x7f;  // -1, then 7
  const auto bytes = ParseNpy(*SerializeNpy(n), "t");
  EXPECT_TRUE(Identical(*bytes, Tensor::FromValues<int8_t>({2}, {-1, 7})));
  EXPECT_EQ(SerializeNpy(Tensor(DType::kFloat8E4M3FN, {1})).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(Npy, TransposesFortranOrder) {
  const std::string body("\x00\x03\x01\x04\x02\x05", 6);
  const auto t = ParseNpy(Npy(Header("|u1", "(2, 3)", true), body), "t");
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_TRUE(Identical(*t, Tensor::FromValues<uint8_t>({2, 3}, {0, 1, 2, 3, 4, 5})));
}

TEST(Npy, SwapsBigEndian) {
  const auto t = ParseNpy(Npy(Header(">i2", "(2,)"), std::string("\x01\x02\xff\xfe", 4)), "t");
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_TRUE(Identical(*t, Tensor::FromValues<int16_t>({2}, {0x102, -2})));
}

TEST(Npy, ReadsAllFormatVersions) {
  for (int version : {1, 2, 3}) {
    EXPECT_TRUE(ParseNpy(Npy(Header("|u1", "(1,)"), "x", version), "t").ok());
  }
  EXPECT_THAT(ErrorOf(Npy(Header("|u1", "(1,)"), "x", 4)), HasSubstr("version 4"));
}

TEST(Npy, MakesBoolsOfAnyByte) {
  const auto t = ParseNpy(Npy(Header("|b1", "(2,)"), std::string("\x00\x07", 2)), "t");
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->data<uint8_t>()[1], 1);
}

TEST(Npy, NamesFileAndFault) {
  EXPECT_THAT(ErrorOf("PK\x03\x04 something else"), HasSubstr("a.npy: not a readable .npy"));
  EXPECT_THAT(ErrorOf(Npy(Header("<f4", "(2, 2)"), "123")),
              HasSubstr("is truncated: shape [2, 2] of float takes 16 bytes, found 3"));
  EXPECT_THAT(ErrorOf(Npy(Header("|u1", "(1,)"), "xy")), HasSubstr("left over"));
  EXPECT_THAT(ErrorOf(Npy(Header("<f4", "(1099511627776,)"), "1234")), HasSubstr("truncated"));
  EXPECT_THAT(ErrorOf(Npy(Header("<f4", "(4294967296, 4294967296)"), "")),
              HasSubstr("too many elements"));
  EXPECT_THAT(ErrorOf(Npy(Header("|O", "(1,)"), "x")), HasSubstr("Python objects"));
  EXPECT_THAT(ErrorOf(Npy(Header("<f16", "(1,)"), "x")), HasSubstr("no ONNX type"));
  EXPECT_THAT(ErrorOf(Npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "x")),
              HasSubstr("records"));
  EXPECT_THAT(ErrorOf(Npy("{'descr': '<f4'}", "x")), HasSubstr("lacks"));
  EXPECT_THAT(ErrorOf(Npy("{'descr': '<f4", "x")), HasSubstr("not closed"));
  EXPECT_EQ(ReadNpy("/no/such/file.npy").status().code(), absl::StatusCode::kNotFound);
}

// Any prefix and any damaged byte gives an array or an error, never a crash.
TEST(Npy, SurvivesDamage) {
  const std::string good = *SerializeNpy(Tensor::Zeros(DType::kFloat, {3, 2}));
  for (size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(ParseNpy(good.substr(0, n), "t").ok());
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      (void)ParseNpy(bad, "t");
    }
  }
}

TEST(Npz, ReadsStoredAndDeflatedEntries) {
  Scratch scratch;
  const Tensor t = Tensor::FromValues<float>({2}, {1.0f, 2.0f});
  for (bool deflated : {false, true}) {
    const std::string path = scratch.Write("a.npz", Zip("x.npy", *SerializeNpy(t), deflated));
    const auto arrays = ReadNpz(path);
    ASSERT_TRUE(arrays.ok()) << arrays.status();
    ASSERT_EQ(arrays->size(), 1u);
    EXPECT_EQ((*arrays)[0].first, "x");
    EXPECT_TRUE(Identical((*arrays)[0].second, t));
  }
}

TEST(Npz, SurvivesDamage) {
  Scratch scratch;
  const Tensor t = Tensor::FromValues<float>({2}, {1.0f, 2.0f});
  const std::string good = Zip("x.npy", *SerializeNpy(t), true);
  for (size_t n = 0; n < good.size(); ++n) {
    EXPECT_FALSE(ReadNpz(scratch.Write("cut.npz", good.substr(0, n))).ok()) << n;
  }
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(~bad[i]);
    (void)ReadNpz(scratch.Write("bad.npz", bad));
  }
  std::string wrong_crc = good;
  wrong_crc[14] = static_cast<char>(wrong_crc[14] ^ 1);
  wrong_crc[good.find("PK\x01\x02") + 16] ^= 1;
  EXPECT_THAT(std::string(ReadNpz(scratch.Write("crc.npz", wrong_crc)).status().message()),
              HasSubstr("checksum"));
}

TEST(Npz, RefusesSizesThatCannotBe) {
  Scratch scratch;
  std::string bomb = Zip("x.npy", std::string(100, 'x'), true);
  const size_t entry = bomb.find("PK\x01\x02");
  for (int i = 0; i < 4; ++i) bomb[entry + 24 + i] = static_cast<char>(i == 3 ? 0x7f : 0xff);
  const auto status = ReadNpz(scratch.Write("bomb.npz", bomb)).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("bomb.npz"));
  EXPECT_FALSE(status.ok());
}

}  // namespace onward::npy_test
