// SPDX-License-Identifier: Apache-2.0
// TIFF through libtiff, from memory.
#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/picture/picture.h"

namespace onward {
namespace {

struct TiffSource {
  absl::string_view bytes;
  toff_t at = 0;
};

tmsize_t Read(thandle_t handle, void* to, tmsize_t count) {
  auto* source = static_cast<TiffSource*>(handle);
  if (count <= 0 || source->at >= source->bytes.size()) return 0;
  const size_t n = std::min(static_cast<size_t>(count), source->bytes.size() - source->at);
  std::memcpy(to, source->bytes.data() + source->at, n);
  source->at += n;
  return static_cast<tmsize_t>(n);
}

tmsize_t Write(thandle_t, void*, tmsize_t) { return 0; }

toff_t Seek(thandle_t handle, toff_t offset, int whence) {
  auto* source = static_cast<TiffSource*>(handle);
  if (whence == SEEK_CUR) offset += source->at;
  if (whence == SEEK_END) offset += source->bytes.size();
  source->at = offset;
  return source->at;
}

int Close(thandle_t) { return 0; }
toff_t Size(thandle_t handle) { return static_cast<TiffSource*>(handle)->bytes.size(); }

// What libtiff may take at once, whatever a file says of its strips.
constexpr tmsize_t kMostTiffMemory = tmsize_t{1} << 30;

// Messages would go to the standard error otherwise.
int Ignore(TIFF*, void*, const char*, const char*, va_list) { return 1; }

struct OptionsEnd {
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};

struct Closer {
  void operator()(TIFF* file) const { TIFFClose(file); }
};
using File = std::unique_ptr<TIFF, Closer>;

absl::StatusOr<File> OpenTiff(TiffSource* source, absl::string_view name) {
  const std::unique_ptr<TIFFOpenOptions, OptionsEnd> options(TIFFOpenOptionsAlloc());
  if (options == nullptr) return absl::ResourceExhaustedError("libtiff cannot start");
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMostTiffMemory);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), Ignore, nullptr);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), Ignore, nullptr);
  return File(TIFFClientOpenExt(std::string(name).c_str(), "rm", source, Read, Write, Seek, Close,
                                Size, nullptr, nullptr, options.get()));
}

absl::StatusOr<PictureInfo> ReadInfo(TIFF* file, absl::string_view name) {
  uint32_t width = 0, height = 0;
  if (file == nullptr || TIFFGetField(file, TIFFTAG_IMAGEWIDTH, &width) != 1 ||
      TIFFGetField(file, TIFFTAG_IMAGELENGTH, &height) != 1) {
    return DamagedPicture(name, "a TIFF file without a picture");
  }
  ONWARD_RETURN_IF_ERROR(CheckPictureSize(name, height, width));
  uint16_t photometric = 0;
  TIFFGetField(file, TIFFTAG_PHOTOMETRIC, &photometric);
  const bool grey = photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_MINISWHITE;
  return PictureInfo{height, width, grey ? 1 : 3};
}

}  // namespace

absl::StatusOr<PictureInfo> ProbeTiff(absl::string_view bytes, absl::string_view name) {
  TiffSource source{bytes};
  ONWARD_ASSIGN_OR_RETURN(const File file, OpenTiff(&source, name));
  return ReadInfo(file.get(), name);
}

absl::StatusOr<Picture> DecodeTiff(absl::string_view bytes, absl::string_view name) {
  TiffSource source{bytes};
  ONWARD_ASSIGN_OR_RETURN(const File file, OpenTiff(&source, name));
  Picture p;
  ONWARD_ASSIGN_OR_RETURN(p.info, ReadInfo(file.get(), name));
  const uint32_t width = static_cast<uint32_t>(p.info.width);
  const uint32_t height = static_cast<uint32_t>(p.info.height);
  char why[1024] = {};
  if (TIFFRGBAImageOK(file.get(), why) == 0) return DamagedPicture(name, why);
  std::vector<uint32_t> raster(static_cast<size_t>(width) * height);
  if (TIFFReadRGBAImageOriented(file.get(), width, height, raster.data(), ORIENTATION_TOPLEFT,
                                /*stop_on_error=*/1) == 0) {
    return DamagedPicture(name, "the TIFF data cannot be decoded");
  }
  p.pixels.reserve(raster.size() * p.info.channels);
  for (uint32_t pixel : raster) {
    p.pixels.push_back(static_cast<uint8_t>(TIFFGetR(pixel)));
    if (p.info.channels == 1) continue;
    p.pixels.push_back(static_cast<uint8_t>(TIFFGetG(pixel)));
    p.pixels.push_back(static_cast<uint8_t>(TIFFGetB(pixel)));
  }
  return p;
}

}  // namespace onward
