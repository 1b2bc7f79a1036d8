// SPDX-License-Identifier: Apache-2.0
// IDX files (MNIST's format) and CIFAR-10's binary records.
#include <bit>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "data/file_bytes.h"
#include "data/readers.h"

namespace onward {
namespace {

constexpr int64_t kCifarPixels = 3 * 32 * 32;
constexpr int64_t kCifarRecord = 1 + kCifarPixels;

uint32_t Big(const char* p, int count) {
  uint32_t v = 0;
  for (int i = 0; i < count; ++i) v = v << 8 | static_cast<unsigned char>(p[i]);
  return v;
}

// Big-endian numbers of IDX's other element types, as floats.
absl::StatusOr<Tensor> Numbers(const std::string& bytes, size_t begin, int code,
                               const Shape& shape) {
  Tensor t(DType::kFloat, shape);
  const char* p = bytes.data() + begin;
  for (int64_t i = 0; i < t.elements(); ++i) {
    float v = 0;
    switch (code) {
      case 0x09: v = static_cast<int8_t>(p[i]); break;
      case 0x0b: v = static_cast<int16_t>(Big(p + 2 * i, 2)); break;
      case 0x0c: v = static_cast<float>(static_cast<int32_t>(Big(p + 4 * i, 4))); break;
      case 0x0d: v = std::bit_cast<float>(Big(p + 4 * i, 4)); break;
      default: {
        const uint64_t bits = uint64_t{Big(p + 8 * i, 4)} << 32 | Big(p + 8 * i + 4, 4);
        v = static_cast<float>(std::bit_cast<double>(bits));
      }
    }
    t.data<float>()[i] = v;
  }
  return t;
}

int ItemBytes(int code) {
  switch (code) {
    case 0x08:
    case 0x09: return 1;
    case 0x0b: return 2;
    case 0x0c:
    case 0x0d: return 4;
    case 0x0e: return 8;
    default: return 0;
  }
}

// An IDX file: 0, 0, element type, rank, big-endian sizes, elements. Bytes stay
// bytes, other types become floats.
absl::StatusOr<Tensor> ReadIdxFile(const std::string& path) {
  ONWARD_ASSIGN_OR_RETURN(std::string bytes, ReadPlainOrGzip(path));
  const int code = bytes.size() < 4 ? 0 : static_cast<unsigned char>(bytes[2]);
  const int rank = bytes.size() < 4 ? 0 : static_cast<unsigned char>(bytes[3]);
  if (bytes.size() < 4 || bytes[0] != 0 || bytes[1] != 0 || ItemBytes(code) == 0 || rank < 1 ||
      rank > 8) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is not an IDX file (starts with ", FirstBytes(bytes),
                     "; images start with 00 00 08 03, labels with 00 00 08 01)"));
  }
  const size_t begin = 4 + 4 * static_cast<size_t>(rank);
  if (bytes.size() < begin) {
    return absl::DataLossError(absl::StrCat(path, ": its IDX header is truncated"));
  }
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.push_back(Big(bytes.data() + 4 + 4 * i, 4));
  const auto elements = CheckedElements(shape.dims());
  if (!elements.ok()) return Annotate(elements.status(), path);
  const uint64_t need = static_cast<uint64_t>(*elements) * ItemBytes(code);
  if (need != bytes.size() - begin) {
    return absl::DataLossError(absl::StrCat(
        path, ": ", bytes.size() - begin < need ? "is truncated" : "has bytes left over",
        ": its header says ", shape.ToString(), ", which takes ", need, " bytes, found ",
        bytes.size() - begin));
  }
  if (code != 0x08) return Numbers(bytes, begin, code, shape);
  auto owner = std::make_shared<std::string>(std::move(bytes));
  void* data = owner->data() + begin;
  return Tensor(DType::kUint8, shape, data, std::move(owner));
}

