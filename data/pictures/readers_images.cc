// SPDX-License-Identifier: Apache-2.0
// Pictures in folders: one for each class, or named in a table. Only names are kept.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "data/file_bytes.h"
#include "data/pictures/left_out.h"
#include "data/pictures/picture.h"
#include "data/pictures/picture_files.h"
#include "data/readers.h"
#include "data/tables/csv.h"

namespace onward {
namespace {

// Files of a few folders: each name is kept without its folder.
class NamedFiles : public PictureFiles {
 public:
  void AddFolder(std::string folder) { folders_.push_back(std::move(folder)); }
  // In the folder added last or the one given.
  void Add(size_t folder, std::string name) { files_.push_back({folder, std::move(name)}); }

  int64_t count() const override { return static_cast<int64_t>(files_.size()); }
  std::string name(int64_t picture) const override {
    const auto& [folder, name] = files_[picture];
    const bool alone = folders_[folder].empty() || absl::StartsWith(name, "/");
    return alone ? name : absl::StrCat(folders_[folder], "/", name);
  }
  absl::StatusOr<StoredBytes> Open(int64_t picture) const override {
    return StoredBytes::Open(name(picture));
  }

 private:
  std::vector<std::string> folders_;
  std::vector<std::pair<size_t, std::string>> files_;
};

struct Listing {
  std::vector<std::string> files, folders;  // sorted
};

// Names in `folder` that do not begin with a dot.
absl::StatusOr<Listing> List(const std::string& folder) {
  std::error_code error;
  Listing listing;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::string name = it->path().filename().string();
    if (absl::StartsWith(name, ".")) continue;
    std::error_code unknown;
    const bool is_folder = it->is_directory(unknown);
    (is_folder ? listing.folders : listing.files).push_back(std::move(name));
  }
  if (error) {
    return absl::NotFoundError(absl::StrCat(folder, ": cannot be listed: ", error.message()));
  }
  std::sort(listing.files.begin(), listing.files.end());
  std::sort(listing.folders.begin(), listing.folders.end());
  return listing;
}

absl::StatusOr<std::vector<std::string>> ListClass(const std::string& folder,
                                                   FilesLeftOut* left_out) {
  ONWARD_ASSIGN_OR_RETURN(Listing listing, List(folder));
  FilesLeftOut here;
  std::vector<std::string> names = here.Pictures(listing.files);
  if (names.empty()) {
    const std::string others = here.Endings();
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": holds no pictures",
                     !listing.folders.empty()
                         ? absl::StrCat("; it holds folders, so perhaps you mean images:", folder)
                         : absl::StrCat(" (", kPictureFormats, " are read)",
                                        others.empty() ? "" : absl::StrCat(", but ", others))));
  }
  left_out->Pictures(std::move(listing.files));
  left_out->Folders(listing.folders.size());
  return names;
}

Tensor LabelsOf(const std::vector<int64_t>& pictures, const std::vector<int64_t>& labels) {
  Tensor y(DType::kInt64, {static_cast<int64_t>(pictures.size())});
  for (size_t i = 0; i < pictures.size(); ++i) y.data<int64_t>()[i] = labels[pictures[i]];
  return y;
}

absl::StatusOr<LoadedData> ReadClassFolders(const std::string& folder, const Listing& listing,
                                            const DataOptions& options) {
  LoadedData data;
  data.source = folder;
  auto files = std::make_shared<NamedFiles>();
  std::vector<std::vector<std::string>> classes;
  size_t longest = 0;
  FilesLeftOut left_out;
  left_out.Beside(left_out.Pictures(listing.files).size());
  for (const std::string& name : listing.folders) {
    const std::string path = absl::StrCat(folder, "/", name);
    ONWARD_ASSIGN_OR_RETURN(classes.emplace_back(), ListClass(path, &left_out));
    longest = std::max(longest, classes.back().size());
    data.class_names.push_back(name);
    files->AddFolder(path);
  }
  // One picture of each class in turn, so that limit= keeps all classes.
  std::vector<int64_t> labels;
  for (size_t i = 0; i < longest; ++i) {
    for (size_t c = 0; c < classes.size(); ++c) {
      if (i >= classes[c].size()) continue;
      files->Add(c, std::move(classes[c][i]));
      labels.push_back(static_cast<int64_t>(c));
    }
  }
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> pictures, AddPictures(files, options, &data));
  ONWARD_RETURN_IF_ERROR(AddLabels(LabelsOf(pictures, labels), Task::kAuto, "y", &data));
  if (!left_out.empty()) data.notes.push_back(absl::StrCat(folder, ": ", left_out.Text()));
  return data;
}

