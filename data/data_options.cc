// SPDX-License-Identifier: Apache-2.0
#include "data/data_options.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/spec.h"
#include "core/base/status.h"
#include "data/file_bytes.h"
#include "data/pictures/picture.h"
#include "data/spec_kinds.h"

namespace onward {
namespace {

struct Normalisation {
  const char* name;
  std::vector<double> mean, std;
};

const std::vector<Normalisation>& Normalisations() {
  static const auto& all = *new std::vector<Normalisation>{
      {"imagenet", {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}},
      {"cifar10", {0.4914, 0.4822, 0.4465}, {0.247, 0.2435, 0.2616}},
      {"mnist", {0.1307}, {0.3081}},
      {"half", {0.5}, {0.5}},
  };
  return all;
}

// %20 and the like; a % that starts no hexadecimal number stands for itself.
std::string Decode(absl::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && absl::ascii_isxdigit(text[i + 1]) &&
        absl::ascii_isxdigit(text[i + 2])) {
      out += absl::HexStringToBytes(text.substr(i + 1, 2));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

// "0.5" or "1/255".
std::optional<double> Number(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  double v = 0, divisor = 1;
  if (parts.size() > 2 || !absl::SimpleAtod(parts[0], &v)) return std::nullopt;
  if (parts.size() == 2 && !absl::SimpleAtod(parts[1], &divisor)) return std::nullopt;
  v /= divisor;
  return std::isfinite(v) && std::isfinite(divisor) ? std::optional<double>(v) : std::nullopt;
}

std::optional<std::vector<double>> Numbers(absl::string_view text) {
  std::vector<double> out;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const auto v = Number(part);
    if (!v) return std::nullopt;
    out.push_back(*v);
  }
  return out;
}

std::optional<Shape> Sizes(absl::string_view text) {
  Shape shape;
  for (absl::string_view part : absl::StrSplit(text, absl::ByAnyChar("xX"))) {
    int64_t dim = 0;
    if (!absl::SimpleAtoi(part, &dim) || dim < 1) return std::nullopt;
    shape.push_back(dim);
  }
  if (!CheckedElements(shape.dims()).ok()) return std::nullopt;
  return shape;
}

absl::Status SetRows(const std::string& name, const std::string& value, DataOptions* o) {
  int64_t n = 0;
  uint64_t seed = 0;
  if (name == "limit") {
    if (!absl::SimpleAtoi(value, &n) || n < 1) return WrongOption(name, value, "a number from 1");
    o->limit = n;
  } else if (name == "offset") {
    if (!absl::SimpleAtoi(value, &n) || n < 0) return WrongOption(name, value, "a number from 0");
    o->offset = n;
  } else {
    if (!absl::SimpleAtoi(value, &seed)) return WrongOption(name, value, "a seed, such as 1");
    o->shuffle = seed;
  }
  return absl::OkStatus();
}

absl::Status SetScaling(const std::string& name, const std::string& value, DataOptions* o) {
  if (name == "scale" || name == "shift") {
    const auto v = Number(value);
    if (!v || (name == "scale" && *v == 0))
      return WrongOption(name, value, "a number, such as 1/255");
    (name == "scale" ? o->scale : o->shift) = v;
    return absl::OkStatus();
  }
  const auto values = Numbers(value);
  bool good = values.has_value();
  for (size_t i = 0; good && name == "std" && i < values->size(); ++i) good = (*values)[i] > 0;
  if (!good) {
    return WrongOption(name, value, name == "std" ? "numbers above 0" : "numbers, such as 0.5,0.4");
  }
  (name == "mean" ? o->mean : o->std) = *values;
  return absl::OkStatus();
}

absl::Status SetNormalisation(const std::string& value, DataOptions* o) {
  std::vector<const char*> names;
  for (const Normalisation& n : Normalisations()) {
    names.push_back(n.name);
    if (value != n.name) continue;
    o->mean = n.mean;
    o->std = n.std;
    return absl::OkStatus();
  }
  return WrongOption("normalise", value, absl::StrJoin(names, ", "));
}

// What the command would take of data in two halves is what it takes of the parts; the data that
// is divided is the half for training.
void Divide(DataOptions* o) {
  o->part = o->split;
  o->split = Split::kTrain;
}

// Half of data that comes in two, or a share of data that does not.
absl::Status SetSplit(const DataKind& kind, const std::string& value, DataOptions* o) {
  const bool halves =
      std::count(kind.options.begin(), kind.options.end(), absl::string_view("split")) > 0;
  if (halves && (value == "train" || value == "test")) {
    o->split = value == "train" ? Split::kTrain : Split::kTest;
    return absl::OkStatus();
  }
  const auto share = Number(value);
  if (!share || *share <= 0 || *share >= 1) {
    return WrongOption(
        "split", value,
        halves ? "train, test, or a share such as 0.8" : "a share between 0 and 1, such as 0.8");
  }
  o->parts.share = share;
  Divide(o);
  return absl::OkStatus();
}

absl::Status SetFold(const std::string& value, DataOptions* o) {
  const std::vector<absl::string_view> words = absl::StrSplit(value, '/');
  Fold fold;
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &fold.number) ||
      !absl::SimpleAtoi(words[1], &fold.count) || fold.count < 2 || fold.number < 1 ||
      fold.number > fold.count) {
    return WrongOption("fold", value, "which of how many, such as 1/5");
  }
  o->parts.fold = fold;
  Divide(o);
  return absl::OkStatus();
}

