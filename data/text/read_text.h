// SPDX-License-Identifier: Apache-2.0
// Text as data sets. Of a text file, for language models: x is tokens next to each other, y the
// ones that follow each. Of a table with a column of text: the tokens of each row, and its label.
#ifndef ONWARD_DATA_TEXT_READ_TEXT_H_
#define ONWARD_DATA_TEXT_READ_TEXT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/data_options.h"
#include "data/dataset.h"
#include "data/tables/table.h"
#include "data/text/tokenizer.h"

namespace onward {

// Stands in labels for what is no token; losses pass over it with ignore_index.
inline constexpr int64_t kNoToken = -100;

// What tokens a text is cut into: as the model has it, or by the options; `file` is where
// characters are looked for, if a text file is read.
absl::StatusOr<TextPreparation> PrepareText(const DataOptions& options, const DataContext& context,
                                            const StoredBytes* file);

absl::StatusOr<std::unique_ptr<Dataset>> OpenTextFile(const std::string& path,
                                                      const DataOptions& options,
                                                      const DataContext& context);
absl::StatusOr<std::unique_ptr<Dataset>> OpenTextTable(const std::string& path, TableFile file,
                                                       const DataOptions& options,
                                                       const DataContext& context);

}  // namespace onward

#endif  // ONWARD_DATA_TEXT_READ_TEXT_H_
