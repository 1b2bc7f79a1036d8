// SPDX-License-Identifier: Apache-2.0
// What is done to raw data before a model sees it: which columns of a table in which order,
// the names it knows in each, what fills empty fields, how numbers are scaled; how large
// pictures are; what tokens a text is cut into. Found once, in the data that a model is trained
// on, kept in the model's file, and done again to whatever data meets the model later.
#ifndef ONWARD_DATA_PREPARATION_H_
#define ONWARD_DATA_PREPARATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/dates.h"
#include "data/pictures/fit.h"

namespace onward {

// prepared = (value - mean) / deviation, in float.
struct Standard {
  double mean = 0, deviation = 1;
  bool changes() const { return mean != 0 || deviation != 1; }
  float Apply(float value) const {
    return (value - static_cast<float>(mean)) / static_cast<float>(deviation);
  }
  friend bool operator==(const Standard&, const Standard&) = default;
};

enum class ColumnKind { kNumber, kText, kDate };

// How the names of a text column become numbers: one input each, or one number for all.
enum class TextForm { kOneHot, kCodes };

struct ColumnPreparation {
  std::string name;    // "" where the table has no header: then by its place
  int64_t place = -1;  // in the file, from 0, where it has no name
  ColumnKind kind = ColumnKind::kNumber;
  // In the place of an empty field: a number, or a date in seconds. Nothing: refused.
  std::optional<double> fill;
  // One for a number; one for each part of a date.
  std::vector<Standard> scale;
  bool times = false;  // dates have a time of day
  // The names of a text column, in order; "" is that of empty fields. One more number stands
  // for all others where `other`; else they are refused.
  TextForm form = TextForm::kOneHot;
  std::vector<std::string> categories;
  bool other = false;
  std::optional<std::string> fill_text;  // what an empty field counts as, if "" is no name

  // How many numbers come of it; of codes, how many there are.
  int64_t width() const;
  // What a model calls it that takes the column as it is.
  std::string input_name() const;
  bool is_code() const { return kind == ColumnKind::kText && form == TextForm::kCodes; }
  friend bool operator==(const ColumnPreparation&, const ColumnPreparation&) = default;
};

enum class LabelTask { kClasses, kNumber };
enum class RawTable { kNone, kColumns, kMatrix };
// What a model calls the matrix of numbers, beside other columns.
inline constexpr char kRawNumbers[] = "numbers";

struct TablePreparation {
  std::vector<ColumnPreparation> columns;      // the inputs, in the order of the model
  std::string label;                           // its column; "" where the table has no header
  int64_t label_place = -1, file_columns = 0;  // where the table has no header
  LabelTask task = LabelTask::kClasses;
  Standard target;  // of a number
  // How its files write what could be read in two ways.
  DateOrder dates = DateOrder::kUnknown;
  bool decimal_comma = false;
  // Whether the model does all this itself: takes each column as it is, or the numbers as one
  // matrix and any other column by itself.
  RawTable raw = RawTable::kNone;

  bool has_names() const { return file_columns == 0; }
  int64_t numbers() const;  // how many the columns become
  int64_t codes() const;    // columns that become codes
  friend bool operator==(const TablePreparation&, const TablePreparation&) = default;
};

// value = (byte * scale + shift - mean) / deviation, per channel where several are given.
struct PicturePreparation {
  int64_t height = 0, width = 0, channels = 0;
  Fit fit = Fit::kStretch;
  double scale = 1, shift = 0;
  std::vector<double> mean, deviation;
  friend bool operator==(const PicturePreparation&, const PicturePreparation&) = default;
};

enum class TokenKind { kBytes, kCharacters, kWordPieces };

struct TextPreparation {
  TokenKind tokens = TokenKind::kBytes;
  std::vector<std::string> vocabulary;  // none for bytes
  bool lower_case = false;              // of word pieces
  int64_t length = 0;                   // tokens of an example, at most
  std::string column;                   // of a table whose rows are texts; "": a text file
  friend bool operator==(const TextPreparation&, const TextPreparation&) = default;
};

struct Preparation {
  std::optional<TablePreparation> table;
  std::optional<PicturePreparation> pictures;
  std::optional<TextPreparation> text;

  bool empty() const { return !table && !pictures && !text; }
  friend bool operator==(const Preparation&, const Preparation&) = default;
};

// As JSON, and back; what makes no sense is an error that says where.
std::string PreparationText(const Preparation& preparation);
absl::StatusOr<Preparation> ParsePreparation(absl::string_view json);

}  // namespace onward

#endif  // ONWARD_DATA_PREPARATION_H_