absl::Status SetMixing(const std::string& name, const std::string& value, DataOptions* o) {
  const auto alpha = Number(value);
  if (!alpha || *alpha <= 0 || *alpha > 100) return WrongOption(name, value, "a number above 0");
  (name == "mixup" ? o->hints.mixup : o->hints.cutmix) = *alpha;
  return absl::OkStatus();
}

absl::Status SetSize(const std::string& value, DataOptions* o) {
  o->pictures.size = Sizes(value);
  const auto& size = o->pictures.size;
  const bool good = size && size->rank() == 2 && (*size)[0] <= 16384 && (*size)[1] <= 16384;
  return good ? absl::OkStatus()
              : WrongOption("size", value, "height x width up to 16384, such as 64x64");
}

absl::Status SetChoice(const std::string& name, const std::string& value, DataOptions* o) {
  const auto choose = [&](std::map<std::string, std::function<void()>> choices) -> absl::Status {
    const auto it = choices.find(value);
    if (it == choices.end()) {
      return WrongOption(name, value,
                         absl::StrJoin(choices, " or ", [](std::string* out, const auto& c) {
                           out->append(c.first);
                         }));
    }
    it->second();
    return absl::OkStatus();
  };
  PictureOptions& p = o->pictures;
  if (name == "layout") {
    return choose(
        {{"nchw", [o] { o->channels_last = false; }}, {"nhwc", [o] { o->channels_last = true; }}});
  }
  if (name == "channels") {
    return choose({{"1", [&] { p.channels = 1; }}, {"3", [&] { p.channels = 3; }}});
  }
  if (name == "fit") {
    return choose({{"stretch", [&] { p.fit = Fit::kStretch; }},
                   {"crop", [&] { p.fit = Fit::kCrop; }},
                   {"pad", [&] { p.fit = Fit::kPad; }}});
  }
  if (name == "broken") {
    return choose({{"skip", [&] { p.broken = Broken::kSkip; }},
                   {"refuse", [&] { p.broken = Broken::kRefuse; }}});
  }
  if (name == "balance") {
    return choose(
        {{"0", [o] { o->hints.balance = false; }}, {"1", [o] { o->hints.balance = true; }}});
  }
  if (name == "part") {
    return choose(
        {{"train", [o] { o->part = Split::kTrain; }}, {"rest", [o] { o->part = Split::kTest; }}});
  }
  return choose({{"classes", [o] { o->task = Task::kClasses; }},
                 {"regression", [o] { o->task = Task::kRegression; }}});
}

absl::Status SetOption(const DataKind& kind, const std::string& name, const std::string& value,
                       DataOptions* o) {
  if (name == "limit" || name == "offset" || name == "shuffle") return SetRows(name, value, o);
  if (name == "scale" || name == "shift" || name == "mean" || name == "std") {
    return SetScaling(name, value, o);
  }
  if (name == "shape") {
    o->shape = Sizes(value);
    return o->shape ? absl::OkStatus() : WrongOption(name, value, "sizes, such as 1x28x28");
  }
  if (name == "size") return SetSize(value, o);
  if (name == "normalise") return SetNormalisation(value, o);
  if (name == "split") return SetSplit(kind, value, o);
  if (name == "fold") return SetFold(value, o);
  if (name == "mixup" || name == "cutmix") return SetMixing(name, value, o);
  if (name == "split_seed") {
    return absl::SimpleAtoi(value, &o->parts.seed) ? absl::OkStatus()
                                                   : WrongOption(name, value, "a seed, such as 1");
  }
  if (name == "augment") {
    ONWARD_ASSIGN_OR_RETURN(o->pictures.augment, ParseAugmentation(value));
    return absl::OkStatus();
  }
  if (name == "label") {
    o->label = value;
    return absl::OkStatus();
  }
  if (IsTableOption(name)) return SetTableOption(name, value, &o->table);
  if (IsTextOption(name)) return SetTextOption(name, value, &o->text);
  return SetChoice(name, value, o);
}

