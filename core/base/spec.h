// SPDX-License-Identifier: Apache-2.0
// Choices with options as people write them on a command line:
//
//   adamw:lr=1e-3,weight_decay=0.01
//
// and the words in which a wrong one is refused. Losses, optimizers, schedules
// and the command line share this, so that they all complain alike.
#ifndef ONWARD_CORE_BASE_SPEC_H_
#define ONWARD_CORE_BASE_SPEC_H_

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace onward {

struct SpecText {
  std::string name;
  std::map<std::string, std::string> options;
};

// Splits "name:key=value,key=value". Knows no names: that is the caller's part.
absl::StatusOr<SpecText> ParseSpecText(absl::string_view text);

// The same text again, options in the order of their names.
std::string SpecToText(const SpecText& spec);
// The shortest text that reads back as the same number.
std::string ExactText(double value);

// A number a user may give: its default and where it may lie.
struct NumberOption {
  absl::string_view name;
  double otherwise = 0;
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;   // low itself is refused
  bool high_open = false;  // high itself is refused
  bool integer = false;
  // Where these are given, the option is one of them: their number in this list.
  std::vector<absl::string_view> words = {};

  static NumberOption AtLeast(absl::string_view name, double otherwise, double low) {
    return {.name = name, .otherwise = otherwise, .low = low};
  }
  static NumberOption Positive(absl::string_view name, double otherwise) {
    return {.name = name, .otherwise = otherwise, .low = 0, .low_open = true};
  }
  static NumberOption Fraction(absl::string_view name, double otherwise) {  // [0, 1)
    return {.name = name, .otherwise = otherwise, .low = 0, .high = 1, .high_open = true};
  }
  static NumberOption Count(absl::string_view name, double otherwise, double low) {
    return {.name = name, .otherwise = otherwise, .low = low, .integer = true};
  }
  // 0 or 1; also false, true.
  static NumberOption Switch(absl::string_view name, bool otherwise = false) {
    return {.name = name,
            .otherwise = otherwise ? 1.0 : 0.0,
            .low = 0,
            .high = 1,
            .integer = true,
            .words = {}};
  }
  // The first is the default.
  static NumberOption Words(absl::string_view name, std::vector<absl::string_view> words) {
    return {.name = name,
            .otherwise = 0,
            .low = 0,
            .high = static_cast<double>(words.size()) - 1,
            .integer = true,
            .words = std::move(words)};
  }

  bool is_switch() const { return integer && low == 0 && high == 1 && words.empty(); }
  // "a number in [0, 1)".
  std::string Expects() const;
  // A value as it would be given.
  std::string Text(double value) const;
};

// A choice and its options in words, for help and documents.
struct OptionDescription {
  std::string name, otherwise, expects;
};
struct Description {
  std::string name, summary;
  std::vector<OptionDescription> options;
};
OptionDescription Describe(const NumberOption& option);

// Several options under one name, as in betas=0.9/0.999.
struct ListOption {
  std::string name;
  std::vector<std::string> parts;
};
// Puts the parts in the place of each list among the options given.
absl::Status SpreadLists(absl::string_view kind, absl::Span<const ListOption> lists,
                         std::map<std::string, std::string>* given);

// Refuses NaN, infinities and values outside the range, also where rounding to
// float (the type of ONNX attributes) would leave it.
absl::Status CheckNumber(const NumberOption& option, double value);
absl::StatusOr<double> ParseNumber(const NumberOption& option, absl::string_view text);
// Reads every given option; defaults are not filled in. `kind` ("optimizer
// 'adam'") is for the messages.
absl::StatusOr<std::map<std::string, double>> ParseNumbers(
    absl::string_view kind, const std::map<std::string, std::string>& given,
    absl::Span<const NumberOption> options);
// What ParseNumbers reads back.
std::map<std::string, std::string> NumberTexts(const std::map<std::string, double>& given,
                                               absl::Span<const NumberOption> options);
// The checks of ParseNumbers for options that a program has set.
absl::Status CheckNumbers(absl::string_view kind, const std::map<std::string, double>& given,
                          absl::Span<const NumberOption> options);
// An option as given, or its default.
double ValueOf(const std::map<std::string, double>& given, absl::Span<const NumberOption> options,
               absl::string_view name);

// The candidate that `word` was most likely meant to be; "" if none is near.
std::string Nearest(absl::string_view word, absl::Span<const std::string> candidates);
// "unknown loss 'mes': did you mean 'mse'? Valid: bce, cross_entropy, ...".
absl::Status UnknownWord(absl::string_view kind, absl::string_view word,
                         absl::Span<const std::string> candidates);

}  // namespace onward

#endif  // ONWARD_CORE_BASE_SPEC_H_
