// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/npy.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/base/atomic_file.h"
#include "core/base/status.h"
#include "core/base/utf8.h"
#include "data/file_bytes.h"

namespace onward {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kLongestHeader = size_t{1} << 20;

void SwapBytes(void* data, size_t bytes, int unit) {
  if (unit <= 1) return;
  char* p = static_cast<char*>(data);
  for (size_t i = 0; i + unit <= bytes; i += unit) std::reverse(p + i, p + i + unit);
}

// Code points of UTF-8 text; a wrong byte stands for itself.
std::vector<uint32_t> ToCodePoints(absl::string_view text) {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < text.size();) {
    const unsigned char lead = text[i];
    const int more = lead >= 0xf0 && lead < 0xf8 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    bool whole = more > 0 && lead < 0xf8 && i + more < text.size();
    uint32_t c = lead & (0x3f >> more);
    for (int k = 1; whole && k <= more; ++k) {
      whole = (text[i + k] & 0xc0) == 0x80;
      c = (c << 6) | (text[i + k] & 0x3f);
    }
    out.push_back(whole ? c : lead);
    i += whole ? more + 1 : 1;
  }
  return out;
}

absl::StatusOr<Tensor> ReadStrings(const NpyArray& array) {
  const NpyHeader& h = array.header;
  ONWARD_ASSIGN_OR_RETURN(std::string bytes, array.elements.ReadAll());
  SwapBytes(bytes.data(), bytes.size(), h.swap_unit);
  Tensor t(DType::kString, h.shape);
  std::string* out = t.data<std::string>();
  for (int64_t i = 0; i < t.elements(); ++i) {
    const char* item = bytes.data() + i * h.item_bytes;
    if (h.utf32) {
      for (int k = 0; k < h.item_bytes; k += 4) {
        uint32_t c;
        std::memcpy(&c, item + k, 4);
        if (c == 0) break;
        AppendUtf8(c, &out[i]);
      }
    } else {
      out[i].assign(item, strnlen(item, h.item_bytes));
    }
  }
  return t;
}

// `t` holds the elements of `shape` with the first axis fastest.
Tensor FromFortranOrder(const Tensor& t, const Shape& shape, size_t item) {
  Tensor out(t.dtype(), shape);
  const int rank = shape.rank();
  Shape::Dims index(rank, 0);
  Shape::Dims strides(rank, 1);
  for (int a = 1; a < rank; ++a) strides[a] = strides[a - 1] * shape[a - 1];
  const bool strings = t.dtype() == DType::kString;
  int64_t from = 0;
  for (int64_t to = 0; to < shape.elements(); ++to) {
    if (strings) {
      out.data<std::string>()[to] = t.data<std::string>()[from];
    } else {
      std::memcpy(out.data<char>() + to * item, t.data<char>() + from * item, item);
    }
    for (int a = rank - 1; a >= 0; --a) {
      from += strides[a];
      if (++index[a] < shape[a]) break;
      from -= strides[a] * shape[a];
      index[a] = 0;
    }
  }
  return out;
}

// Memory is taken only where what follows the header agrees with what it claims.
absl::Status CheckElements(const NpyHeader& h, absl::string_view name, uint64_t available) {
  auto elements = CheckedElements(h.shape.dims());
  if (!elements.ok()) return NpyError(name, elements.status().message());
  const uint64_t need = static_cast<uint64_t>(*elements) * static_cast<uint64_t>(h.item_bytes);
  if (*elements != 0 &&
      need / static_cast<uint64_t>(*elements) != static_cast<uint64_t>(h.item_bytes)) {
    return NpyError(name, "its shape is too large");
  }
  if (available != need) {
    return absl::DataLossError(
        absl::StrCat(name, ": ", available < need ? "is truncated" : "has bytes left over",
                     ": shape ", h.shape.ToString(), " of ", DTypeName(h.dtype), " takes ", need,
                     " bytes, found ", available));
  }
  return absl::OkStatus();
}

// Elements as they are stored, in place: to this machine's order, bools to 0 and 1.
void Mend(const NpyHeader& h, void* elements, size_t bytes) {
  SwapBytes(elements, bytes, h.swap_unit);
  if (h.dtype != DType::kBool) return;
  unsigned char* p = static_cast<unsigned char*>(elements);
  for (size_t i = 0; i < bytes; ++i) p[i] = p[i] != 0;
}

absl::StatusOr<Tensor> ReadTensor(const NpyArray& array) {
  const NpyHeader& h = array.header;
  const uint64_t need = array.elements.size();
  // Zero-width strings take no bytes in the file but do take memory.
  const bool strings = h.dtype == DType::kString;
  ONWARD_RETURN_IF_ERROR(CheckFitsInMemory(
      array.elements.name(),
      strings ? static_cast<uint64_t>(h.shape.elements()) * sizeof(std::string) : need));
  if (strings) {
    ONWARD_ASSIGN_OR_RETURN(Tensor t, ReadStrings(array));
    return h.fortran ? FromFortranOrder(t, h.shape, 0) : t;
  }
  Tensor t(h.dtype, h.shape);
  ONWARD_RETURN_IF_ERROR(array.elements.Read(0, need, t.raw()));
  Mend(h, t.raw(), need);
  return h.fortran && h.shape.rank() > 1 ? FromFortranOrder(t, h.shape, h.item_bytes) : t;
}

