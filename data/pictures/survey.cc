// SPDX-License-Identifier: Apache-2.0
// What can be known of pictures before a run (picture_files.h).
#include <algorithm>
#include <new>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "data/pictures/picture.h"
#include "data/pictures/picture_files.h"

namespace onward {
namespace {

constexpr size_t kHead = size_t{1} << 16;  // bytes: a camera's notes come before the size
constexpr size_t kTail = 4096;
constexpr size_t kMostNamed = 10;

// What is at the beginning and at the end of a file.
struct Ends {
  std::string head, tail;
  bool whole = false;  // the head is everything
};

absl::StatusOr<Ends> ReadEnds(const StoredBytes& file) {
  Ends ends;
  ends.whole = file.size() <= kHead;
  ends.head.resize(static_cast<size_t>(std::min<uint64_t>(file.size(), kHead)));
  ONWARD_RETURN_IF_ERROR(file.Read(0, ends.head.size(), ends.head.data()));
  ends.tail.resize(static_cast<size_t>(std::min<uint64_t>(file.size(), kTail)));
  ONWARD_RETURN_IF_ERROR(
      file.Read(file.size() - ends.tail.size(), ends.tail.size(), ends.tail.data()));
  return ends;
}

// Whether the end of a file is that of its format. Where it is not, only decoding tells: some
// programs add to pictures that are whole.
bool EndsWell(const Ends& ends, uint64_t size) {
  switch (FormatOf(ends.head)) {
    case PictureFormat::kPng:
      return absl::EndsWith(ends.tail, absl::string_view("IEND\xae\x42\x60\x82", 8));
    // Within pixels an FF is followed by 00 or by a restart.
    case PictureFormat::kJpeg: return absl::StrContains(ends.tail, "\xff\xd9");
    case PictureFormat::kWebp: {
      uint64_t length = 0;  // of what follows these 8 bytes
      for (int i = 7; i >= 4; --i) length = length << 8 | static_cast<unsigned char>(ends.head[i]);
      return length + 8 <= size;
    }
    default: return false;
  }
}

// The header's word where beginning and end are as they should be, else the decoder's.
absl::StatusOr<PictureInfo> Look(const PictureFiles& files, int64_t picture, bool decode) {
  ONWARD_ASSIGN_OR_RETURN(const StoredBytes file, files.Open(picture));
  if (!decode) {
    ONWARD_ASSIGN_OR_RETURN(const Ends ends, ReadEnds(file));
    if (EndsWell(ends, file.size())) {
      auto info = ProbePicture(ends.head, file.name());
      if (info.ok() || ends.whole) return info;
    }
  }
  ONWARD_ASSIGN_OR_RETURN(const std::string bytes, file.ReadAll());
  ONWARD_ASSIGN_OR_RETURN(const Picture decoded, DecodePicture(bytes, file.name()));
  return decoded.info;
}

struct Found {
  PictureInfo info;
  absl::Status status;
};

std::vector<Found> LookAtAll(const PictureFiles& files, const std::vector<int64_t>& chosen,
                             bool decode) {
  std::vector<Found> found(chosen.size());
  ParallelFor(static_cast<int64_t>(chosen.size()), 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      try {
        auto info = Look(files, chosen[i], decode);
        if (info.ok()) found[i].info = *info;
        found[i].status = info.status();
      } catch (const std::bad_alloc&) {
        found[i].status = absl::ResourceExhaustedError(
            absl::StrCat(files.name(chosen[i]), ": out of memory while reading it"));
      }
    }
  });
  return found;
}

// "a.png: damaged picture: ...; b.jpg: ...; and 3 more".
std::string Messages(const std::vector<Found>& found) {
  std::string text;
  size_t broken = 0;
  for (const Found& f : found) {
    if (f.status.ok() || ++broken > kMostNamed) continue;
    absl::StrAppend(&text, text.empty() ? "" : "; ", f.status.message());
  }
  if (broken > kMostNamed) absl::StrAppend(&text, "; and ", broken - kMostNamed, " more");
  return text;
}

absl::Status Refuse(const std::vector<Found>& found, size_t broken, Broken mode) {
  const auto first =
      std::find_if(found.begin(), found.end(), [](const Found& f) { return !f.status.ok(); });
  return absl::Status(
      first->status.code(),
      absl::StrCat(Messages(found), " (", broken, " of ", found.size(), " pictures",
                   mode == Broken::kSkip ? "" : "; ?broken=skip leaves such pictures out", ")"));
}

absl::Status CheckSizes(const PictureFiles& files, const Survey& survey,
                        const std::vector<PictureInfo>& infos,
                        const std::optional<Shape>& model_size) {
  const PictureInfo& first = infos[0];
  const Shape size = model_size.value_or(Shape{first.height, first.width});
  for (size_t i = 1; i < infos.size(); ++i) {
    if (infos[i].height == first.height && infos[i].width == first.width) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(files.name(survey.pictures[i]), ": is ", infos[i].height, " x ",
                     infos[i].width, " (height x width), but ", files.name(survey.pictures[0]),
                     " is ", first.height, " x ", first.width, "; resize all with size=", size[0],
                     "x", size[1], model_size.has_value() ? ", which the model takes" : ""));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Survey> SurveyPictures(const PictureFiles& files, std::vector<int64_t> chosen,
                                      const PictureOptions& options) {
  const std::vector<Found> found =
      LookAtAll(files, chosen, /*decode=*/options.broken != Broken::kFound);
  Survey survey;
  std::vector<PictureInfo> infos;
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i].status.ok()) continue;
    survey.pictures.push_back(chosen[i]);
    infos.push_back(found[i].info);
  }
  const size_t broken = found.size() - infos.size();
  if (broken > 0 && (options.broken != Broken::kSkip || infos.empty())) {
    return Refuse(found, broken, options.broken);
  }
  if (broken > 0) {
    survey.notes.push_back(absl::StrCat("left out ", broken, " of ", found.size(),
                                        " pictures, which are broken: ", Messages(found)));
  }
  if (!options.size) ONWARD_RETURN_IF_ERROR(CheckSizes(files, survey, infos, options.model_size));
  survey.info = infos[0];
  for (const PictureInfo& info : infos) {
    survey.info.channels = std::max(survey.info.channels, info.channels);
  }
  if (options.size) {
    survey.info.height = (*options.size)[0];
    survey.info.width = (*options.size)[1];
  }
  if (options.channels != 0) survey.info.channels = options.channels;
  return survey;
}

}  // namespace onward
