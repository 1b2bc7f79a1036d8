// SPDX-License-Identifier: Apache-2.0
#include "data/pictures/picture_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "data/pictures/picture.h"

namespace onward {
namespace {

class DecodedRows : public RowSource {
 public:
  DecodedRows(std::shared_ptr<const PictureFiles> files, std::vector<int64_t> pictures,
              PictureRecipe recipe)
      : RowSource(static_cast<int64_t>(pictures.size()), DType::kUint8,
                  {recipe.info.channels, recipe.info.height, recipe.info.width}),
        files_(std::move(files)),
        pictures_(std::move(pictures)),
        recipe_(std::move(recipe)) {}

  absl::Status Read(int64_t first, int64_t count, void* to) const override {
    for (int64_t i = 0; i < count; ++i) {
      ONWARD_RETURN_IF_ERROR(
          ReadOne(first + i, nullptr, static_cast<uint8_t*>(to) + i * elements()));
    }
    return absl::OkStatus();
  }
  absl::Status ReadVaried(int64_t row, uint64_t key, void* to) const override {
    return ReadOne(row, &key, static_cast<uint8_t*>(to));
  }
  RowCost cost() const override { return RowCost::kDecoding; }

 private:
  absl::Status ReadOne(int64_t row, const uint64_t* key, uint8_t* to) const {
    ONWARD_ASSIGN_OR_RETURN(const StoredBytes file, files_->Open(pictures_[row]));
    ONWARD_ASSIGN_OR_RETURN(const std::string bytes, file.ReadAll());
    const absl::StatusOr<Picture> picture = DecodePicture(bytes, file.name());
    if (!picture.ok()) {
      return absl::Status(picture.status().code(),
                          absl::StrCat(picture.status().message(),
                                       "; ?broken=skip leaves such pictures out from the start"));
    }
    ToPlanes(Prepared(*picture, recipe_, key), to);
    return absl::OkStatus();
  }

  std::shared_ptr<const PictureFiles> files_;
  std::vector<int64_t> pictures_;
  PictureRecipe recipe_;
};

}  // namespace

Rows PictureRows(std::shared_ptr<const PictureFiles> files, std::vector<int64_t> pictures,
                 PictureRecipe recipe) {
  return Rows(
      std::make_shared<DecodedRows>(std::move(files), std::move(pictures), std::move(recipe)));
}

absl::StatusOr<std::vector<int64_t>> AddPictures(std::shared_ptr<const PictureFiles> files,
                                                 const DataOptions& options, LoadedData* data) {
  ONWARD_ASSIGN_OR_RETURN(std::vector<int64_t> chosen,
                          ChooseRows(files->count(), options, data->source));
  ONWARD_ASSIGN_OR_RETURN(Survey survey,
                          SurveyPictures(*files, std::move(chosen), options.pictures));
  data->rows_chosen = true;
  data->notes = std::move(survey.notes);
  data->place = [files, pictures = survey.pictures](int64_t row) {
    return files->name(pictures[row]);
  };
  const PictureRecipe recipe{survey.info, options.pictures.fit, options.pictures.augment};
  data->arrays.push_back({"x", PictureRows(std::move(files), survey.pictures, recipe), false,
                          1.0 / 255, /*pictures_prepared=*/true});
  return std::move(survey.pictures);
}

}  // namespace onward
