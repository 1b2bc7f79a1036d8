// SPDX-License-Identifier: Apache-2.0
#include "data/pictures/augment.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/spec.h"
#include "core/base/status.h"
#include "data/random.h"

namespace onward {
namespace {

using Vary = Picture (*)(const Picture&, const AugmentStep&, Random&);

Picture Flip(const Picture& p, const AugmentStep& step, Random& random) {
  return random.Uniform() < step.high ? Mirrored(p) : p;
}

Picture FlipVertically(const Picture& p, const AugmentStep& step, Random& random) {
  return random.Uniform() < step.high ? UpsideDown(p) : p;
}

// Black on every side, then a window of the old size somewhere in it.
Picture Crop(const Picture& p, const AugmentStep& step, Random& random) {
  const auto pad = static_cast<int64_t>(step.high);
  const auto room = static_cast<uint64_t>(2 * pad + 1);
  const int64_t down = static_cast<int64_t>(random.Below(room)) - pad;
  const int64_t right = static_cast<int64_t>(random.Below(room)) - pad;
  return Shifted(p, down, right);
}

Picture Rotate(const Picture& p, const AugmentStep& step, Random& random) {
  return Rotated(p, random.Between(-step.high, step.high));
}

Picture Zoom(const Picture& p, const AugmentStep& step, Random& random) {
  const double factor = random.Between(step.low, step.high);
  const double top = random.Uniform(), left = random.Uniform();
  return Zoomed(p, factor, top, left);
}

Picture Colour(const Picture& p, const AugmentStep& step, Random& random) {
  const double low = 1 - step.high, high = 1 + step.high;
  const double brightness = random.Between(low, high), contrast = random.Between(low, high);
  return Coloured(p, brightness, contrast, random.Between(low, high));
}

// Zhong et al., "Random erasing data augmentation": 2 to 33 % of the area, sides that relate
// as 0.3 to 3.3.
Picture Erase(const Picture& p, const AugmentStep& step, Random& random) {
  if (random.Uniform() >= step.high) return p;
  const auto [height, width, channels] = p.info;
  const double area = static_cast<double>(height * width) * random.Between(0.02, 0.33);
  const double ratio = std::exp(random.Between(std::log(0.3), std::log(3.3)));
  const auto side = [](double length, int64_t most) {
    return std::clamp<int64_t>(std::llround(length), 1, most);
  };
  const int64_t h = side(std::sqrt(area * ratio), height);
  const int64_t w = side(std::sqrt(area / ratio), width);
  const auto top = static_cast<int64_t>(random.Below(static_cast<uint64_t>(height - h + 1)));
  const auto left = static_cast<int64_t>(random.Below(static_cast<uint64_t>(width - w + 1)));
  return Erased(p, top, left, h, w);
}

struct StepKind {
  const char* name;
  const char* parameter;  // may be written before the number: crop:pad=4
  const char* form;
  const char* what;
  NumberOption number;
  bool required;  // a number has to be given
  bool range;     // LOW-HIGH
  Vary vary;
};

const std::vector<StepKind>& Kinds() {
  static const auto& kinds = *new std::vector<StepKind>{
      {"flip",
       "p",
       "flip[:P]",
       "left for right, with probability P (0.5)",
       {.name = "flip", .otherwise = 0.5, .low = 0, .high = 1},
       false,
       false,
       Flip},
      {"vflip",
       "p",
       "vflip[:P]",
       "top for bottom, with probability P (0.5)",
       {.name = "vflip", .otherwise = 0.5, .low = 0, .high = 1},
       false,
       false,
       FlipVertically},
      {"crop",
       "pad",
       "crop:PAD",
       "moved by up to PAD pixels in both directions, black behind",
       {.name = "crop", .low = 1, .high = 16384, .integer = true},
       true,
       false,
       Crop},
      {"rotate",
       "degrees",
       "rotate:D",
       "turned by up to D degrees to either side",
       {.name = "rotate", .low = 0, .high = 180, .low_open = true},
       true,
       false,
       Rotate},
      {"resize",
       "factor",
       "resize:LOW-HIGH",
       "enlarged or shrunk by a factor in this range",
       {.name = "resize", .low = 0.05, .high = 20},
       true,
       true,
       Zoom},
      {"colour",
       "amount",
       "colour:A",
       "brightness, contrast, saturation times 1-A to 1+A",
       {.name = "colour", .low = 0, .high = 1, .low_open = true},
       true,
       false,
       Colour},
      {"erase",
       "p",
       "erase[:P]",
       "a random rectangle in black, with probability P (0.25)",
       {.name = "erase", .otherwise = 0.25, .low = 0, .high = 1},
       false,
       false,
       Erase},
  };
  return kinds;
}

absl::Status WrongStep(absl::string_view step, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("data option augment: '", step, "': expected ", expected));
}

absl::StatusOr<int> FindKind(absl::string_view name) {
  if (name == "color") name = "colour";
  std::vector<std::string> names;
  for (size_t i = 0; i < Kinds().size(); ++i) {
    if (name == Kinds()[i].name) return static_cast<int>(i);
    names.emplace_back(Kinds()[i].name);
  }
  if (name == "mixup" || name == "cutmix") {
    return absl::InvalidArgumentError(absl::StrCat("data option augment: ", name,
                                                   " mixes whole batches and is an option of its "
                                                   "own: ",
                                                   name, "=0.2"));
  }
  if (absl::StartsWith(name, "normali")) {
    return absl::InvalidArgumentError(
        "data option augment: evaluation has to see the same numbers, so normalising is an option "
        "of its own: normalise=imagenet, or mean=...&std=...");
  }
  return UnknownWord("augmentation", name, names);
}

absl::StatusOr<AugmentStep> ParseStep(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  AugmentStep step;
  ONWARD_ASSIGN_OR_RETURN(step.kind, FindKind(parts.first));
  const StepKind& kind = Kinds()[step.kind];
  absl::string_view value = parts.second;
  const std::string named = absl::StrCat(kind.parameter, "=");
  if (absl::StartsWith(value, named)) value.remove_prefix(named.size());
  if (value.empty()) {
    if (kind.required || absl::StrContains(text, ':')) return WrongStep(text, kind.form);
    step.low = step.high = kind.number.otherwise;
    return step;
  }
  const size_t dash = kind.range ? value.find('-', 1) : absl::string_view::npos;
  if (kind.range && dash == absl::string_view::npos) return WrongStep(text, kind.form);
  const auto low = ParseNumber(kind.number, value.substr(0, dash));
  const auto high = kind.range ? ParseNumber(kind.number, value.substr(dash + 1)) : low;
  if (!low.ok() || !high.ok() || *low > *high) {
    return WrongStep(text, absl::StrCat(kind.form, " with ", kind.number.Expects()));
  }
  step.low = *low;
  step.high = *high;
  return step;
}

}  // namespace

absl::StatusOr<Augmentation> ParseAugmentation(absl::string_view text) {
  Augmentation steps;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    ONWARD_ASSIGN_OR_RETURN(const AugmentStep step, ParseStep(part));
    for (const AugmentStep& other : steps) {
      if (other.kind == step.kind) {
        return absl::InvalidArgumentError(
            absl::StrCat("data option augment: '", Kinds()[step.kind].name, "' is given twice"));
      }
    }
    steps.push_back(step);
  }
  return steps;
}

std::vector<AugmentHelp> AugmentationHelp() {
  std::vector<AugmentHelp> help;
  for (const StepKind& kind : Kinds()) help.push_back({kind.form, kind.what});
  return help;
}

Picture Augmented(Picture picture, const Augmentation& steps, uint64_t key) {
  for (const AugmentStep& step : steps) {
    // A stream for each kind: what one draws does not change when others come or go.
    Random random(key, static_cast<uint64_t>(step.kind) + 1);
    picture = Kinds()[step.kind].vary(picture, step, random);
  }
  return picture;
}

}  // namespace onward
