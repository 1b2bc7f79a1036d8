// SPDX-License-Identifier: Apache-2.0
// Small pictures of every kind, whole, cut short and with single bytes changed.
#include "core/picture/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/escaping.h"

namespace onward::picture_test {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Bytes(std::initializer_list<int> values) {
  std::string bytes;
  for (int v : values) bytes.push_back(static_cast<char>(v));
  return bytes;
}

void PutShort(std::string& to, uint32_t v) {
  to.push_back(static_cast<char>(v));
  to.push_back(static_cast<char>(v >> 8));
}
void PutLong(std::string& to, uint32_t v) {
  PutShort(to, v & 0xffff);
  PutShort(to, v >> 16);
}

// Two pixels wide and one high: red, then (1, 2, 3).
std::string Bmp(uint32_t bits = 24, int32_t width = 2, int32_t height = 1) {
  std::string file = "BM";
  PutLong(file, 62);
  PutLong(file, 0);
  PutLong(file, 54);
  PutLong(file, 40);
  PutLong(file, static_cast<uint32_t>(width));
  PutLong(file, static_cast<uint32_t>(height));
  PutShort(file, 1);
  PutShort(file, bits);
  for (int i = 0; i < 6; ++i) PutLong(file, 0);
  return file + Bytes({0, 0, 255, 3, 2, 1, 0, 0});
}

// One row of the grey pixels 7 and 200.
std::string Tiff() {
  std::string file = "II*";
  file.push_back('\0');
  PutLong(file, 10);
  file += Bytes({7, 200});
  const std::vector<std::pair<uint32_t, uint32_t>> entries = {
      {256, 2}, {257, 1}, {258, 8}, {259, 1}, {262, 1}, {273, 8}, {277, 1}, {278, 1}, {279, 2}};
  PutShort(file, static_cast<uint32_t>(entries.size()));
  for (const auto& [tag, value] : entries) {
    PutShort(file, tag);
    PutShort(file, 4);
    PutLong(file, 1);
    PutLong(file, value);
  }
  PutLong(file, 0);
  return file;
}

// Bare codestreams: two grey pixels, 7 and 200; two of 16 bits, 65535 and 25600; one pixel with
// transparency.
constexpr char kGrey[] =
    "/0//UQApAAAAAAACAAAAAQAAAAAAAAAAAAAAAgAAAAEAAAAAAAAAAAABBwEB/1IADAAAAAEAAAQEAAH/XAAEQED/"
    "ZAAlAAFDcmVhdGVkIGJ5IE9wZW5KUEVHIHZlcnNpb24gMi41LjT/kAAKAAAAAAAUAAH/k8+0DAlrL//Z";
constexpr char kSixteenBits[] =
    "/0//UQApAAAAAAACAAAAAQAAAAAAAAAAAAAAAgAAAAEAAAAAAAAAAAABDwEB/1IADAAAAAEAAAQEAAH/XAAEQID/"
    "ZAAlAAFDcmVhdGVkIGJ5IE9wZW5KUEVHIHZlcnNpb24gMi41LjT/kAAKAAAAAAAXAAH/k8/8MBQDghkQU//Z";
constexpr char kTransparent[] =
    "/0//UQAyAAAAAAABAAAAAQAAAAAAAAAAAAAAAQAAAAEAAAAAAAAAAAAEBwEBBwEBBwEBBwEB/1IADAAAAAEAAAQE"
    "AAH/XAAEQED/ZAAlAAFDcmVhdGVkIGJ5IE9wZW5KUEVHIHZlcnNpb24gMi41LjT/kAAKAAAAAAAiAAH/k8+0CAmP"
    "z7QICa/PtAgJn8PnBAlv/9k=";

std::string FromBase64(const char* text) {
  std::string file;
  EXPECT_TRUE(absl::Base64Unescape(text, &file));
  return file;
}

// The pixels of Bmp(), in a JP2 file.
std::string Jp2() {
  return FromBase64(
      "AAAADGpQICANCocKAAAAFGZ0eXBqcDIgAAAAAGpwMiAAAAAtanAyaAAAABZpaGRyAAAAAQAAAAIAAwcHAAAAAAAP"
      "Y29scgEAAAAAABAAAACXanAyY/9P/1EALwAAAAAAAgAAAAEAAAAAAAAAAAAAAAIAAAABAAAAAAAAAAAAAwcBAQcB"
      "AQcBAf9SAAwAAAABAAAEBAAB/1wABEBA/2QAJQABQ3JlYXRlZCBieSBPcGVuSlBFRyB2ZXJzaW9uIDIuNS40/5AA"
      "CgAAAAAAHwAB/5PPtAgAV9+AGAXoWd+AGAXoX//Z");
}

std::string Webp() { return FromBase64("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA=="); }

Picture Decoded(const std::string& bytes) {
  absl::StatusOr<Picture> picture = DecodeAnyPicture(bytes, "test");
  EXPECT_TRUE(picture.ok()) << picture.status();
  return picture.ok() ? *picture : Picture();
}

TEST(Picture, Bmp) {
  const Picture p = Decoded(Bmp());
  EXPECT_EQ(p.info.channels, 3);
  EXPECT_THAT(p.pixels, ElementsAre(255, 0, 0, 1, 2, 3));
}

TEST(Picture, Pnm) {
  EXPECT_THAT(Decoded("P2 # grey\n2 1\n15\n0 15\n").pixels, ElementsAre(0, 255));
  EXPECT_THAT(Decoded("P1\n3 1\n101").pixels, ElementsAre(0, 255, 0));
  EXPECT_THAT(Decoded("P3 1 1 255 9 8 7").pixels, ElementsAre(9, 8, 7));
  EXPECT_THAT(Decoded("P4\n3 1\n" + Bytes({0xa0})).pixels, ElementsAre(0, 255, 0));
  EXPECT_THAT(Decoded("P5\n2 1\n65535\n" + Bytes({255, 255, 0, 0})).pixels, ElementsAre(255, 0));
  EXPECT_THAT(Decoded("P6 1 1 255\n" + Bytes({9, 8, 7})).pixels, ElementsAre(9, 8, 7));
}

TEST(Picture, Tiff) {
  const Picture p = Decoded(Tiff());
  EXPECT_EQ(p.info.channels, 1);
  EXPECT_THAT(p.pixels, ElementsAre(7, 200));
}

TEST(Picture, Webp) {
  const Picture p = Decoded(Webp());
  EXPECT_EQ(p.info.height, 1);
  EXPECT_EQ(p.info.width, 1);
}

// The header alone must not make anybody take memory.
TEST(Picture, SizesAreBounded) {
  for (const std::string& file :
       {Bmp(24, 1 << 30, 1 << 30), Bmp(24, 0, 1), std::string("P5\n100000 100000\n255\n"),
        std::string("P5\n99999999999999999999 1\n255\n"),
        std::string("P2\n100000 1000\n255\n1 2")}) {
    EXPECT_FALSE(DecodeAnyPicture(file, "test").ok());
  }
}

TEST(Picture, Jpeg2000) {
  EXPECT_THAT(Decoded(Jp2()).pixels, ElementsAre(255, 0, 0, 1, 2, 3));
  EXPECT_THAT(Decoded(FromBase64(kGrey)).pixels, ElementsAre(7, 200));
  EXPECT_THAT(Decoded(FromBase64(kSixteenBits)).pixels, ElementsAre(255, 100));
  EXPECT_THAT(Decoded(FromBase64(kTransparent)).pixels, ElementsAre(9, 8, 7));
  std::string huge = FromBase64(kGrey);
  huge.replace(8, 8, Bytes({0, 0, 0x2c, 0, 0, 0, 0x2c, 0}));  // 11264 x 11264, and tiles as large
  huge.replace(24, 8, Bytes({0, 0, 0x2c, 0, 0, 0, 0x2c, 0}));
  EXPECT_FALSE(DecodeAnyPicture(huge, "test").ok());
  const auto status = DecodeAnyPicture("\xff\x4f\xff\x51 and so on", "test").status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("a JPEG 2000 file without a header"));
}