absl::StatusOr<std::string> FindMnistFile(const std::string& folder, const std::string& name) {
  // Some copies write "train-images.idx3-ubyte".
  std::string dotted = name;
  dotted[dotted.rfind("-idx")] = '.';
  for (const std::string& base : {name, dotted}) {
    for (const char* ending : {"", ".gz"}) {
      const std::string path = absl::StrCat(folder, "/", base, ending);
      if (FileExists(path)) return path;
    }
  }
  if (!IsFolder(folder)) return absl::NotFoundError(absl::StrCat(folder, ": no such folder"));
  return absl::NotFoundError(absl::StrCat(folder, ": holds neither ", name, " nor ", name, ".gz"));
}

}  // namespace

absl::StatusOr<LoadedData> ReadIdx(const std::string& images, const std::string& labels) {
  LoadedData data;
  data.source = images;
  ONWARD_ASSIGN_OR_RETURN(Tensor x, ReadIdxFile(images));
  ONWARD_ASSIGN_OR_RETURN(Tensor y, ReadIdxFile(labels));
  if (y.shape().rank() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        labels, ": labels have shape ", y.shape().ToString(), ", expected one number per example"));
  }
  if (x.shape()[0] != y.shape()[0]) {
    return absl::InvalidArgumentError(absl::StrCat(images, " holds ", x.shape()[0],
                                                   " examples but ", labels, " holds ",
                                                   y.shape()[0], " labels"));
  }
  // Grey pictures get their channel axis.
  if (x.shape().rank() == 3) x = x.Reshaped({x.shape()[0], 1, x.shape()[1], x.shape()[2]});
  const double scale = x.dtype() == DType::kUint8 ? 1.0 / 255 : 1;
  data.arrays.push_back({"x", std::move(x), false, scale});
  ONWARD_RETURN_IF_ERROR(AddLabels(std::move(y), Task::kAuto, "y", &data));
  return data;
}

absl::StatusOr<LoadedData> ReadMnist(const std::string& folder, Split split) {
  const std::string half = split == Split::kTrain ? "train" : "t10k";
  ONWARD_ASSIGN_OR_RETURN(const std::string images,
                          FindMnistFile(folder, half + "-images-idx3-ubyte"));
  ONWARD_ASSIGN_OR_RETURN(const std::string labels,
                          FindMnistFile(folder, half + "-labels-idx1-ubyte"));
  return ReadIdx(images, labels);
}

absl::StatusOr<LoadedData> ReadCifar(const std::vector<std::string>& files) {
  std::vector<std::string> contents;
  int64_t count = 0;
  for (const std::string& path : files) {
    ONWARD_ASSIGN_OR_RETURN(std::string bytes, ReadPlainOrGzip(path));
    if (bytes.empty() || bytes.size() % kCifarRecord != 0) {
      return absl::DataLossError(
          absl::StrCat(path, ": ", bytes.size(),
                       " bytes are not a whole number of CIFAR-10 records of ", kCifarRecord));
    }
    count += static_cast<int64_t>(bytes.size()) / kCifarRecord;
    contents.push_back(std::move(bytes));
  }
  LoadedData data;
  data.source = absl::StrJoin(files, ", ");
  Tensor x(DType::kUint8, {count, 3, 32, 32});
  Tensor y(DType::kUint8, {count});
  int64_t row = 0;
  for (size_t f = 0; f < files.size(); ++f) {
    for (size_t at = 0; at < contents[f].size(); at += kCifarRecord, ++row) {
      const char* record = contents[f].data() + at;
      const int label = static_cast<unsigned char>(record[0]);
      if (label > 9) {
        return absl::InvalidArgumentError(absl::StrCat(files[f], ": record ", at / kCifarRecord,
                                                       " has label ", label, ", expected 0 to 9"));
      }
      y.data<uint8_t>()[row] = static_cast<uint8_t>(label);
      std::memcpy(x.data<uint8_t>() + row * kCifarPixels, record + 1, kCifarPixels);
    }
    contents[f] = std::string();
  }
  data.class_names = {"airplane", "automobile", "bird",  "cat",  "deer",
                      "dog",      "frog",       "horse", "ship", "truck"};
  data.arrays.push_back({"x", std::move(x), false, 1.0 / 255});
  ONWARD_RETURN_IF_ERROR(AddLabels(std::move(y), Task::kAuto, "y", &data));
  return data;
}

}  // namespace onward
