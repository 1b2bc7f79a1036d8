// SPDX-License-Identifier: Apache-2.0
// Pictures in folders and tables: formats, sizes, broken ones.
#include <gmock/gmock.h>

#include <filesystem>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "data/arrays/npy.h"
#include "data/pictures/fit.h"
#include "data/pictures/picture.h"
#include "tests/data/picture_bytes.h"
#include "tests/data/spec_fixture.h"

namespace onward::pictures_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using PicturesTest = SpecTest;

TEST_F(PicturesTest, ImagesOfOneFolderPerClass) {
  scratch_.Write("p/dog/1.png", *EncodePng(Filled(2, 3, 3, 51)));
  scratch_.Write("p/cat/a.png", *EncodePng(Filled(2, 3, 1, 255)));
  scratch_.Write("p/cat/b.JPG", Jpeg(Filled(2, 3, 1, 0)));
  scratch_.Write("p/cat/notes.txt", "not a picture");
  scratch_.Write("p/.hidden/x.png", "");
  const auto data = Open("images:" + scratch_.Path("p"));
  EXPECT_EQ(Describe(*data), "3 examples, x float [3, 2, 3], y int64 [], 2 classes");
  EXPECT_THAT(data->class_names(), ElementsAre("cat", "dog"));
  // One of each class in turn.
  const auto batch = Take(*data, {0, 1, 2});
  EXPECT_THAT(Values(batch[1]), ElementsAre(0, 1, 0));
  EXPECT_EQ(batch[0].data<float>()[0], 1.0f);
  EXPECT_EQ(batch[0].data<float>()[18], 0.2f);
  EXPECT_NEAR(batch[0].data<float>()[36], 0, 0.01);
  EXPECT_EQ(Open("images:" + scratch_.Path("p") + "?channels=1&size=4x5")->fields()[0].shape,
            (Shape{1, 4, 5}));
  EXPECT_EQ(Open("images:" + scratch_.Path("p") + "?limit=1")->classes(), 2);
}

TEST_F(PicturesTest, ImagesNameTheOddFile) {
  scratch_.Write("p/a/1.png", *EncodePng(Filled(2, 2, 1, 0)));
  const std::string spec = "images:" + scratch_.Path("p");
  const auto error_with = [&](const std::string& name, const std::string& bytes) {
    scratch_.Write(name, bytes);
    const std::string error = ErrorOf(spec);
    std::filesystem::remove(scratch_.Path(name));
    return error;
  };
  EXPECT_THAT(error_with("p/a/2.png", *EncodePng(Filled(3, 2, 1, 0))),
              AllOf(HasSubstr("2.png: is 3 x 2"), HasSubstr("size=2x2")));
  const std::string png = *EncodePng(Filled(2, 2, 1, 0)), jpeg = Jpeg(Filled(2, 2, 3, 9));
  EXPECT_THAT(error_with("p/a/2.png", png.substr(0, png.size() - 20)),
              AllOf(HasSubstr("2.png"), HasSubstr("truncated")));
  EXPECT_THAT(error_with("p/a/2.jpg", jpeg.substr(0, jpeg.size() - 12)),
              AllOf(HasSubstr("2.jpg"), HasSubstr("damaged picture")));
  EXPECT_THAT(error_with("p/a/2.jpg", "GIF89a"), HasSubstr("is no PNG, JPEG, WebP"));
  EXPECT_THAT(error_with("p/a/2.webp", "x"), HasSubstr("2.webp: is no PNG, JPEG, WebP"));
  EXPECT_THAT(error_with("p/a/2.png", ""), HasSubstr("nothing: it is empty"));
  std::string huge = png;
  for (int i = 16; i < 24; ++i) huge[i] = 0x7f;
  EXPECT_THAT(error_with("p/a/2.png", huge), HasSubstr("not supported"));
  EXPECT_THAT(ErrorOf("images:" + scratch_.Path("p/a")), HasSubstr("one per class"));
  EXPECT_THAT(ErrorOf("images:" + scratch_.folder()), HasSubstr("perhaps you mean"));
  EXPECT_THAT(ErrorOf("images:/no/such"), HasSubstr("cannot be listed"));
}