TEST(Picture, HeadersSayWhatDecodingGives) {
  for (const std::string& file :
       {Bmp(), Tiff(), Webp(), Jp2(), FromBase64(kGrey), FromBase64(kTransparent),
        std::string("P1\n3 1\n101"), std::string("P6 1 1 255\n123")}) {
    const absl::StatusOr<PictureInfo> info = ProbeAnyPicture(file, "test");
    ASSERT_TRUE(info.ok()) << info.status();
    const Picture p = Decoded(file);
    EXPECT_EQ(info->height, p.info.height);
    EXPECT_EQ(info->width, p.info.width);
    EXPECT_EQ(info->channels, p.info.channels);
  }
  EXPECT_THAT(std::string(ProbeAnyPicture("GIF89a", "test").status().message()),
              HasSubstr("test: is no PNG"));
}

// No crash and no hang; what is decoded has as many pixels as it says.
TEST(Picture, DamagedFiles) {
  for (const std::string& whole :
       {Bmp(), Bmp(8), Bmp(1), Tiff(), Webp(), Jp2(), FromBase64(kGrey),
        std::string("P1\n3 1\n101"), std::string("P6 1 1 255\n123"), std::string("P2 2 1 9 1 2")}) {
    std::vector<std::string> files;
    for (size_t n = 0; n < whole.size(); ++n) {
      files.push_back(whole.substr(0, n));
      for (int value : {0, 1, 0x7f, 0x80, 0xff}) {
        files.push_back(whole);
        files.back()[n] = static_cast<char>(value);
      }
    }
    for (const std::string& file : files) {
      (void)ProbeAnyPicture(file, "test");
      const absl::StatusOr<Picture> p = DecodeAnyPicture(file, "test");
      if (!p.ok()) continue;
      EXPECT_EQ(static_cast<int64_t>(p->pixels.size()),
                p->info.height * p->info.width * p->info.channels);
    }
  }
}

}  // namespace onward::picture_test
