// SPDX-License-Identifier: Apache-2.0
#include "data/pictures/augment.h"

#include <gmock/gmock.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "data/batch.h"
#include "data/pictures/grid.h"
#include "data/pictures/picture.h"
#include "tests/data/picture_bytes.h"
#include "tests/data/spec_fixture.h"

namespace onward::augment_test {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 2 x 3 grey pixels, 1 to 6.
Picture Six() { return {{2, 3, 1}, {1, 2, 3, 4, 5, 6}}; }

TEST(Augment, Flips) {
  EXPECT_THAT(Mirrored(Six()).pixels, ElementsAre(3, 2, 1, 6, 5, 4));
  EXPECT_THAT(UpsideDown(Six()).pixels, ElementsAre(4, 5, 6, 1, 2, 3));
  const Picture colour{{1, 2, 3}, {1, 2, 3, 4, 5, 6}};
  EXPECT_THAT(Mirrored(colour).pixels, ElementsAre(4, 5, 6, 1, 2, 3));
}

TEST(Augment, Shifts) {
  EXPECT_THAT(Shifted(Six(), 1, 0).pixels, ElementsAre(0, 0, 0, 1, 2, 3));
  EXPECT_THAT(Shifted(Six(), 0, -1).pixels, ElementsAre(2, 3, 0, 5, 6, 0));
  EXPECT_THAT(Shifted(Six(), -1, 1).pixels, ElementsAre(0, 4, 5, 0, 0, 0));
  EXPECT_THAT(Shifted(Six(), 0, 0).pixels, Six().pixels);
  EXPECT_THAT(Shifted(Six(), 5, 0).pixels, Each(0));
  EXPECT_THAT(Shifted(Six(), 0, -3).pixels, Each(0));
}

TEST(Augment, Rotates) {
  const Picture square{{2, 2, 1}, {1, 2, 3, 4}};
  EXPECT_THAT(Rotated(square, 90).pixels, ElementsAre(2, 4, 1, 3));
  EXPECT_THAT(Rotated(square, -90).pixels, ElementsAre(3, 1, 4, 2));
  EXPECT_THAT(Rotated(square, 180).pixels, ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(Rotated(Six(), 0).pixels, Six().pixels);
  // The middle stays, corners come from outside.
  const Picture turned = Rotated(Filled(5, 5, 3, 200), 45);
  EXPECT_EQ(turned.pixels[(2 * 5 + 2) * 3], 200);
  EXPECT_LT(turned.pixels[0], 100);
}

TEST(Augment, Zooms) {
  const Picture line{{1, 4, 1}, {10, 20, 30, 40}};
  EXPECT_THAT(Zoomed(line, 1, 0.3, 0.7).pixels, line.pixels);
  // Half as large: two pixels on black, left or right. Height cannot be less than one.
  EXPECT_THAT(Zoomed(line, 0.5, 0, 0).pixels, ElementsAre(17, 33, 0, 0));
  EXPECT_THAT(Zoomed(line, 0.5, 0, 1).pixels, ElementsAre(0, 0, 17, 33));
  // Twice as large: the left or the right end of it.
  EXPECT_THAT(Zoomed(line, 2, 0, 0).pixels, ElementsAre(10, 13, 18, 23));
  EXPECT_THAT(Zoomed(line, 2, 0, 1).pixels, ElementsAre(28, 33, 38, 40));
}

TEST(Augment, Colours) {
  const Picture grey{{1, 2, 1}, {100, 200}};
  EXPECT_THAT(Coloured(grey, 1, 1, 1).pixels, ElementsAre(100, 200));
  EXPECT_THAT(Coloured(grey, 1.5, 1, 1).pixels, ElementsAre(150, 255));
  EXPECT_THAT(Coloured(grey, 1, 0.5, 1).pixels, ElementsAre(125, 175));
  EXPECT_THAT(Coloured(grey, 1, 1, 0).pixels, ElementsAre(100, 200));
  const Picture red{{1, 1, 3}, {200, 0, 0}};
  EXPECT_THAT(Coloured(red, 1, 1, 0).pixels, ElementsAre(60, 60, 60));  // 0.299 * 200
  EXPECT_THAT(Coloured(red, 1, 1, 0.5).pixels, ElementsAre(130, 30, 30));
}

TEST(Augment, Erases) {
  EXPECT_THAT(Erased(Six(), 0, 1, 2, 1).pixels, ElementsAre(1, 0, 3, 4, 0, 6));
  EXPECT_THAT(Erased(Six(), 1, 1, 1, 2).pixels, ElementsAre(1, 2, 3, 4, 0, 0));
}

TEST(Augment, ListsAreReadOrRefused) {
  const auto steps = ParseAugmentation("flip,crop:pad=4,rotate:10,color:0.2,erase,resize:0.8-1.2");
  ASSERT_TRUE(steps.ok()) << steps.status();
  EXPECT_EQ(steps->size(), 6u);
  EXPECT_EQ((*steps)[1].high, 4);
  EXPECT_EQ((*steps)[4].high, 0.25);
  EXPECT_EQ((*steps)[5].low, 0.8);
  const auto error = [](const std::string& text) {
    return std::string(ParseAugmentation(text).status().message());
  };
  EXPECT_THAT(error("flop"), AllOf(HasSubstr("unknown augmentation 'flop'"), HasSubstr("flip")));
  for (const char* bad :
       {"crop", "crop:0", "crop:x", "crop:1.5", "rotate:0", "rotate:181", "flip:2",
        "flip:", "resize:1", "resize:1.2-0.8", "colour:-1", "erase:p=x"}) {
    EXPECT_THAT(error(bad), AllOf(HasSubstr(bad), HasSubstr("expected"))) << bad;
  }
  EXPECT_THAT(error("flip,flip"), HasSubstr("given twice"));
  EXPECT_THAT(error("mixup"), HasSubstr("mixup=0.2"));
  EXPECT_THAT(error("normalise"), HasSubstr("normalise=imagenet"));
}

// Every kind, each by itself: some variations differ, and a key gives the same one again.
TEST(Augment, AKeyDecides) {
  Picture p = Filled(12, 9, 3, 0);
  for (size_t i = 0; i < p.pixels.size(); ++i) p.pixels[i] = static_cast<uint8_t>(i * 7 % 251);
  for (const char* text :
       {"flip", "vflip", "crop:3", "rotate:20", "colour:0.5", "erase:0.9", "resize:0.5-2",
        "flip,crop:2,rotate:5,colour:0.1,erase,resize:0.9-1.1"}) {
    const Augmentation steps = *ParseAugmentation(text);
    std::set<std::vector<uint8_t>> different;
    for (uint64_t key = 0; key < 24; ++key) {
      const Picture varied = Augmented(p, steps, key);
      EXPECT_EQ(varied.pixels, Augmented(p, steps, key).pixels);
      EXPECT_EQ(varied.info.height, 12);
      EXPECT_EQ(varied.pixels.size(), p.pixels.size());
      different.insert(varied.pixels);
    }
    EXPECT_GT(different.size(), 1u) << text;
  }
  EXPECT_EQ(Augmented(p, *ParseAugmentation("flip:1"), 5).pixels, Mirrored(p).pixels);
  EXPECT_EQ(Augmented(p, *ParseAugmentation("flip:0"), 5).pixels, p.pixels);
  EXPECT_THAT(Augmented(Filled(1, 1, 1, 5), *ParseAugmentation("erase:1"), 1).pixels,
              ElementsAre(0));
}

class AugmentedData : public SpecTest {
 protected:
  void SetUp() override {
    for (int i = 0; i < 12; ++i) {
      Picture p = Filled(6, 5, 3, 0);
      for (size_t k = 0; k < p.pixels.size(); ++k) {
        p.pixels[k] = static_cast<uint8_t>((i + 1) * k % 256);
      }
      scratch_.Write(absl::StrCat("p/", i % 2, "/", 10 + i, ".png"), *EncodePng(p));
    }
    spec_ = "images:" + scratch_.Path("p") + "?augment=flip,crop:2,colour:0.3,resize:0.8-1.2";
  }
  std::string spec_;
};

TEST_F(AugmentedData, TrainingSeesVariationsAndEvaluationDoesNot) {
  const auto plain = Open("images:" + scratch_.Path("p"));
  for (Split split : {Split::kTrain, Split::kTest}) {
    const auto data = Open(spec_, split);
    EXPECT_TRUE(Identical(Take(*data, {3})[0], Take(*plain, {3})[0]));
    EXPECT_FALSE(Identical(TakeVaried(*data, {3}, {7})[0], Take(*plain, {3})[0]));
    EXPECT_FALSE(Identical(TakeVaried(*data, {3}, {7})[0], TakeVaried(*data, {3}, {8})[0]));
  }
}

// The same bits for any number of threads, before and after a stop.
TEST_F(AugmentedData, BatchesAreTheSameForAnyNumberOfThreads) {
  std::vector<Tensor> expected;
  for (int workers : {0, 1, 5}) {
    for (int threads : {1, 3}) {
      const ScopedThreads scoped(threads);
      const std::shared_ptr<const Dataset> data = Open(spec_);
      const BatchOptions options{.batch_size = 4, .seed = 9, .workers = workers};
      auto source = BatchSource::Create(data, options);
      ASSERT_TRUE(source.ok());
      for (int i = 0; i < 7; ++i) {
        Batch batch;
        if (i == 4) {  // as if resumed
          const BatchPosition position = source->position();
          source = BatchSource::Create(data, options);
          ASSERT_TRUE(source.ok() && source->SetPosition(position).ok());
        }
        ASSERT_TRUE(source->Next(&batch).ok());
        if (static_cast<int>(expected.size()) <= i) expected.push_back(batch.tensors[0].Clone());
        EXPECT_TRUE(Identical(batch.tensors[0], expected[i]))
            << i << ", " << workers << " workers, " << threads << " threads";
      }
    }
  }
  EXPECT_FALSE(Identical(expected[0], expected[3]));
}

TEST_F(AugmentedData, ArraysVaryToo) {
  const std::string idx = [] {
    std::string bytes("\0\0\10\3\0\0\0\1\0\0\0\2\0\0\0\2", 16);
    return bytes + std::string("\1\2\3\4", 4);
  }();
  scratch_.Write("i", idx);
  scratch_.Write("l", std::string("\0\0\10\1\0\0\0\1\0", 9));
  const auto data = Open(
      absl::StrCat("idx:", scratch_.Path("i"), ",", scratch_.Path("l"), "?augment=flip:1&scale=1"));
  EXPECT_THAT(Values(Take(*data, {0})[0]), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Values(TakeVaried(*data, {0}, {1})[0]), ElementsAre(2, 1, 4, 3));
}

TEST(TilePictures, PutsThemSideBySide) {
  const Picture grid =
      TilePictures({Filled(1, 1, 1, 1), Filled(1, 1, 1, 2), Filled(1, 1, 1, 3)}, 2, 1);
  EXPECT_EQ(grid.info.height, 3);
  EXPECT_THAT(grid.pixels, ElementsAre(1, 255, 2, 255, 255, 255, 3, 255, 255));
  const Picture mixed = TilePictures({Filled(1, 1, 3, 9), Filled(2, 1, 1, 4)}, 9, 0);
  EXPECT_EQ(mixed.info.channels, 3);
  EXPECT_THAT(mixed.pixels, ElementsAre(9, 9, 9, 4, 4, 4, 255, 255, 255, 4, 4, 4));
  EXPECT_TRUE(TilePictures({}, 3, 1).pixels.empty());
}

}  // namespace onward::augment_test
