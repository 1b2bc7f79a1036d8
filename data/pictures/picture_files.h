// SPDX-License-Identifier: Apache-2.0
// Pictures in files, one for each example, decoded when they are asked for.
#ifndef ONWARD_DATA_PICTURES_PICTURE_FILES_H_
#define ONWARD_DATA_PICTURES_PICTURE_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/arrays/array_dataset.h"
#include "data/arrays/rows.h"
#include "data/pictures/picture_options.h"
#include "data/stored_bytes.h"

namespace onward {

// Where the pictures are: paths, or members of archives.
class PictureFiles {
 public:
  virtual ~PictureFiles() = default;
  virtual int64_t count() const = 0;
  virtual std::string name(int64_t picture) const = 0;
  virtual absl::StatusOr<StoredBytes> Open(int64_t picture) const = 0;
};

// What is left of a list of pictures, and what all of them become.
struct Survey {
  std::vector<int64_t> pictures;  // numbers in the list, in order
  PictureInfo info;
  std::vector<std::string> notes;
};

// Looks at the pictures `chosen` before a run. Without size= all have to be of one size; their
// channels are the most that one has. Broken ones are named, all of them up to a number.
absl::StatusOr<Survey> SurveyPictures(const PictureFiles& files, std::vector<int64_t> chosen,
                                      const PictureOptions& options);

// A row for each of `pictures`: bytes [channels, height, width].
Rows PictureRows(std::shared_ptr<const PictureFiles> files, std::vector<int64_t> pictures,
                 PictureRecipe recipe);

// Surveys the rows that offset, limit and shuffle choose and makes "x" of them, with data->place;
// returns which pictures they are. data->source is set.
absl::StatusOr<std::vector<int64_t>> AddPictures(std::shared_ptr<const PictureFiles> files,
                                                 const DataOptions& options, LoadedData* data);

}  // namespace onward

#endif  // ONWARD_DATA_PICTURES_PICTURE_FILES_H_
