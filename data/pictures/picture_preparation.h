// SPDX-License-Identifier: Apache-2.0
// Between options of a spec and what a model's file says of its pictures.
#ifndef ONWARD_DATA_PICTURES_PICTURE_PREPARATION_H_
#define ONWARD_DATA_PICTURES_PICTURE_PREPARATION_H_

#include <optional>
#include <string>

#include "data/arrays/array_dataset.h"
#include "data/data_options.h"
#include "data/preparation.h"

namespace onward {

// What the model says, if it was trained on pictures and such data is of them; else null.
const PicturePreparation* PicturesKnown(const DataContext& context, const std::string& kind);

// Sets what the spec does not say itself, before files are read.
void ApplyToFiles(const PicturePreparation& known, DataSpec* spec);
// Likewise of arrays, once they are: those that have the size stay as they are.
void ApplyToArrays(const PicturePreparation& known, const LoadedData& data, DataSpec* spec);

// Where labels are optional, a folder that holds no folders is one of pictures without labels.
void TakeUnlabelled(const DataContext& context, DataSpec* spec);

// What the options make of these data; nothing where it holds no pictures.
std::optional<PicturePreparation> PicturesOf(const DataSpec& spec, const LoadedData& data);

}  // namespace onward

#endif  // ONWARD_DATA_PICTURES_PICTURE_PREPARATION_H_