// R = (1 - C) (1 - K) and so on; 200 * 128 / 255 = 100.
TEST(Jpeg, InksBecomeColours) {
  const std::vector<uint8_t> inks = {55, 155, 205, 127}, without_ink = {200, 100, 50, 128};
  for (const std::string& file :
       {InkJpeg(inks, JCS_CMYK, /*adobe=*/false), InkJpeg(without_ink, JCS_CMYK, /*adobe=*/true),
        InkJpeg(without_ink, JCS_YCCK, /*adobe=*/true)}) {
    const auto info = ProbePicture(file, "inks.jpg");
    const auto picture = DecodePicture(file, "inks.jpg");
    ASSERT_TRUE(info.ok() && picture.ok()) << picture.status();
    EXPECT_EQ(info->channels, 3);
    ASSERT_EQ(picture->pixels.size(), 6u);
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_NEAR(picture->pixels[i], (std::vector<int>{100, 50, 25})[i % 3], 2) << i;
    }
  }
}

// Damage gives an error or a picture, never a crash.
TEST_F(PicturesTest, PicturesSurviveDamage) {
  Picture p = Filled(9, 7, 3, 0);
  for (size_t i = 0; i < p.pixels.size(); ++i) p.pixels[i] = static_cast<uint8_t>(i * 37);
  for (const std::string& good :
       {*EncodePng(p), Jpeg(p), InkJpeg({1, 2, 3, 4}, JCS_YCCK, /*adobe=*/true)}) {
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(~bad[i]);
      (void)ProbePicture(bad, "bad");
      (void)DecodePicture(bad, "bad");
      (void)DecodePicture(good.substr(0, i), "cut");
    }
    EXPECT_TRUE(DecodePicture(good, "good").ok());
  }
}

TEST(Resize, KeepsFlatColoursAndAverages) {
  const Picture flat = Resize(Filled(5, 7, 3, 77), 3, 11);
  EXPECT_THAT(flat.pixels, ::testing::Each(77));
  const Picture half = Resize({{1, 4, 1}, {0, 0, 200, 200}}, 1, 2);
  // Triangle weights of the inner and outer pixels: 3/7 3/7 1/7 and mirrored.
  EXPECT_THAT(half.pixels, ElementsAre(29, 171));
  const Picture twice = Resize({{1, 2, 1}, {0, 100}}, 1, 4);
  EXPECT_THAT(twice.pixels, ElementsAre(0, 25, 75, 100));
}

TEST_F(PicturesTest, FoldersMayHoldEveryFormat) {
  const Picture flat = Filled(1, 1, 3, 40);
  std::string webp;
  ASSERT_TRUE(absl::Base64Unescape("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==", &webp));
  scratch_.Write("p/a/1.png", *EncodePng(flat));
  scratch_.Write("p/a/2.jpeg", Jpeg(flat));
  scratch_.Write("p/a/3.webp", webp);
  scratch_.Write("p/a/4.bmp", Bmp(flat));
  scratch_.Write("p/a/5.PPM", "P3 1 1 255 40 40 40");
  const auto data = Open("images:" + scratch_.Path("p") + "?scale=1");
  EXPECT_EQ(Describe(*data), "5 examples, x float [3, 1, 1], y int64 [], 1 classes");
  const auto batch = Take(*data, {0, 1, 3, 4});
  EXPECT_THAT(Values(batch[0]), ::testing::Each(::testing::DoubleNear(40, 1)));
  EXPECT_EQ(data->place(2), scratch_.Path("p/a/3.webp"));
}

