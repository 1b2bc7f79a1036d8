// SPDX-License-Identifier: Apache-2.0
// libpng and libjpeg report errors by longjmp: it crosses their frames and
// functions here whose locals need no destructor, nothing else.
#include "data/picture.h"

#include <jerror.h>
#include <jpeglib.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "data/file_bytes.h"

namespace onward {
namespace {

constexpr int64_t kMostPixels = int64_t{1} << 27;
constexpr absl::string_view kPngSignature("\x89PNG\r\n\x1a\n", 8);
constexpr absl::string_view kJpegSignature("\xff\xd8\xff", 3);

absl::Status Damaged(absl::string_view name, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(name, ": damaged picture: ", what));
}

absl::Status CheckSize(absl::string_view name, int64_t height, int64_t width) {
  if (height >= 1 && width >= 1 && height <= kMostPixels / width) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": a picture of ", height, " x ", width, " pixels is not supported"));
}

// --- PNG

struct PngSource {
  absl::string_view bytes;
  char message[160] = {};
};

[[noreturn]] void OnPngError(png_structp png, png_const_charp message) {
  auto* source = static_cast<PngSource*>(png_get_error_ptr(png));
  std::snprintf(source->message, sizeof(source->message), "%s", message);
  png_longjmp(png, 1);
}

void OnPngWarning(png_structp, png_const_charp) {}

void ReadPngBytes(png_structp png, png_bytep to, png_size_t count) {
  auto* source = static_cast<PngSource*>(png_get_io_ptr(png));
  if (count > source->bytes.size()) png_error(png, "the file is truncated");
  std::memcpy(to, source->bytes.data(), count);
  source->bytes.remove_prefix(count);
}

// 8 bits, grey or RGB, no transparency.
bool ReadPngHeader(png_structp png, png_infop info) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_read_info(png, info);
  png_set_scale_16(png);
  png_set_palette_to_rgb(png);
  if (png_get_color_type(png, info) == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png);
  png_set_strip_alpha(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  return true;
}

bool ReadPngRows(png_structp png, png_bytepp rows) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  return true;
}

class PngFile {
 public:
  explicit PngFile(absl::string_view bytes) {
    source_.bytes = bytes;
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source_, OnPngError, OnPngWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ != nullptr) png_set_read_fn(png_, &source_, ReadPngBytes);
  }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;
  ~PngFile() { png_destroy_read_struct(&png_, &info_, nullptr); }

  absl::StatusOr<Picture> Decode(absl::string_view name) {
    if (info_ == nullptr) return absl::ResourceExhaustedError("libpng cannot start");
    if (!ReadPngHeader(png_, info_)) return Damaged(name, source_.message);
    Picture p;
    p.info.height = png_get_image_height(png_, info_);
    p.info.width = png_get_image_width(png_, info_);
    p.info.channels = png_get_channels(png_, info_);
    ONWARD_RETURN_IF_ERROR(CheckSize(name, p.info.height, p.info.width));
    const size_t row_bytes = static_cast<size_t>(p.info.width) * p.info.channels;
    if ((p.info.channels != 1 && p.info.channels != 3) ||
        png_get_rowbytes(png_, info_) != row_bytes) {
      return Damaged(name, "an unusual kind of PNG");
    }
    p.pixels.resize(row_bytes * p.info.height);
    std::vector<png_bytep> rows(p.info.height);
    for (size_t y = 0; y < rows.size(); ++y) rows[y] = p.pixels.data() + y * row_bytes;
    if (!ReadPngRows(png_, rows.data())) return Damaged(name, source_.message);
    return p;
  }

 private:
  PngSource source_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

absl::StatusOr<PictureInfo> ProbePng(absl::string_view bytes, absl::string_view name) {
  if (bytes.size() < 33 || bytes.substr(12, 4) != "IHDR") {
    return Damaged(name, "the file is truncated");
  }
  const auto big = [&](size_t at) {
    int64_t v = 0;
    for (int i = 0; i < 4; ++i) v = v << 8 | static_cast<unsigned char>(bytes[at + i]);
    return v;
  };
  const bool colour = (bytes[25] & PNG_COLOR_MASK_COLOR) != 0;
  return PictureInfo{big(20), big(16), colour ? 3 : 1};
}

