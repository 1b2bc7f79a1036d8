// SPDX-License-Identifier: Apache-2.0
// JPEG 2000, in a JP2 file or as a bare codestream, through OpenJPEG, from memory.
#include <openjpeg.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/picture/picture.h"

namespace onward {
namespace {

constexpr uint32_t kMostComponents = 4;
constexpr uint32_t kMostBits = 16;
// OpenJPEG holds 32 bits of each component of a pixel.
constexpr int64_t kMostMemory = int64_t{1} << 30;

struct Source {
  absl::string_view bytes;
  size_t at = 0;
};

OPJ_SIZE_T Read(void* to, OPJ_SIZE_T count, void* handle) {
  auto* source = static_cast<Source*>(handle);
  const size_t n = std::min<size_t>(count, source->bytes.size() - source->at);
  if (n == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(to, source->bytes.data() + source->at, n);
  source->at += n;
  return n;
}

OPJ_BOOL Seek(OPJ_OFF_T to, void* handle) {
  auto* source = static_cast<Source*>(handle);
  if (to < 0 || static_cast<size_t>(to) > source->bytes.size()) return OPJ_FALSE;
  source->at = static_cast<size_t>(to);
  return OPJ_TRUE;
}

OPJ_OFF_T Skip(OPJ_OFF_T count, void* handle) {
  const auto* source = static_cast<Source*>(handle);
  return Seek(static_cast<OPJ_OFF_T>(source->at) + count, handle) == OPJ_TRUE ? count : -1;
}

struct StreamEnd {
  void operator()(opj_stream_t* stream) const { opj_stream_destroy(stream); }
};
struct CodecEnd {
  void operator()(opj_codec_t* codec) const { opj_destroy_codec(codec); }
};
struct ImageEnd {
  void operator()(opj_image_t* image) const { opj_image_destroy(image); }
};
using Stream = std::unique_ptr<opj_stream_t, StreamEnd>;
using Codec = std::unique_ptr<opj_codec_t, CodecEnd>;
using Image = std::unique_ptr<opj_image_t, ImageEnd>;

Stream StreamOf(Source* source) {
  Stream stream(opj_stream_default_create(OPJ_TRUE));
  if (stream == nullptr) return stream;
  opj_stream_set_read_function(stream.get(), Read);
  opj_stream_set_seek_function(stream.get(), Seek);
  opj_stream_set_skip_function(stream.get(), Skip);
  opj_stream_set_user_data(stream.get(), source, nullptr);
  opj_stream_set_user_data_length(stream.get(), source->bytes.size());
  return stream;
}

// What the header says, before anything is decoded.
absl::Status CheckHeader(const opj_image_t& image, absl::string_view name) {
  ONWARD_RETURN_IF_ERROR(
      CheckPictureSize(name, int64_t{image.y1} - image.y0, int64_t{image.x1} - image.x0));
  if (image.numcomps < 1 || image.numcomps > kMostComponents) {
    return absl::UnimplementedError(
        absl::StrCat(name, ": a JPEG 2000 picture of ", image.numcomps, " components"));
  }
  const int64_t pixels = (int64_t{image.y1} - image.y0) * (int64_t{image.x1} - image.x0);
  if (pixels > kMostMemory / 4 / image.numcomps) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": a JPEG 2000 picture of ", pixels, " pixels is not supported"));
  }
  for (uint32_t i = 0; i < image.numcomps; ++i) {
    if (image.comps[i].prec < 1 || image.comps[i].prec > kMostBits) {
      return absl::UnimplementedError(
          absl::StrCat(name, ": a JPEG 2000 picture of ", image.comps[i].prec, " bits"));
    }
  }
  if (image.color_space == OPJ_CLRSPC_CMYK || image.color_space == OPJ_CLRSPC_EYCC) {
    return absl::UnimplementedError(
        absl::StrCat(name, ": a JPEG 2000 picture in CMYK or e-YCC; convert it to RGB"));
  }
  return absl::OkStatus();
}