TEST_F(PicturesTest, OnePicture) {
  const std::string path = scratch_.Write("one.png", *EncodePng(Filled(2, 3, 1, 51)));
  const auto data = Open("images:" + path);
  EXPECT_EQ(Describe(*data), "1 examples, x float [1, 2, 3]");
  EXPECT_EQ(data->place(0), path);
  EXPECT_THAT(ErrorOf("images:" + path + "?label=a"), HasSubstr("a single picture has no label"));
  EXPECT_THAT(ErrorOf("images:" + scratch_.Write("n.txt", "text")), HasSubstr("is no PNG, JPEG"));
  EXPECT_THAT(ErrorOf(path), HasSubstr("did you mean images:" + path));
}

TEST_F(PicturesTest, TellsWhatOfAFolderIsLeftOut) {
  const std::string png = *EncodePng(Filled(1, 1, 1, 0));
  const std::string spec = "images:" + scratch_.Path("p");
  scratch_.Write("p/a/1.png", png);
  scratch_.Write("p/b/1.png", png);
  scratch_.Write("p/b/.hidden", "");
  EXPECT_THAT(Open(spec)->notes(), ::testing::IsEmpty());
  for (const char* name : {"a/1.GIF", "a/2.gif", "b/3.gif", "b/notes.txt", "README"}) {
    scratch_.Write(absl::StrCat("p/", name), "GIF89a");
  }
  const std::string left_out = scratch_.Path("p") +
                               ": left out 3 .gif files, 1 file without an ending, 1 .txt file "
                               "(PNG, JPEG, WebP, TIFF, BMP, JPEG 2000 and PNM are read)";
  EXPECT_THAT(Open(spec)->notes(), ElementsAre(left_out));
  EXPECT_THAT(Open(spec + "?label=none")->notes(), ElementsAre(left_out));
  scratch_.Write("p/2.png", png);
  scratch_.Write("p/a/more/2.png", png);
  EXPECT_THAT(Open(spec)->notes(),
              ElementsAre(left_out + "; 1 picture beside the classes' folders; 1 folder further "
                                     "inside"));
  EXPECT_THAT(Open(spec + "?label=none")->notes(),
              ElementsAre(left_out + "; 1 folder further inside"));
  scratch_.Write("p/c/1.heic", "");
  EXPECT_THAT(ErrorOf(spec), HasSubstr("/p/c: holds no pictures (PNG, JPEG, WebP, TIFF, BMP, JPEG "
                                       "2000 and PNM are read), but 1 .heic file"));
}