// --- JPEG

struct JpegErrors {
  jpeg_error_mgr base;  // first: libjpeg knows only this part
  std::jmp_buf on_error;
  char message[JMSG_LENGTH_MAX];
  bool truncated;
};

[[noreturn]] void OnJpegError(j_common_ptr jpeg) {
  auto* errors = reinterpret_cast<JpegErrors*>(jpeg->err);
  errors->base.format_message(jpeg, errors->message);
  std::longjmp(errors->on_error, 1);
}

// libjpeg fills what is missing with grey and only warns.
void OnJpegMessage(j_common_ptr jpeg, int level) {
  auto* errors = reinterpret_cast<JpegErrors*>(jpeg->err);
  const int code = errors->base.msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) errors->truncated = true;
}

class JpegFile {
 public:
  explicit JpegFile(absl::string_view bytes) : bytes_(bytes) {
    std::memset(&jpeg_, 0, sizeof(jpeg_));
    std::memset(&errors_, 0, sizeof(errors_));
    jpeg_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = OnJpegError;
    errors_.base.emit_message = OnJpegMessage;
  }
  JpegFile(const JpegFile&) = delete;
  JpegFile& operator=(const JpegFile&) = delete;
  ~JpegFile() { jpeg_destroy_decompress(&jpeg_); }

  absl::StatusOr<PictureInfo> Probe(absl::string_view name) {
    if (!ReadHeader()) return Damaged(name, errors_.message);
    if (jpeg_.num_components != 1 && jpeg_.num_components != 3) {
      return absl::UnimplementedError(absl::StrCat(name, ": a JPEG with ", jpeg_.num_components,
                                                   " channels (CMYK); convert it to RGB"));
    }
    return PictureInfo{jpeg_.image_height, jpeg_.image_width, jpeg_.num_components};
  }

  absl::StatusOr<Picture> Decode(absl::string_view name) {
    Picture p;
    ONWARD_ASSIGN_OR_RETURN(p.info, Probe(name));
    ONWARD_RETURN_IF_ERROR(CheckSize(name, p.info.height, p.info.width));
    p.pixels.resize(static_cast<size_t>(p.info.height * p.info.width * p.info.channels));
    jpeg_.out_color_space = p.info.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    if (!ReadRows(p.pixels.data(), p.info.width * p.info.channels)) {
      return Damaged(name, errors_.message);
    }
    if (errors_.truncated) return Damaged(name, "the file is truncated");
    return p;
  }

 private:
  bool ReadHeader() {
    if (setjmp(errors_.on_error)) return false;
    jpeg_create_decompress(&jpeg_);
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size());
    jpeg_read_header(&jpeg_, TRUE);
    return true;
  }

  bool ReadRows(uint8_t* to, int64_t row_bytes) {
    if (setjmp(errors_.on_error)) return false;
    jpeg_start_decompress(&jpeg_);
    while (jpeg_.output_scanline < jpeg_.output_height) {
      JSAMPROW row = to + jpeg_.output_scanline * row_bytes;
      jpeg_read_scanlines(&jpeg_, &row, 1);
    }
    jpeg_finish_decompress(&jpeg_);
    return true;
  }

  absl::string_view bytes_;
  jpeg_decompress_struct jpeg_;
  JpegErrors errors_;
};

absl::Status NotAPicture(absl::string_view bytes, absl::string_view name) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": is neither PNG nor JPEG (starts with ", FirstBytes(bytes, 8), ")"));
}

// --- Resizing

// Output position i is the sum of weights[k] * input[begin + k].
struct Window {
  int64_t begin = 0;
  std::vector<float> weights;
};

std::vector<Window> TriangleWindows(int64_t from, int64_t to) {
  const double step = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(step, 1.0);
  std::vector<Window> windows(to);
  for (int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * step;
    Window& w = windows[i];
    w.begin = std::max<int64_t>(0, static_cast<int64_t>(center - support + 0.5));
    const int64_t end = std::min<int64_t>(from, static_cast<int64_t>(center + support + 0.5));
    double sum = 0;
    for (int64_t k = w.begin; k < end; ++k) {
      const double distance = std::fabs((static_cast<double>(k) + 0.5 - center) / support);
      w.weights.push_back(static_cast<float>(std::max(0.0, 1 - distance)));
      sum += w.weights.back();
    }
    for (float& v : w.weights) v = static_cast<float>(v / sum);
  }
  return windows;
}

}  // namespace