struct Written {
  std::string descr;
  std::string bytes;
};

// Elements narrower than a byte, one byte each.
Written Widen(const Tensor& t) {
  const int bits = DTypeBits(t.dtype());
  const bool is_signed = t.dtype() == DType::kInt4 || t.dtype() == DType::kInt2;
  Written w{is_signed ? "|i1" : "|u1", std::string(t.elements(), '\0')};
  for (int64_t i = 0; i < t.elements(); ++i) {
    const int64_t bit = i * bits;
    int v = (t.data<uint8_t>()[bit / 8] >> (bit % 8)) & ((1 << bits) - 1);
    if (is_signed && v >= 1 << (bits - 1)) v -= 1 << bits;
    w.bytes[i] = static_cast<char>(v);
  }
  return w;
}

Written FromStrings(const Tensor& t) {
  std::vector<std::vector<uint32_t>> items;
  size_t longest = 1;
  for (const std::string& s : t.values<std::string>()) {
    items.push_back(ToCodePoints(s));
    longest = std::max(longest, items.back().size());
  }
  Written w{absl::StrCat("<U", longest), std::string(items.size() * longest * 4, '\0')};
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].empty()) continue;
    std::memcpy(w.bytes.data() + i * longest * 4, items[i].data(), items[i].size() * 4);
  }
  return w;
}

std::optional<std::string> DescrOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat: return "<f4";
    case DType::kDouble: return "<f8";
    case DType::kFloat16: return "<f2";
    case DType::kUint8: return "|u1";
    case DType::kInt8: return "|i1";
    case DType::kUint16: return "<u2";
    case DType::kInt16: return "<i2";
    case DType::kUint32: return "<u4";
    case DType::kInt32: return "<i4";
    case DType::kUint64: return "<u8";
    case DType::kInt64: return "<i8";
    case DType::kBool: return "|b1";
    case DType::kComplex64: return "<c8";
    case DType::kComplex128: return "<c16";
    default: return std::nullopt;
  }
}

absl::StatusOr<Written> ToWritten(const Tensor& t) {
  if (const auto descr = DescrOf(t.dtype())) {
    return Written{*descr, std::string(t.data<char>(), t.bytes())};
  }
  switch (t.dtype()) {
    case DType::kString: return FromStrings(t);
    case DType::kInt4:
    case DType::kUint4:
    case DType::kInt2:
    case DType::kUint2: return Widen(t);
    case DType::kBFloat16: {
      Written w{"<f4", std::string(t.elements() * sizeof(float), '\0')};
      for (int64_t i = 0; i < t.elements(); ++i) {
        const float v = t.data<BFloat16>()[i];
        std::memcpy(w.bytes.data() + i * sizeof(float), &v, sizeof(float));
      }
      return w;
    }
    default:
      return absl::UnimplementedError(absl::StrCat("NumPy has no type for ", DTypeName(t.dtype()),
                                                   "; cast the tensor to float first"));
  }
}

}  // namespace

absl::StatusOr<NpyArray> OpenNpy(const StoredBytes& file) {
  const std::string& name = file.name();
  const uint64_t total = file.size();
  unsigned char lead[12];
  if (total < 10) return NpyError(name, absl::StrCat("it has only ", total, " bytes"));
  ONWARD_RETURN_IF_ERROR(file.Read(0, 8, lead));
  if (absl::string_view(reinterpret_cast<char*>(lead), 6) != kMagic) {
    return NpyError(
        name, absl::StrCat("it starts with ", FirstBytes({reinterpret_cast<char*>(lead), 6}, 6),
                           ", expected 93 4E 55 4D 50 59"));
  }
  const int version = lead[6];
  if (version < 1 || version > 3) {
    return NpyError(name, absl::StrCat("format version ", version, ", known are 1 to 3"));
  }
  const size_t length_bytes = version == 1 ? 2 : 4;
  if (total < 8 + length_bytes) return NpyError(name, "its header is cut off");
  ONWARD_RETURN_IF_ERROR(file.Read(8, length_bytes, lead + 8));
  uint64_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) length |= uint64_t{lead[8 + i]} << (8 * i);
  const uint64_t left = total - 8 - length_bytes;
  if (length > left) return NpyError(name, "its header is cut off");
  if (length > kLongestHeader) {
    return NpyError(name, absl::StrCat("a header of ", length, " bytes"));
  }
  std::string text(length, '\0');
  ONWARD_RETURN_IF_ERROR(file.Read(8 + length_bytes, text.size(), text.data()));
  NpyArray array;
  ONWARD_ASSIGN_OR_RETURN(array.header, ParseNpyHeader(text, name));
  ONWARD_RETURN_IF_ERROR(CheckElements(array.header, name, left - length));
  array.elements = file.Part(total - (left - length), left - length, name);
  return array;
}

