// SPDX-License-Identifier: Apache-2.0
// A folder with one folder of pictures per class.
#include <algorithm>
#include <filesystem>
#include <new>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "data/file_bytes.h"
#include "data/pictures/picture.h"
#include "data/readers.h"

namespace onward {
namespace {

struct ImageFile {
  std::string path;
  int64_t label = 0;
};

// Names in `folder` that do not begin with a dot, sorted.
absl::StatusOr<std::vector<std::string>> List(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::string name = it->path().filename().string();
    if (!absl::StartsWith(name, ".")) names.push_back(std::move(name));
  }
  if (error) {
    return absl::NotFoundError(absl::StrCat(folder, ": cannot be listed: ", error.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool HasEnding(const std::string& name, std::initializer_list<absl::string_view> endings) {
  const std::string lower = absl::AsciiStrToLower(name);
  return std::any_of(endings.begin(), endings.end(),
                     [&](absl::string_view e) { return absl::EndsWith(lower, e); });
}

absl::StatusOr<std::vector<std::string>> ListClass(const std::string& folder) {
  ONWARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, List(folder));
  std::vector<std::string> paths;
  std::string hint;
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(folder, "/", name);
    if (IsFolder(path)) {
      hint = absl::StrCat("; it holds folders, so perhaps you mean images:", folder);
    } else if (HasEnding(name, {".png", ".jpg", ".jpeg"})) {
      paths.push_back(path);
    } else if (HasEnding(name, {".bmp", ".gif", ".tif", ".tiff", ".webp"})) {
      return absl::UnimplementedError(absl::StrCat(path, ": only PNG and JPEG pictures are read"));
    }
  }
  if (paths.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(folder, ": holds no PNG or JPEG files", hint));
  }
  return paths;
}

// One picture of each class in turn, so that limit= keeps all classes.
std::vector<ImageFile> Interleave(const std::vector<std::vector<std::string>>& classes) {
  size_t longest = 0;
  for (const auto& paths : classes) longest = std::max(longest, paths.size());
  std::vector<ImageFile> files;
  for (size_t i = 0; i < longest; ++i) {
    for (size_t c = 0; c < classes.size(); ++c) {
      if (i < classes[c].size()) files.push_back({classes[c][i], static_cast<int64_t>(c)});
    }
  }
  return files;
}

// Calls work(i) for all i and returns the first error in their order.
template <typename Work>
absl::Status ForEach(int64_t count, const Work& work) {
  std::vector<absl::Status> results(count);
  ParallelFor(count, 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      try {
        results[i] = work(i);
      } catch (const std::bad_alloc&) {
        results[i] = absl::ResourceExhaustedError("out of memory while reading pictures");
      }
    }
  });
  for (const absl::Status& s : results) ONWARD_RETURN_IF_ERROR(s);
  return absl::OkStatus();
}

// Height, width and channels that all pictures will have.
absl::StatusOr<PictureInfo> CommonSize(const std::vector<ImageFile>& files,
                                       const DataOptions& options) {
  std::vector<PictureInfo> infos(files.size());
  ONWARD_RETURN_IF_ERROR(
      ForEach(static_cast<int64_t>(files.size()), [&](int64_t i) -> absl::Status {
        ONWARD_ASSIGN_OR_RETURN(const std::string bytes, ReadFileBytes(files[i].path));
        ONWARD_ASSIGN_OR_RETURN(infos[i], ProbePicture(bytes, files[i].path));
        return absl::OkStatus();
      }));
  PictureInfo common = infos[0];
  for (size_t i = 1; i < files.size(); ++i) {
    common.channels = std::max(common.channels, infos[i].channels);
    if (!options.size && (infos[i].height != common.height || infos[i].width != common.width)) {
      return absl::InvalidArgumentError(
          absl::StrCat(files[i].path, ": is ", infos[i].height, " x ", infos[i].width,
                       " (height x width), but ", files[0].path, " is ", common.height, " x ",
                       common.width, "; resize all with size=", common.height, "x", common.width));
    }
  }
  if (options.size) {
    common.height = (*options.size)[0];
    common.width = (*options.size)[1];
  }
  if (options.channels != 0) common.channels = options.channels;
  return common;
}

// Pixels as planes: [channels, height, width].
void ToPlanes(const Picture& p, uint8_t* to) {
  const int64_t area = p.info.height * p.info.width;
  for (int64_t i = 0; i < area; ++i) {
    for (int c = 0; c < p.info.channels; ++c) to[c * area + i] = p.pixels[i * p.info.channels + c];
  }
}

absl::StatusOr<Tensor> DecodeAll(const std::vector<ImageFile>& files, const PictureInfo& size,
                                 const std::string& folder) {
  const int64_t count = static_cast<int64_t>(files.size());
  const Shape shape{count, size.channels, size.height, size.width};
  ONWARD_ASSIGN_OR_RETURN(const int64_t elements, CheckedElements(shape.dims()));
  ONWARD_RETURN_IF_ERROR(CheckFitsInMemory(folder, static_cast<uint64_t>(elements)));
  Tensor x(DType::kUint8, shape);
  const int64_t per_picture = elements / count;
  ONWARD_RETURN_IF_ERROR(ForEach(count, [&](int64_t i) -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(const std::string bytes, ReadFileBytes(files[i].path));
    ONWARD_ASSIGN_OR_RETURN(const Picture picture, DecodePicture(bytes, files[i].path));
    const Picture fitted = Resize(ToChannels(picture, size.channels), size.height, size.width);
    ToPlanes(fitted, x.data<uint8_t>() + i * per_picture);
    return absl::OkStatus();
  }));
  return x;
}

}  // namespace

absl::StatusOr<LoadedData> ReadImageFolder(const std::string& folder, const DataOptions& options) {
  LoadedData data;
  data.source = folder;
  ONWARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, List(folder));
  std::vector<std::vector<std::string>> classes;
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(folder, "/", name);
    if (!IsFolder(path)) continue;
    ONWARD_ASSIGN_OR_RETURN(classes.emplace_back(), ListClass(path));
    data.class_names.push_back(name);
  }
  if (classes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": holds no folders; expected one per class"));
  }
  const std::vector<ImageFile> all = Interleave(classes);
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> rows,
                          ChooseRows(static_cast<int64_t>(all.size()), options, folder));
  std::vector<ImageFile> files;
  for (int64_t row : rows) files.push_back(all[row]);
  data.rows_chosen = true;
  ONWARD_ASSIGN_OR_RETURN(const PictureInfo size, CommonSize(files, options));
  ONWARD_ASSIGN_OR_RETURN(Tensor x, DecodeAll(files, size, folder));
  Tensor y(DType::kInt64, {static_cast<int64_t>(files.size())});
  for (size_t i = 0; i < files.size(); ++i) y.data<int64_t>()[i] = files[i].label;
  data.arrays.push_back({"x", std::move(x), false, 1.0 / 255});
  data.place = [files = std::move(files)](int64_t row) { return files[row].path; };
  ONWARD_RETURN_IF_ERROR(AddLabels(std::move(y), Task::kAuto, "y", &data));
  return data;
}

}  // namespace onward
