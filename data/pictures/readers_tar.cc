// SPDX-License-Identifier: Apache-2.0
// WebDataset: tar archives in which the members of a sample stand side by side and share a name
// up to the first dot, as in 000017.jpg, 000017.cls. Archives are indexed once by their headers.
#include <glob.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"
#include "data/pictures/json_field.h"
#include "data/pictures/picture.h"
#include "data/pictures/picture_files.h"
#include "data/readers.h"
#include "data/tar.h"

namespace onward {
namespace {

constexpr uint64_t kLongestLabel = 1 << 16;

struct Member {
  uint64_t offset = 0, size = 0;
};

// Pictures are parts of archives.
class TarPictures : public PictureFiles {
 public:
  size_t AddShard(StoredBytes shard) {
    shards_.push_back(std::move(shard));
    return shards_.size() - 1;
  }
  void Add(size_t shard, Member member, std::string name) {
    pictures_.push_back({shard, member, std::move(name)});
  }

  int64_t count() const override { return static_cast<int64_t>(pictures_.size()); }
  std::string name(int64_t picture) const override {
    const Entry& p = pictures_[picture];
    return absl::StrCat(shards_[p.shard].name(), " (", p.name, ")");
  }
  absl::StatusOr<StoredBytes> Open(int64_t picture) const override {
    const Entry& p = pictures_[picture];
    return shards_[p.shard].Part(p.member.offset, p.member.size, name(picture));
  }

 private:
  struct Entry {
    size_t shard = 0;
    Member member;
    std::string name;
  };
  std::vector<StoredBytes> shards_;
  std::vector<Entry> pictures_;
};

// "a/000017" and "seg.png" of "a/000017.seg.png".
std::pair<absl::string_view, absl::string_view> SplitName(absl::string_view name) {
  const size_t slash = name.rfind('/');
  const size_t dot = name.find('.', slash == absl::string_view::npos ? 0 : slash + 1);
  if (dot == absl::string_view::npos) return {name, ""};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

struct Sample {
  std::string key, picture_name;
  std::optional<Member> picture, label;
  std::string label_name;
};

class ShardReader {
 public:
  ShardReader(const DataOptions& options) : options_(options) {}

  absl::Status Read(const std::string& path) {
    ONWARD_ASSIGN_OR_RETURN(const StoredBytes archive, StoredBytes::OpenPlainOrGzip(path));
    ONWARD_ASSIGN_OR_RETURN(const std::vector<TarMember> members, ListTar(archive));
    const size_t shard = pictures_->AddShard(archive);
    Sample sample;
    for (const TarMember& m : members) {
      const auto [key, ending] = SplitName(m.name);
      if (key != sample.key) {
        ONWARD_RETURN_IF_ERROR(Finish(archive, shard, sample));
        sample = {};
        sample.key = std::string(key);
      }
      const Member member{m.offset, m.size};
      if (!sample.picture && IsPictureName(absl::StrCat(".", ending))) {
        sample.picture = member;
        sample.picture_name = m.name;
      } else if (IsLabel(ending, sample)) {
        sample.label = member;
        sample.label_name = m.name;
      }
    }
    return Finish(archive, shard, sample);
  }

  std::shared_ptr<TarPictures> pictures() { return pictures_; }
  const std::vector<std::string>& labels() const { return labels_; }
  int64_t without_picture() const { return without_picture_; }

 private:
  // A .cls goes before a .json where both are there, but label=KEY asks for the .json.
  bool IsLabel(absl::string_view ending, const Sample& sample) const {
    if (options_.label == "none") return false;
    if (ending == "json") return options_.label.has_value() || !sample.label;
    return !options_.label && (ending == "cls" || ending == "txt");
  }

  absl::StatusOr<std::string> ReadLabel(const StoredBytes& archive, const Sample& sample) const {
    const std::string name = absl::StrCat(archive.name(), " (", sample.label_name, ")");
    if (sample.label->size > kLongestLabel) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": ", sample.label->size, " bytes are no label"));
    }
    ONWARD_ASSIGN_OR_RETURN(std::string text,
                            archive.Part(sample.label->offset, sample.label->size, name).ReadAll());
    if (!absl::EndsWith(sample.label_name, ".json")) {
      return std::string(absl::StripAsciiWhitespace(text));
    }
    for (const std::string& key : options_.label
                                      ? std::vector<std::string>{*options_.label}
                                      : std::vector<std::string>{"label", "class", "cls"}) {
      auto value = JsonScalar(text, key);
      if (!value.ok()) return Annotate(value.status(), name);
      if (*value) return **value;
    }
    return absl::InvalidArgumentError(absl::StrCat(name, ": has no '",
                                                   options_.label.value_or("label"),
                                                   "'; ?label=KEY names what holds the label"));
  }

  absl::Status Finish(const StoredBytes& archive, size_t shard, const Sample& sample) {
    if (!sample.picture) {
      without_picture_ += !sample.key.empty();
      return absl::OkStatus();
    }
    if (sample.label) {
      ONWARD_ASSIGN_OR_RETURN(std::string label, ReadLabel(archive, sample));
      labels_.push_back(std::move(label));
    }
    pictures_->Add(shard, *sample.picture, sample.picture_name);
    const auto pictures = static_cast<size_t>(pictures_->count());
    if (!labels_.empty() && labels_.size() != pictures) {
      return absl::InvalidArgumentError(
          absl::StrCat(archive.name(), ": '", sample.key,
                       sample.label ? "' has a label, but samples before it have none"
                                    : "' has no label (.cls or .json), but samples before it do"));
    }
    return absl::OkStatus();
  }

  const DataOptions& options_;
  std::shared_ptr<TarPictures> pictures_ = std::make_shared<TarPictures>();
  std::vector<std::string> labels_;  // of all pictures, or none
  int64_t without_picture_ = 0;
};

}  // namespace

std::vector<std::string> ListShards(const std::string& shards) {
  std::vector<std::string> files;
  for (absl::string_view part : absl::StrSplit(shards, ',', absl::SkipEmpty())) {
    const std::string pattern(part);
    glob_t found{};
    if (absl::StrContains(part, '*') && glob(pattern.c_str(), 0, nullptr, &found) == 0) {
      files.insert(files.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
    } else {
      files.push_back(pattern);
    }
    globfree(&found);
  }
  return files;
}

absl::StatusOr<LoadedData> ReadTar(const std::string& shards, const DataOptions& options) {
  ShardReader reader(options);
  for (const std::string& file : ListShards(shards)) {
    ONWARD_RETURN_IF_ERROR(reader.Read(file));
  }
  LoadedData data;
  data.source = shards;
  if (reader.pictures()->count() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(shards, ": holds no pictures"));
  }
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> pictures,
                          AddPictures(reader.pictures(), options, &data));
  if (reader.without_picture() > 0) {
    data.notes.push_back(absl::StrCat(shards, ": ", reader.without_picture(),
                                      " samples have no picture and are left out"));
  }
  if (reader.labels().empty()) return data;
  std::vector<std::string> labels;
  for (int64_t picture : pictures) labels.push_back(reader.labels()[picture]);
  ONWARD_RETURN_IF_ERROR(AddTextLabels(labels, options.task, &data));
  return data;
}

}  // namespace onward
