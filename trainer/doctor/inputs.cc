// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "trainer/doctor/checks.h"

namespace onward {
namespace {

constexpr double kLarge = 10;       // rms of what a layer reads, and of what it makes of it
constexpr double kSmall = 1e-3;     // deviation
constexpr double kBytes = 200;      // numbers from 0 to above this and up to 255 are pixels
constexpr size_t kMostListed = 16;  // columns
constexpr double kUneven = 1000;    // the widest column against the narrowest

std::string PlaceOf(const LayerRead& read) {
  std::string place = absl::StrCat("input '", read.input, "'");
  if (read.value != read.input) absl::StrAppend(&place, " (as '", read.value, "')");
  if (!read.node.empty()) absl::StrAppend(&place, ", read by ", read.node);
  return place;
}

bool IsPixels(const Spread& numbers) {
  return numbers.low() >= 0 && numbers.high() > kBytes && numbers.high() <= 255;
}

std::string ScaleHelp(const Spread& numbers) {
  if (IsPixels(numbers)) {
    return "pixels from 0 to 255: scale=1/255 in the data SPEC, or normalise=NAME as the model was "
           "trained with";
  }
  return absl::StrFormat(
      "bring it near mean 0 and deviation 1: mean=%.4g&std=%.4g (or scale=) in the data SPEC",
      numbers.mean(), numbers.deviation());
}

// Options that make every column one of mean 0 and deviation 1.
std::string ColumnsHelp(const std::vector<Spread>& columns) {
  if (columns.size() > kMostListed) {
    return "mean= and std= in the data SPEC, with a number for each column";
  }
  std::vector<std::string> means, deviations;
  for (const Spread& column : columns) {
    means.push_back(absl::StrFormat("%.4g", column.mean()));
    deviations.push_back(absl::StrFormat("%.4g", column.deviation() == 0 ? 1 : column.deviation()));
  }
  return absl::StrCat("mean=", absl::StrJoin(means, ","), "&std=", absl::StrJoin(deviations, ","),
                      " in the data SPEC");
}

// Large numbers that a layer was made for become moderate in it.
bool IsLarge(const ReadNumbers& read) {
  if (read.numbers.rms() <= kLarge) return false;
  const double made = read.made.rms();
  return read.read.made.empty() || made > kLarge || made == 0;
}

void CheckColumns(const ReadNumbers& read, DoctorFindings* findings) {
  size_t widest = 0, narrowest = 0;
  for (size_t i = 0; i < read.columns.size(); ++i) {
    const double deviation = read.columns[i].deviation();
    if (deviation > read.columns[widest].deviation()) widest = i;
    const double least = read.columns[narrowest].deviation();
    if (deviation > 0 && (least == 0 || deviation < least)) narrowest = i;
  }
  if (read.columns.empty() || read.columns[narrowest].deviation() == 0) return;
  const double wide = read.columns[widest].deviation();
  const double narrow = read.columns[narrowest].deviation();
  if (wide < kUneven * narrow || wide <= kLarge) return;
  findings->push_back({"input-columns", PlaceOf(read.read), wide / narrow,
                       absl::StrFormat("column %d has a deviation of %.4g, column %d of %.4g: the "
                                       "one is %.4g times the other",
                                       widest, wide, narrowest, narrow, wide / narrow),
                       ColumnsHelp(read.columns)});
}

}  // namespace

DoctorFindings InputFindings(const Probe& probe) {
  DoctorFindings findings;
  for (const ReadNumbers& read : probe.reads) {
    const Spread& x = read.numbers;
    if (x.not_finite() > 0) {
      findings.push_back({"input-not-finite", PlaceOf(read.read),
                          static_cast<double>(x.not_finite()),
                          absl::StrCat(x.not_finite(), " of ", x.count() + x.not_finite(),
                                       " numbers are NaN or infinite"),
                          "fill or leave out what is missing in the data"});
    }
    if (x.count() == 0) continue;
    if (x.deviation() == 0) {
      if (x.count() > 1) {
        findings.push_back({"input-constant", PlaceOf(read.read), x.mean(),
                            absl::StrFormat("every number is %.4g", x.mean()),
                            "look at what the data SPEC reads: there is nothing to tell examples "
                            "apart by"});
      }
      continue;
    }
    if (!IsPixels(x)) CheckColumns(read, &findings);
    if (!IsLarge(read) && x.deviation() >= kSmall) continue;
    const bool large = x.deviation() >= kSmall;
    findings.push_back({"input-scale", PlaceOf(read.read), large ? x.rms() : x.deviation(),
                        absl::StrCat(x.ToString(), large ? ": too large" : ": too close together",
                                     ", layers expect numbers around 1"),
                        ScaleHelp(x)});
  }
  return findings;
}

}  // namespace onward