absl::Status CheckTogether(const std::set<std::string>& given, const DataOptions& o) {
  if (given.contains("normalise") && (given.contains("mean") || given.contains("std"))) {
    return absl::InvalidArgumentError("data option normalise gives mean and std: leave them out");
  }
  if (given.contains("fit") && !o.pictures.size) {
    return absl::InvalidArgumentError("data option fit needs size=HxW, the size to fit into");
  }
  for (const char* name : {"part", "split_seed"}) {
    if (given.contains(name) && !o.parts.any()) {
      return absl::InvalidArgumentError(
          absl::StrCat("data option ", name, " needs split=SHARE, such as split=0.8"));
    }
  }
  if (o.parts.share && o.parts.fold) {
    return absl::InvalidArgumentError("data options split and fold both divide it: choose one");
  }
  return absl::OkStatus();
}

absl::Status ParseOptions(absl::string_view text, const DataKind& kind, DataOptions* options) {
  const std::set<std::string> known = OptionsOf(kind);
  std::set<std::string> seen;
  std::vector<std::pair<std::string, std::string>> given;
  for (absl::string_view part : absl::StrSplit(text, '&', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> option =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    const std::string& name = option.first;
    if (!known.contains(name)) {
      return UnknownWord(absl::StrCat("option of ", kind.name, " data"), name,
                         std::vector<std::string>(known.begin(), known.end()));
    }
    if (!absl::StrContains(part, '=') || option.second.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("data option '", name, "' needs a value: ", name, "=..."));
    }
    if (!seen.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat("data option '", name, "' is given twice"));
    }
    given.emplace_back(name, Decode(option.second));
  }
  // part= overrides what split= and fold= would choose.
  const auto divides = [](const auto& option) {
    return option.first == "split" || option.first == "fold";
  };
  std::stable_partition(given.begin(), given.end(), divides);
  for (const auto& [name, value] : given) {
    ONWARD_RETURN_IF_ERROR(SetOption(kind, name, value, options));
  }
  return CheckTogether(seen, *options);
}

std::string NearestKind(const std::string& word) {
  std::vector<std::string> names;
  for (const DataKind& kind : DataKinds()) names.emplace_back(kind.name);
  return Nearest(word, names);
}

absl::Status UnknownKind(const std::string& kind, absl::string_view path_and_kind) {
  std::string hint;
  const std::string path(path_and_kind);
  const std::string name = absl::AsciiStrToLower(path);
  if (absl::EndsWith(name, ".csv") || absl::EndsWith(name, ".csv.gz")) {
    hint = absl::StrCat("; did you mean csv:", path, "?label=COLUMN");
  } else if (absl::EndsWith(name, ".jsonl")) {
    hint = absl::StrCat("; did you mean jsonl:", path, "?label=KEY");
  } else if (absl::EndsWith(name, ".txt")) {
    hint = absl::StrCat("; did you mean text:", path);
  } else if (absl::EndsWith(name, ".npz")) {
    hint = absl::StrCat("; did you mean npz:", path);
  } else if (IsPictureName(path)) {
    hint = absl::StrCat("; did you mean images:", path);
  } else if (IsFolder(path)) {
    hint = absl::StrCat("; did you mean images:", path, " or mnist:", path);
  } else if (const std::string near = NearestKind(kind); !near.empty()) {
    hint = absl::StrCat("; did you mean ", near, path.substr(kind.size()));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown kind of data '", kind, "'; known are ",
                   absl::StrJoin(DataKinds(), ", ",
                                 [](std::string* out, const DataKind& k) { out->append(k.form); }),
                   hint));
}

}  // namespace

std::string WithOption(absl::string_view spec, absl::string_view option) {
  return absl::StrCat(spec, absl::StrContains(spec, "?") ? "&" : "?", option);
}

absl::StatusOr<DataSpec> SplitDataSpec(absl::string_view spec, Split split) {
  DataSpec out;
  out.options.split = split;
  absl::string_view rest = spec, options;
  if (const size_t at = spec.rfind('?'); at != absl::string_view::npos) {
    rest = spec.substr(0, at);
    options = spec.substr(at + 1);
  }
  const size_t colon = rest.find(':');
  out.kind = std::string(rest.substr(0, colon));
  if (colon != absl::string_view::npos) out.path = std::string(rest.substr(colon + 1));
  for (const DataKind& kind : DataKinds()) {
    if (out.kind != kind.name) continue;
    if (kind.has_path == out.path.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("data '", spec, "': write ", kind.form));
    }
    ONWARD_RETURN_IF_ERROR(ParseOptions(options, kind, &out.options));
    return out;
  }
  return UnknownKind(out.kind, rest);
}

}  // namespace onward