// label=none: all pictures of the folder and of those in it, to be looked at by a model.
absl::StatusOr<LoadedData> ReadUnlabelled(const std::string& folder, const Listing& listing,
                                          const DataOptions& options) {
  LoadedData data;
  data.source = folder;
  auto files = std::make_shared<NamedFiles>();
  files->AddFolder(folder);
  FilesLeftOut left_out;
  for (std::string& name : left_out.Pictures(listing.files)) files->Add(0, std::move(name));
  for (const std::string& inner : listing.folders) {
    ONWARD_ASSIGN_OR_RETURN(Listing held, List(absl::StrCat(folder, "/", inner)));
    for (const std::string& name : left_out.Pictures(std::move(held.files))) {
      files->Add(0, absl::StrCat(inner, "/", name));
    }
    left_out.Folders(held.folders.size());
  }
  if (files->count() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(folder, ": holds no pictures"));
  }
  ONWARD_RETURN_IF_ERROR(AddPictures(files, options, &data).status());
  if (!left_out.empty()) data.notes.push_back(absl::StrCat(folder, ": ", left_out.Text()));
  return data;
}

// A single one, to be looked at.
absl::StatusOr<LoadedData> ReadPicture(const std::string& path, const DataOptions& options) {
  if (options.label && *options.label != "none") {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": label=", *options.label, ": a single picture has no label"));
  }
  LoadedData data;
  data.source = path;
  auto files = std::make_shared<NamedFiles>();
  files->AddFolder("");
  files->Add(0, path);
  ONWARD_RETURN_IF_ERROR(AddPictures(files, options, &data).status());
  return data;
}

// --- A table of names and labels

std::optional<size_t> FindHeader(const std::vector<std::string>& header,
                                 std::initializer_list<absl::string_view> usual) {
  for (absl::string_view name : usual) {
    for (size_t c = 0; c < header.size(); ++c) {
      if (absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(header[c]), name)) return c;
    }
  }
  return std::nullopt;
}

struct PictureTable {
  std::vector<std::string> names, labels;
};

// The columns are those that the header calls so, or the first and the last. A first row
// whose first field is the name of no picture is a header.
absl::StatusOr<PictureTable> ReadTable(absl::string_view text, const DataOptions& options) {
  CsvText csv(text);
  CsvRow row;
  ONWARD_ASSIGN_OR_RETURN(bool more, csv.Next(&row));
  if (!more) return absl::InvalidArgumentError("is empty");
  std::vector<std::string> header(row.fields.begin(), row.fields.end());
  const size_t columns = header.size();
  const bool named = std::none_of(header.begin(), header.end(),
                                  [](const std::string& f) { return IsPictureName(f); });
  if (!named) header.clear();
  const size_t file =
      FindHeader(header, {"file", "filename", "file_name", "path", "image"}).value_or(0);
  size_t label = columns - 1;
  if (options.label) {
    const std::optional<size_t> found = FindHeader(header, {*options.label});
    if (!found) {
      return absl::InvalidArgumentError(absl::StrCat("has no column '", *options.label,
                                                     "'; it has ", absl::StrJoin(header, ", ")));
    }
    label = *found;
  } else {
    label = FindHeader(header, {"label", "class", "category", "target", "y"}).value_or(label);
  }
  PictureTable table;
  if (named) {
    ONWARD_ASSIGN_OR_RETURN(more, csv.Next(&row));
  }
  while (more) {
    if (row.fields.size() != columns) {
      return absl::InvalidArgumentError(absl::StrCat("line ", row.line, " has ", row.fields.size(),
                                                     " fields, expected ", columns));
    }
    table.names.emplace_back(absl::StripAsciiWhitespace(row.fields[file]));
    if (label != file) table.labels.emplace_back(absl::StripAsciiWhitespace(row.fields[label]));
    ONWARD_ASSIGN_OR_RETURN(more, csv.Next(&row));
  }
  if (table.names.empty()) return absl::InvalidArgumentError("no rows but the header");
  return table;
}

absl::StatusOr<LoadedData> ReadImageTable(const std::string& path, const DataOptions& options) {
  ONWARD_ASSIGN_OR_RETURN(const std::string text, ReadPlainOrGzip(path));
  auto table = ReadTable(text, options);
  if (!table.ok()) return Annotate(table.status(), path);
  LoadedData data;
  data.source = path;
  auto files = std::make_shared<NamedFiles>();
  files->AddFolder(std::filesystem::path(path).parent_path().string());
  for (std::string& name : table->names) files->Add(0, std::move(name));
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> pictures, AddPictures(files, options, &data));
  if (table->labels.empty()) return data;
  std::vector<std::string> labels;
  for (int64_t picture : pictures) labels.push_back(std::move(table->labels[picture]));
  ONWARD_RETURN_IF_ERROR(AddTextLabels(labels, options.task, &data));
  return data;
}

}  // namespace

absl::StatusOr<LoadedData> ReadImages(const std::string& path, const DataOptions& options) {
  if (absl::EndsWithIgnoreCase(path, ".csv") || absl::EndsWithIgnoreCase(path, ".csv.gz") ||
      absl::EndsWithIgnoreCase(path, ".tsv")) {
    return ReadImageTable(path, options);
  }
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return ReadPicture(path, options);
  ONWARD_ASSIGN_OR_RETURN(const Listing listing, List(path));
  if (options.label) {
    if (*options.label == "none") return ReadUnlabelled(path, listing, options);
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": label=", *options.label,
                     ": a folder's pictures have the labels of their folders, or label=none"));
  }
  if (listing.folders.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": holds no folders; expected one per class (label=none takes its "
                     "pictures without labels)"));
  }
  return ReadClassFolders(path, listing, options);
}

}  // namespace onward