absl::StatusOr<Rows> NpyRows(const NpyArray& array) {
  const NpyHeader& h = array.header;
  const bool in_order = !h.fortran || h.shape.rank() == 1;
  if (h.dtype == DType::kString || h.shape.rank() == 0 || !in_order) {
    ONWARD_ASSIGN_OR_RETURN(Tensor all, ReadTensor(array));
    return Rows(std::move(all));
  }
  Shape row(h.shape.dims().subspan(1));
  const uint64_t bytes = static_cast<uint64_t>(row.elements() * h.item_bytes);
  ConvertBytes convert;
  if (h.swap_unit > 1 || h.dtype == DType::kBool) {
    convert = [h, bytes](const char* from, int64_t, void* to) {
      std::memcpy(to, from, bytes);
      Mend(h, to, bytes);
    };
  }
  return StoredRows(array.elements, {0, bytes, bytes}, h.shape[0], h.dtype, std::move(row),
                    std::move(convert));
}

absl::StatusOr<Tensor> ParseNpy(absl::string_view bytes, absl::string_view name) {
  ONWARD_ASSIGN_OR_RETURN(const NpyArray array,
                          OpenNpy(StoredBytes::Viewing(bytes, std::string(name))));
  return ReadTensor(array);
}

absl::StatusOr<Tensor> ReadNpy(const std::string& path) {
  ONWARD_ASSIGN_OR_RETURN(const StoredBytes file, StoredBytes::Open(path));
  ONWARD_ASSIGN_OR_RETURN(const NpyArray array, OpenNpy(file));
  return ReadTensor(array);
}

absl::StatusOr<std::string> SerializeNpy(const Tensor& tensor) {
  ONWARD_ASSIGN_OR_RETURN(const Written w, ToWritten(tensor));
  const Shape& shape = tensor.shape();
  std::string header =
      absl::StrCat("{'descr': '", w.descr, "', 'fortran_order': False, 'shape': (",
                   absl::StrJoin(shape, ", "), shape.rank() == 1 ? "," : "", "), }");
  // Elements begin at a multiple of 64 bytes, as numpy.save has it.
  const size_t lead = kMagic.size() + 4;
  header.append(63 - (lead + header.size()) % 64, ' ');
  header.push_back('\n');
  const size_t n = header.size();
  std::string out = absl::StrCat(kMagic, absl::string_view("\x01\x00", 2));
  out.push_back(static_cast<char>(n & 0xff));
  out.push_back(static_cast<char>(n >> 8));
  return absl::StrCat(out, header, w.bytes);
}

absl::Status WriteNpy(const std::string& path, const Tensor& tensor) {
  auto bytes = SerializeNpy(tensor);
  if (!bytes.ok()) return Annotate(bytes.status(), path);
  return WriteFileAtomically(path, *bytes);
}

absl::StatusOr<NpzFile> NpzFile::Open(const std::string& path) {
  NpzFile npz;
  ONWARD_ASSIGN_OR_RETURN(npz.file_, StoredBytes::Open(path));
  ONWARD_ASSIGN_OR_RETURN(std::vector<ZipEntry> entries, ListZip(npz.file_));
  for (ZipEntry& entry : entries) {
    absl::string_view name = entry.name;
    if (!absl::ConsumeSuffix(&name, ".npy")) continue;
    if (std::find(npz.names_.begin(), npz.names_.end(), name) != npz.names_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": holds two arrays named '", name, "'"));
    }
    npz.names_.emplace_back(name);
    npz.entries_.push_back(std::move(entry));
  }
  if (npz.names_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": holds no .npy arrays"));
  }
  return npz;
}

absl::StatusOr<NpyArray> NpzFile::Array(size_t index) const {
  const ZipEntry& entry = entries_[index];
  ONWARD_ASSIGN_OR_RETURN(
      const StoredBytes unpacked,
      OpenZipEntry(file_, entry, absl::StrCat(file_.name(), " (", entry.name, ")")));
  return OpenNpy(unpacked);
}

absl::StatusOr<std::vector<std::pair<std::string, Tensor>>> ReadNpz(const std::string& path) {
  ONWARD_ASSIGN_OR_RETURN(const NpzFile npz, NpzFile::Open(path));
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (size_t i = 0; i < npz.names().size(); ++i) {
    ONWARD_ASSIGN_OR_RETURN(const NpyArray array, npz.Array(i));
    ONWARD_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(array));
    tensors.emplace_back(npz.names()[i], std::move(tensor));
  }
  return tensors;
}

}  // namespace onward
