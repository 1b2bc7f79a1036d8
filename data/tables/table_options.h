// SPDX-License-Identifier: Apache-2.0
// What a data spec says about the columns of a table.
#ifndef ONWARD_DATA_TABLES_TABLE_OPTIONS_H_
#define ONWARD_DATA_TABLES_TABLE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "data/preparation.h"

namespace onward {

// What becomes of empty fields.
struct MissingRule {
  enum class Kind { kRefuse, kSkipRow, kMean, kMedian, kNumber };
  Kind kind = Kind::kRefuse;
  double number = 0;  // of kNumber

  bool fills() const { return kind != Kind::kRefuse && kind != Kind::kSkipRow; }
};

struct TableOptions {
  std::optional<bool> header;
  std::vector<std::string> drop;          // columns to leave out
  std::vector<std::string> keep;          // columns to take although they look like identifiers
  std::vector<std::string> text_columns;  // read as text although they hold numbers
  // Where nothing is said: what suits a model that is made for the data (standardised, empty
  // fields filled by the median), or else the numbers as they are.
  std::optional<MissingRule> missing;
  std::optional<bool> standardise_inputs, standardise_target;
  TextForm text = TextForm::kOneHot;
  int64_t most_categories = 100;          // of a text column; all rarer ones are "other"
  std::optional<int64_t> rare;            // names seen less often are "other", too
  DateOrder dates = DateOrder::kUnknown;  // unknown: found out
  std::optional<bool> decimal_comma;      // of csv files; nothing: found out
};

// Whether a spec may say `name` of a table; sets it in this case.
bool IsTableOption(const std::string& name);
absl::Status SetTableOption(const std::string& name, const std::string& value,
                            TableOptions* options);

}  // namespace onward

#endif  // ONWARD_DATA_TABLES_TABLE_OPTIONS_H_