absl::StatusOr<PictureInfo> ProbePicture(absl::string_view bytes, absl::string_view name) {
  PictureInfo info;
  if (absl::StartsWith(bytes, kPngSignature)) {
    ONWARD_ASSIGN_OR_RETURN(info, ProbePng(bytes, name));
  } else if (absl::StartsWith(bytes, kJpegSignature)) {
    ONWARD_ASSIGN_OR_RETURN(info, JpegFile(bytes).Probe(name));
  } else {
    return NotAPicture(bytes, name);
  }
  ONWARD_RETURN_IF_ERROR(CheckSize(name, info.height, info.width));
  return info;
}

absl::StatusOr<Picture> DecodePicture(absl::string_view bytes, absl::string_view name) {
  if (absl::StartsWith(bytes, kPngSignature)) return PngFile(bytes).Decode(name);
  if (absl::StartsWith(bytes, kJpegSignature)) return JpegFile(bytes).Decode(name);
  return NotAPicture(bytes, name);
}

Picture ToChannels(const Picture& picture, int channels) {
  if (picture.info.channels == channels) return picture;
  Picture out;
  out.info = {picture.info.height, picture.info.width, channels};
  const int64_t area = picture.info.height * picture.info.width;
  out.pixels.resize(static_cast<size_t>(area * channels));
  for (int64_t i = 0; i < area; ++i) {
    if (channels == 3) {
      std::fill_n(out.pixels.begin() + 3 * i, 3, picture.pixels[i]);
    } else {
      // ITU-R BT.601 luma in 16-bit fixed point.
      const uint8_t* p = picture.pixels.data() + 3 * i;
      out.pixels[i] =
          static_cast<uint8_t>((p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16);
    }
  }
  return out;
}

Picture Resize(const Picture& picture, int64_t height, int64_t width) {
  const auto [from_height, from_width, channels] = picture.info;
  if (from_height == height && from_width == width) return picture;
  const std::vector<Window> across = TriangleWindows(from_width, width);
  const std::vector<Window> down = TriangleWindows(from_height, height);
  std::vector<float> rows(static_cast<size_t>(from_height * width * channels));
  for (int64_t y = 0; y < from_height; ++y) {
    const uint8_t* from = picture.pixels.data() + y * from_width * channels;
    for (int64_t x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        float sum = 0;
        for (size_t k = 0; k < across[x].weights.size(); ++k) {
          sum += across[x].weights[k] *
                 from[(across[x].begin + static_cast<int64_t>(k)) * channels + c];
        }
        rows[(y * width + x) * channels + c] = sum;
      }
    }
  }
  Picture out;
  out.info = {height, width, channels};
  out.pixels.resize(static_cast<size_t>(height * width * channels));
  const int64_t row = width * channels;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t i = 0; i < row; ++i) {
      float sum = 0;
      for (size_t k = 0; k < down[y].weights.size(); ++k) {
        sum += down[y].weights[k] * rows[(down[y].begin + static_cast<int64_t>(k)) * row + i];
      }
      out.pixels[y * row + i] = static_cast<uint8_t>(std::clamp(sum + 0.5f, 0.0f, 255.0f));
    }
  }
  return out;
}

absl::StatusOr<std::string> EncodePng(const Picture& picture) {
  png_image image;
  std::memset(&image, 0, sizeof(image));
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.info.width);
  image.height = static_cast<png_uint_32>(picture.info.height);
  image.format = picture.info.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  const int64_t need = picture.info.height * picture.info.width * picture.info.channels;
  if (need < 1 || static_cast<size_t>(need) != picture.pixels.size() ||
      !png_image_write_to_memory(&image, nullptr, &size, 0, picture.pixels.data(), 0, nullptr)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot write a PNG: ", image.message));
  }
  std::string bytes(size, '\0');
  if (!png_image_write_to_memory(&image, bytes.data(), &size, 0, picture.pixels.data(), 0,
                                 nullptr)) {
    return absl::InternalError(absl::StrCat("cannot write a PNG: ", image.message));
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace onward