// What a 2 x 3 picture becomes; its pixels are 1 to 6.
TEST(Orientation, PutsPicturesUpright) {
  const Picture stored{{2, 3, 1}, {1, 2, 3, 4, 5, 6}};
  const std::vector<std::vector<uint8_t>> upright = {
      {1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1}, {4, 5, 6, 1, 2, 3},
      {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3}, {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (int k = 1; k <= 8; ++k) {
    const Picture out = Upright(stored, k);
    EXPECT_EQ(out.pixels, upright[k - 1]) << k;
    EXPECT_EQ(out.info.height, k < 5 ? 2 : 3) << k;
  }
}

TEST_F(PicturesTest, JpegsAreTurnedAsTheCameraSays) {
  Picture p = Filled(8, 16, 1, 250);
  for (int64_t y = 0; y < 8; ++y) {
    for (int64_t x = 8; x < 16; ++x) p.pixels[y * 16 + x] = 10;  // dark on the right
  }
  for (bool little : {false, true}) {
    const std::string turned = WithOrientation(Jpeg(p), 6, little);
    EXPECT_EQ(OrientationOf(turned), 6);
    scratch_.Write("p/a/1.jpg", turned);
    const auto data = Open("images:" + scratch_.Path("p") + "?scale=1");
    EXPECT_EQ(data->fields()[0].shape, (Shape{1, 16, 8}));
    const auto x = Take(*data, {0})[0];
    EXPECT_NEAR(x.data<float>()[0], 250, 3);          // top
    EXPECT_NEAR(x.data<float>()[16 * 8 - 1], 10, 3);  // bottom
  }
  EXPECT_EQ(OrientationOf(Jpeg(p)), 1);
  EXPECT_EQ(OrientationOf(WithOrientation(Jpeg(p), 9, true)), 1);
  const std::string whole = WithOrientation(Jpeg(p), 6, true);
  for (size_t n = 0; n < 80; ++n) (void)OrientationOf(whole.substr(0, n));  // never past the end
}

TEST(Fit, StretchesCropsOrPads) {
  const Picture wide{{2, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8}};
  EXPECT_THAT(FitPicture(wide, 2, 2, Fit::kCrop).pixels, ElementsAre(2, 3, 6, 7));
  const Picture padded = FitPicture(Filled(2, 4, 1, 9), 4, 4, Fit::kPad);
  EXPECT_THAT(padded.pixels, ElementsAre(0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0));
  EXPECT_THAT(FitPicture(Filled(4, 2, 1, 9), 2, 2, Fit::kPad).pixels, ::testing::SizeIs(4));
  EXPECT_EQ(FitPicture(wide, 2, 2, Fit::kStretch).pixels, Resize(wide, 2, 2).pixels);
  for (Fit fit : {Fit::kStretch, Fit::kCrop, Fit::kPad}) {
    EXPECT_EQ(FitPicture(wide, 2, 4, fit).pixels, wide.pixels);
    // Sides that relate by far more than the size can tell.
    EXPECT_EQ(FitPicture(Filled(1, 1000, 3, 5), 3, 3, fit).pixels.size(), 27u);
    EXPECT_EQ(FitPicture(Filled(1000, 1, 3, 5), 3, 3, fit).pixels.size(), 27u);
  }
  EXPECT_THAT(FitPixels({-1, 1}, {1, 2, 1}, 1, 1, Fit::kStretch), ElementsAre(0));
}

TEST_F(PicturesTest, SizeIsForArraysToo) {
  const std::string x = scratch_.Path("x.npy");
  ASSERT_TRUE(
      WriteNpy(x, Tensor::FromValues<uint8_t>({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})).ok());
  const auto cropped = Open("npy:" + x + "?size=2x2&fit=crop&scale=1");
  EXPECT_EQ(cropped->fields()[0].shape, (Shape{1, 2, 2}));
  EXPECT_THAT(Values(Take(*cropped, {0})[0]), ElementsAre(2, 3, 6, 7));
  const auto colour = Open("npy:" + x + "?channels=3&scale=1");
  EXPECT_EQ(colour->fields()[0].shape, (Shape{3, 2, 4}));
  const auto last = Open("npy:" + x + "?size=2x2&fit=crop&scale=1&channels=3&layout=nhwc");
  EXPECT_EQ(last->fields()[0].shape, (Shape{2, 2, 3}));
  EXPECT_THAT(Values(Take(*last, {0})[0]), ElementsAre(2, 2, 2, 3, 3, 3, 6, 6, 6, 7, 7, 7));
  // Channels last in the file stay last; grey without a channel axis stays without.
  ASSERT_TRUE(WriteNpy(x, Tensor::FromValues<uint8_t>({1, 2, 1, 3}, {1, 2, 3, 4, 5, 6})).ok());
  const auto pixels = Open("npy:" + x + "?size=4x2&scale=1");
  EXPECT_EQ(pixels->fields()[0].shape, (Shape{4, 2, 3}));
  ASSERT_TRUE(WriteNpy(x, Tensor::FromValues<float>({1, 2, 2}, {-1, -1, 1, 1})).ok());
  const auto floats = Open("npy:" + x + "?size=1x1");
  EXPECT_EQ(floats->fields()[0].shape, (Shape{1, 1}));
  EXPECT_THAT(Values(Take(*floats, {0})[0]), ElementsAre(0));
  EXPECT_THAT(ErrorOf("npy:" + x + "?channels=3"), HasSubstr("pictures of bytes (uint8)"));
  ASSERT_TRUE(WriteNpy(x, Tensor::FromValues<float>({2, 2}, {1, 2, 3, 4})).ok());
  EXPECT_THAT(ErrorOf("npy:" + x + "?size=4x4"),
              AllOf(HasSubstr("are for pictures"), HasSubstr("it is float [2]")));
  EXPECT_THAT(ErrorOf("npy:" + x + "?fit=crop"), HasSubstr("fit needs size=HxW"));
  EXPECT_THAT(ErrorOf("npy:" + x + "?fit=cover&size=2x2"), HasSubstr("crop or pad or stretch"));
}

TEST_F(PicturesTest, NormaliseIsMeanAndStdByName) {
  scratch_.Write("p/a/1.png", *EncodePng(Filled(1, 1, 3, 255)));
  const std::string spec = "images:" + scratch_.Path("p");
  const auto named = Open(spec + "?normalise=imagenet");
  const auto numbers = Open(spec + "?mean=0.485,0.456,0.406&std=0.229,0.224,0.225");
  EXPECT_TRUE(Identical(Take(*named, {0})[0], Take(*numbers, {0})[0]));
  EXPECT_THAT(Values(Take(*Open(spec + "?normalise=half"), {0})[0]), ElementsAre(1, 1, 1));
  EXPECT_THAT(ErrorOf(spec + "?normalise=imagenet&mean=1"), HasSubstr("leave them out"));
  EXPECT_THAT(ErrorOf(spec + "?normalise=x"), HasSubstr("imagenet, cifar10"));
}

TEST_F(PicturesTest, BrokenOnesAreNamedAllAtOnceOrLeftOut) {
  const std::string good = *EncodePng(Filled(2, 2, 1, 7));
  for (int i = 0; i < 3; ++i) scratch_.Write(absl::StrCat("p/a/good", i, ".png"), good);
  for (int i = 0; i < 12; ++i) {
    scratch_.Write(absl::StrCat("p/a/cut", 10 + i, ".png"), good.substr(0, good.size() - 5));
  }
  const std::string spec = "images:" + scratch_.Path("p");
  EXPECT_THAT(ErrorOf(spec), AllOf(HasSubstr("cut10.png: damaged"), HasSubstr("cut19.png"),
                                   HasSubstr("and 2 more"), HasSubstr("12 of 15 pictures"),
                                   HasSubstr("?broken=skip"), Not(HasSubstr("cut20.png"))));
  const auto data = Open(spec + "?broken=skip");
  EXPECT_EQ(data->size(), 3);
  EXPECT_EQ(Values(Take(*data, {0, 1, 2})[1]), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(data->place(2), scratch_.Path("p/a/good2.png"));
  ASSERT_EQ(data->notes().size(), 1u);
  EXPECT_THAT(data->notes()[0],
              AllOf(HasSubstr("left out 12 of 15 pictures"), HasSubstr("cut10.png")));
  EXPECT_THAT(ErrorOf(spec + "?broken=maybe"), HasSubstr("refuse or skip"));
}

// Header and end are whole, what is between them is not.
TEST_F(PicturesTest, WhatOnlyDecodingShowsIsFoundAtItsBatchOrBefore) {
  Picture p = Filled(32, 32, 3, 0);
  for (size_t i = 0; i < p.pixels.size(); ++i) p.pixels[i] = static_cast<uint8_t>(i * 37);
  std::string bad = *EncodePng(p);
  for (size_t i = 60; i < 90; ++i) bad[i] = static_cast<char>(~bad[i]);
  scratch_.Write("p/a/1.png", *EncodePng(p));
  scratch_.Write("p/a/2.png", bad);
  const std::string spec = "images:" + scratch_.Path("p");
  const auto data = Open(spec);
  EXPECT_EQ(data->size(), 2);
  std::vector<Tensor> batch;
  EXPECT_TRUE(data->Fill({0}, &batch).ok());
  EXPECT_THAT(std::string(data->Fill({0, 1}, &batch).message()),
              AllOf(HasSubstr("2.png: damaged picture"), HasSubstr("?broken=skip")));
  EXPECT_THAT(ErrorOf(spec + "?broken=refuse"), HasSubstr("2.png: damaged picture"));
  EXPECT_EQ(Open(spec + "?broken=skip")->size(), 1);
  // Programs add to pictures that are whole.
  scratch_.Write("p/a/2.png", *EncodePng(p) + std::string(5000, 'x'));
  EXPECT_EQ(Open(spec)->size(), 2);
}

TEST_F(PicturesTest, FilesThatGoAwayAreErrorsOfTheirBatch) {
  scratch_.Write("p/a/1.png", *EncodePng(Filled(2, 2, 1, 7)));
  const std::string second = scratch_.Write("p/a/2.png", *EncodePng(Filled(2, 2, 1, 7)));
  const auto data = Open("images:" + scratch_.Path("p"));
  std::filesystem::remove(second);
  std::vector<Tensor> batch;
  EXPECT_TRUE(data->Fill({0}, &batch).ok());
  EXPECT_THAT(std::string(data->Fill({1}, &batch).message()), HasSubstr(second));
}

TEST_F(PicturesTest, UnlabelledForPrediction) {
  scratch_.Write("p/2.png", *EncodePng(Filled(1, 1, 1, 7)));
  scratch_.Write("p/q/1.png", *EncodePng(Filled(1, 1, 1, 8)));
  const auto data = Open("images:" + scratch_.Path("p") + "?label=none&scale=1");
  EXPECT_EQ(Describe(*data), "2 examples, x float [1, 1, 1]");
  EXPECT_THAT(Values(Take(*data, {0, 1})[0]), ElementsAre(7, 8));
  EXPECT_THAT(ErrorOf("images:" + scratch_.Path("p") + "?label=x"), HasSubstr("label=none"));
}

TEST_F(PicturesTest, TablesNameFilesAndLabels) {
  scratch_.Write("t/img/1.png", *EncodePng(Filled(1, 1, 1, 10)));
  scratch_.Write("t/img/2.png", *EncodePng(Filled(1, 1, 1, 20)));
  const auto with = [&](const std::string& text) {
    return "images:" + scratch_.Write("t/list.csv", text);
  };
  const auto named =
      Open(with("label,split,path\ncat,train,img/2.png\n\"dog\",test,img/1.png\n") + "?scale=1");
  EXPECT_THAT(named->class_names(), ElementsAre("cat", "dog"));
  EXPECT_THAT(Values(Take(*named, {0, 1})[0]), ElementsAre(20, 10));
  EXPECT_THAT(Values(Take(*named, {0, 1})[1]), ElementsAre(0, 1));
  const auto bare = Open(with("img/1.png,3\nimg/2.png,0\n"));
  EXPECT_EQ(Describe(*bare), "2 examples, x float [1, 1, 1], y int64 [], 4 classes");
  const auto ages = Open(with("file,age,name\nimg/1.png,2.5,a\nimg/2.png,30,b\n") + "?label=age");
  EXPECT_EQ(Describe(*ages), "2 examples, x float [1, 1, 1], y float []");
  EXPECT_EQ(Describe(*Open(with("img/1.png\n"))), "1 examples, x float [1, 1, 1]");
  EXPECT_THAT(ErrorOf(with("img/1.png,1\nimg/9.png,2\n")),
              HasSubstr("img/9.png: cannot be opened"));
  EXPECT_THAT(ErrorOf(with("file,age\nimg/1.png,2\n") + "?label=x"),
              HasSubstr("no column 'x'; it has file, age"));
  EXPECT_THAT(ErrorOf(with("img/1.png,1\nimg/2.png\n")), HasSubstr("line 2 has 1 fields"));
}

}  // namespace onward::pictures_test
