// SPDX-License-Identifier: Apache-2.0
// IDX files (MNIST's format) and CIFAR-10's binary records.
#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "data/file_bytes.h"
#include "data/readers.h"

namespace onward {
namespace {

constexpr uint64_t kCifarPixels = 3 * 32 * 32;
constexpr uint64_t kCifarRecord = 1 + kCifarPixels;  // label, planes
constexpr int kMostIdxAxes = 8;
constexpr uint64_t kLongestIdxHeader = 4 + 4 * kMostIdxAxes;

uint32_t Big(const char* p, int count) {
  uint32_t v = 0;
  for (int i = 0; i < count; ++i) v = v << 8 | static_cast<unsigned char>(p[i]);
  return v;
}

// Big-endian numbers of IDX's other element types, as floats.
void ToFloats(int code, const char* p, int64_t elements, float* to) {
  for (int64_t i = 0; i < elements; ++i) {
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
    to[i] = v;
  }
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
absl::StatusOr<Rows> OpenIdx(const std::string& path) {
  ONWARD_ASSIGN_OR_RETURN(StoredBytes file, StoredBytes::OpenPlainOrGzip(path));
  ONWARD_ASSIGN_OR_RETURN(file, file.HeldIfSmall());
  std::string start(static_cast<size_t>(std::min<uint64_t>(file.size(), kLongestIdxHeader)), '\0');
  ONWARD_RETURN_IF_ERROR(file.Read(0, start.size(), start.data()));
  const int code = start.size() < 4 ? 0 : static_cast<unsigned char>(start[2]);
  const int rank = start.size() < 4 ? 0 : static_cast<unsigned char>(start[3]);
  if (start.size() < 4 || start[0] != 0 || start[1] != 0 || ItemBytes(code) == 0 || rank < 1 ||
      rank > kMostIdxAxes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is not an IDX file (starts with ", FirstBytes(start),
                     "; images start with 00 00 08 03, labels with 00 00 08 01)"));
  }
  const size_t begin = 4 + 4 * static_cast<size_t>(rank);
  if (start.size() < begin) {
    return absl::DataLossError(absl::StrCat(path, ": its IDX header is truncated"));
  }
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.push_back(Big(start.data() + 4 + 4 * i, 4));
  const auto elements = CheckedElements(shape.dims());
  if (!elements.ok()) return Annotate(elements.status(), path);
  const uint64_t need = static_cast<uint64_t>(*elements) * ItemBytes(code);
  const uint64_t found = file.size() - begin;
  if (need != found) {
    return absl::DataLossError(absl::StrCat(
        path, ": ", found < need ? "is truncated" : "has bytes left over", ": its header says ",
        shape.ToString(), ", which takes ", need, " bytes, found ", found));
  }
  Shape row(shape.dims().subspan(1));
  const uint64_t row_bytes = static_cast<uint64_t>(row.elements()) * ItemBytes(code);
  const StoredLayout layout{begin, row_bytes, row_bytes};
  if (code == 0x08) return StoredRows(file, layout, shape[0], DType::kUint8, std::move(row));
  return StoredRows(file, layout, shape[0], DType::kFloat, std::move(row),
                    [code](const char* from, int64_t count, void* to) {
                      ToFloats(code, from, count, static_cast<float*>(to));
                    });
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

absl::Status AppendCifarLabels(const StoredBytes& file, std::vector<uint8_t>* labels) {
  for (uint64_t record = 0; record < file.size() / kCifarRecord; ++record) {
    uint8_t label = 0;
    ONWARD_RETURN_IF_ERROR(file.Read(record * kCifarRecord, 1, &label));
    if (label > 9) {
      return absl::InvalidArgumentError(absl::StrCat(file.name(), ": record ", record,
                                                     " has label ", label, ", expected 0 to 9"));
    }
    labels->push_back(label);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoadedData> ReadIdx(const std::string& images, const std::string& labels) {
  LoadedData data;
  data.source = images;
  ONWARD_ASSIGN_OR_RETURN(Rows x, OpenIdx(images));
  ONWARD_ASSIGN_OR_RETURN(const Rows y, OpenIdx(labels));
  if (y->shape().rank() != 0) {
    return absl::InvalidArgumentError(absl::StrCat(labels, ": an example's labels have shape ",
                                                   y->shape().ToString(),
                                                   ", expected one number per example"));
  }
  if (x->count() != y->count()) {
    return absl::InvalidArgumentError(absl::StrCat(images, " holds ", x->count(), " examples but ",
                                                   labels, " holds ", y->count(), " labels"));
  }
  // Grey pictures get their channel axis.
  if (x->shape().rank() == 2) x = ReshapedRows(x, {1, x->shape()[0], x->shape()[1]});
  const double scale = x->dtype() == DType::kUint8 ? 1.0 / 255 : 1;
  data.arrays.push_back({"x", std::move(x), false, scale});
  ONWARD_RETURN_IF_ERROR(AddLabels(y, Task::kAuto, "y", &data));
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
  std::vector<Rows> parts;
  std::vector<uint8_t> labels;
  for (const std::string& path : files) {
    ONWARD_ASSIGN_OR_RETURN(StoredBytes file, StoredBytes::OpenPlainOrGzip(path));
    ONWARD_ASSIGN_OR_RETURN(file, file.HeldIfSmall());
    if (file.size() == 0 || file.size() % kCifarRecord != 0) {
      return absl::DataLossError(
          absl::StrCat(path, ": ", file.size(),
                       " bytes are not a whole number of CIFAR-10 records of ", kCifarRecord));
    }
    const int64_t count = static_cast<int64_t>(file.size() / kCifarRecord);
    parts.push_back(
        StoredRows(file, {1, kCifarRecord, kCifarPixels}, count, DType::kUint8, {3, 32, 32}));
    ONWARD_RETURN_IF_ERROR(AppendCifarLabels(file, &labels));
  }
  LoadedData data;
  data.source = absl::StrJoin(files, ", ");
  data.class_names = {"airplane", "automobile", "bird",  "cat",  "deer",
                      "dog",      "frog",       "horse", "ship", "truck"};
  data.arrays.push_back({"x", ConcatenatedRows(std::move(parts)), false, 1.0 / 255});
  ONWARD_RETURN_IF_ERROR(
      AddLabels(Tensor::FromValues<uint8_t>({static_cast<int64_t>(labels.size())}, labels),
                Task::kAuto, "y", &data));
  return data;
}

}  // namespace onward
