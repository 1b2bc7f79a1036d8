// SPDX-License-Identifier: Apache-2.0
// One function per kind of data. Files are untrusted: sizes are checked before
// memory is taken, and every error names the file.
#ifndef ONWARD_DATA_READERS_H_
#define ONWARD_DATA_READERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/arrays/array_dataset.h"
#include "data/data_options.h"

namespace onward {

absl::StatusOr<LoadedData> ReadIdx(const std::string& images, const std::string& labels);
// The four usual files of MNIST in `folder`, with or without .gz.
absl::StatusOr<LoadedData> ReadMnist(const std::string& folder, Split split);
absl::StatusOr<LoadedData> ReadCifar(const std::vector<std::string>& files);
absl::StatusOr<LoadedData> ReadNpzArrays(const std::string& path, const DataOptions& options);
// `labels` may be empty.
absl::StatusOr<LoadedData> ReadNpyArrays(const std::string& inputs, const std::string& labels,
                                         const DataOptions& options);
// A folder with one for each class, or a table of files.
absl::StatusOr<LoadedData> ReadImages(const std::string& path, const DataOptions& options);
// WebDataset archives: files with commas between them, or patterns with '*'.
std::vector<std::string> ListShards(const std::string& shards);
absl::StatusOr<LoadedData> ReadTar(const std::string& shards, const DataOptions& options);

}  // namespace onward

#endif  // ONWARD_DATA_READERS_H_