// The component at a pixel of the picture, in 8 bits: components may have fewer pixels.
uint8_t At(const opj_image_comp_t& c, int64_t y, int64_t x, int64_t height, int64_t width) {
  const int64_t row = y * c.h / height, column = x * c.w / width;
  const int32_t lift = c.sgnd != 0 ? 1 << (c.prec - 1) : 0, top = (1 << c.prec) - 1;
  const int32_t v = std::clamp(c.data[row * c.w + column] + lift, 0, top);
  return static_cast<uint8_t>(c.prec >= 8 ? v >> (c.prec - 8) : v * 255 / top);
}

// Brightness and two differences of colour (ITU-R BT.601) to red, green and blue.
void ToRgb(uint8_t* pixel) {
  const double y = pixel[0], cb = pixel[1] - 128.0, cr = pixel[2] - 128.0;
  const auto byte = [](double v) { return static_cast<uint8_t>(std::clamp(v + 0.5, 0.0, 255.0)); };
  pixel[0] = byte(y + 1.402 * cr);
  pixel[1] = byte(y - 0.344136 * cb - 0.714136 * cr);
  pixel[2] = byte(y + 1.772 * cb);
}

PictureInfo InfoOf(const opj_image_t& image) {
  return {int64_t{image.y1} - image.y0, int64_t{image.x1} - image.x0, image.numcomps >= 3 ? 3 : 1};
}

// A file whose header has been read and checked.
struct Opened {
  Stream stream;
  Codec codec;
  Image image;
};

absl::StatusOr<Opened> OpenJpeg2000(Source* source, absl::string_view name) {
  const bool bare = absl::StartsWith(source->bytes, "\xff\x4f\xff\x51");
  Opened opened{StreamOf(source),
                Codec(opj_create_decompress(bare ? OPJ_CODEC_J2K : OPJ_CODEC_JP2)), nullptr};
  if (opened.stream == nullptr || opened.codec == nullptr) {
    return absl::ResourceExhaustedError("OpenJPEG cannot start");
  }
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  opj_image_t* read = nullptr;
  const bool has_header =
      opj_setup_decoder(opened.codec.get(), &parameters) == OPJ_TRUE &&
      opj_read_header(opened.stream.get(), opened.codec.get(), &read) == OPJ_TRUE;
  opened.image.reset(read);
  if (!has_header || read == nullptr) {
    return DamagedPicture(name, "a JPEG 2000 file without a header");
  }
  ONWARD_RETURN_IF_ERROR(CheckHeader(*read, name));
  return opened;
}

}  // namespace

absl::StatusOr<PictureInfo> ProbeJpeg2000(absl::string_view bytes, absl::string_view name) {
  Source source{bytes};
  ONWARD_ASSIGN_OR_RETURN(const Opened opened, OpenJpeg2000(&source, name));
  return InfoOf(*opened.image);
}

absl::StatusOr<Picture> DecodeJpeg2000(absl::string_view bytes, absl::string_view name) {
  Source source{bytes};
  ONWARD_ASSIGN_OR_RETURN(const Opened opened, OpenJpeg2000(&source, name));
  const auto& [stream, codec, image] = opened;
  if (opj_decode(codec.get(), stream.get(), image.get()) != OPJ_TRUE ||
      opj_end_decompress(codec.get(), stream.get()) != OPJ_TRUE) {
    return DamagedPicture(name, "the JPEG 2000 data cannot be decoded");
  }
  // A palette has made other components of them.
  ONWARD_RETURN_IF_ERROR(CheckHeader(*image, name));
  Picture p;
  p.info = InfoOf(*image);
  for (int c = 0; c < p.info.channels; ++c) {
    const opj_image_comp_t& component = image->comps[c];
    if (component.data == nullptr || component.w < 1 || component.h < 1) {
      return DamagedPicture(name, "a component without pixels");
    }
  }
  p.pixels.resize(static_cast<size_t>(p.info.height * p.info.width * p.info.channels));
  uint8_t* pixel = p.pixels.data();
  for (int64_t y = 0; y < p.info.height; ++y) {
    for (int64_t x = 0; x < p.info.width; ++x, pixel += p.info.channels) {
      for (int c = 0; c < p.info.channels; ++c) {
        pixel[c] = At(image->comps[c], y, x, p.info.height, p.info.width);
      }
      if (image->color_space == OPJ_CLRSPC_SYCC && p.info.channels == 3) ToRgb(pixel);
    }
  }
  return p;
}

}  // namespace onward
