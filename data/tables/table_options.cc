// SPDX-License-Identifier: Apache-2.0
#include "data/tables/table_options.h"

#include <cmath>
#include <map>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"
#include "data/spec_kinds.h"

namespace onward {
namespace {

constexpr int64_t kMostCategories = 100000;

absl::Status SetMissing(const std::string& value, TableOptions* options) {
  using Kind = MissingRule::Kind;
  const std::map<std::string, Kind> words = {{"refuse", Kind::kRefuse},
                                             {"error", Kind::kRefuse},
                                             {"skip", Kind::kSkipRow},
                                             {"mean", Kind::kMean},
                                             {"median", Kind::kMedian}};
  MissingRule rule;
  if (const auto it = words.find(value); it != words.end()) {
    rule.kind = it->second;
  } else if (absl::SimpleAtod(value, &rule.number) &&
             std::isfinite(static_cast<float>(rule.number))) {
    rule.kind = Kind::kNumber;
  } else {
    return WrongOption("missing", value, "mean, median, a number, refuse or skip");
  }
  options->missing = rule;
  return absl::OkStatus();
}

absl::Status SetStandardise(const std::string& value, TableOptions* options) {
  if (value != "0" && value != "1" && value != "inputs" && value != "target") {
    return WrongOption("standardise", value, "0, 1, inputs or target");
  }
  options->standardise_inputs = value == "1" || value == "inputs";
  options->standardise_target = value == "1" || value == "target";
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ReadCount(const std::string& name, const std::string& value) {
  int64_t count = 0;
  if (absl::SimpleAtoi(value, &count) && count >= 1 && count <= kMostCategories) return count;
  return WrongOption(name, value, "a number from 1 to 100000");
}

absl::Status SetSpelling(const std::string& name, const std::string& value, TableOptions* options) {
  if (name == "dates") {
    if (value != "dmy" && value != "mdy") return WrongOption(name, value, "dmy or mdy");
    options->dates = value == "dmy" ? DateOrder::kDayFirst : DateOrder::kMonthFirst;
    return absl::OkStatus();
  }
  if (value != "comma" && value != "point") return WrongOption(name, value, "comma or point");
  options->decimal_comma = value == "comma";
  return absl::OkStatus();
}

}  // namespace

bool IsTableOption(const std::string& name) {
  const std::set<std::string> names = {"header",  "drop",  "keep",           "text_columns",
                                       "missing", "text",  "max_categories", "standardise",
                                       "rare",    "dates", "decimal"};
  return names.contains(name);
}

absl::Status SetTableOption(const std::string& name, const std::string& value,
                            TableOptions* options) {
  if (name == "missing") return SetMissing(value, options);
  if (name == "standardise") return SetStandardise(value, options);
  if (name == "max_categories" || name == "rare") {
    ONWARD_ASSIGN_OR_RETURN(const int64_t count, ReadCount(name, value));
    if (name == "rare") {
      options->rare = count;
    } else {
      options->most_categories = count;
    }
    return absl::OkStatus();
  }
  if (name == "dates" || name == "decimal") return SetSpelling(name, value, options);
  if (name == "text") {
    if (value != "onehot" && value != "codes") return WrongOption(name, value, "onehot or codes");
    options->text = value == "onehot" ? TextForm::kOneHot : TextForm::kCodes;
    return absl::OkStatus();
  }
  if (name == "header") {
    if (value != "0" && value != "1") return WrongOption(name, value, "0 or 1");
    options->header = value == "1";
    return absl::OkStatus();
  }
  std::vector<std::string>& columns = name == "drop"   ? options->drop
                                      : name == "keep" ? options->keep
                                                       : options->text_columns;
  columns = absl::StrSplit(value, ',', absl::SkipEmpty());
  return absl::OkStatus();
}

}  // namespace onward
