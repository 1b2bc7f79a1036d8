// SPDX-License-Identifier: Apache-2.0
// Weights of two to eight bits with a scale per block, as exporters of language models
// write them. What is constant in a body is computed once, when the model is compiled.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "contrib/microsoft/families.h"

namespace onward::microsoft {
namespace {

// No axis of a weight is longer; products of two are still numbers.
constexpr int64_t kMostElements = int64_t{1} << 30;

// The numbers of `bits` bits in the bytes of the last axis, the low ones first, as uint8 with
// an axis more.
Expr Unpacked(const Expr& bytes, int64_t bits) {
  GraphBuilder& b = bytes.builder();
  if (bits == 8) return Unsqueeze(bytes, {-1});
  std::vector<uint8_t> shifts;
  for (int64_t at = 0; at < 8; at += bits) shifts.push_back(static_cast<uint8_t>(at));
  const Expr shifted = b.Op(
      "BitShift",
      {Unsqueeze(bytes, {-1}),
       b.Constant(Tensor::FromValues<uint8_t>(Shape{static_cast<int64_t>(shifts.size())}, shifts))},
      {{"direction", "RIGHT"}});
  return b.Op(
      "BitwiseAnd",
      {shifted, b.Constant(Tensor::Scalar<uint8_t>(static_cast<uint8_t>((1 << bits) - 1)))});
}

// x with its last `count` axes, however many stand before, replaced by these.
Expr WithLastAxes(const Expr& x, int count, std::vector<int64_t> axes) {
  GraphBuilder& b = x.builder();
  std::vector<int64_t> shape;
  for (int axis = 0; axis < x.rank() - count; ++axis) shape.push_back(x.dim(axis));
  const bool known = std::find(shape.begin(), shape.end(), -1) == shape.end();
  if (x.rank() < count || !known) {
    return Reshape(x, Concat({ShapeOf(x, 0, -count), b.Ints(std::move(axes))}, 0));
  }
  shape.insert(shape.end(), axes.begin(), axes.end());
  return Reshape(x, std::move(shape));
}

bool IsPowerOf2(int64_t x) { return x > 0 && (x & (x - 1)) == 0; }

struct Blocks {
  int64_t rows, columns, size, bits;
  int64_t per_row() const { return (columns + size - 1) / size; }
};

// The zero points of each block [rows, blocks, 1], as numbers of `like`'s type.
Expr ZeroPoints(const Call& call, const Expr& given, const Blocks& blocks, const Expr& like) {
  if (!given.defined()) {
    return call.b().Scalar(static_cast<double>(int64_t{1} << (blocks.bits - 1)), like);
  }
  if (IsFloating(given.dtype())) {
    return Reshape(CastLike(given, like), {blocks.rows, blocks.per_row(), 1});
  }
  if (given.dtype() != DType::kUint8) {
    return call.Fail(absl::StrCat("zero points are ", given.type().ToString(),
                                  ", expected uint8 or the type of the scales"));
  }
  const int64_t bytes = (blocks.per_row() * blocks.bits + 7) / 8;
  const Expr points = Reshape(Unpacked(Reshape(given, {blocks.rows, bytes}), blocks.bits),
                              {blocks.rows, bytes * 8 / blocks.bits});
  return Unsqueeze(CastLike(SliceAxis(points, 1, 0, blocks.per_row()), like), {-1});
}

// Y = A W^T + bias,  W = (B - zero_points) * scales block by block
std::vector<Expr> MatMulNBits(const Call& call) {
  const Blocks blocks = {
      call.RequiredInt("N", 1, kMostElements), call.RequiredInt("K", 1, kMostElements),
      call.RequiredInt("block_size", 1, kMostElements), call.IntIn("bits", 4, 2, 8)};
  if (!call.ok() || !call.Without("weight_prepacked", 0)) return {};
  if (!IsPowerOf2(blocks.bits) || !IsPowerOf2(blocks.size) || blocks.size * blocks.bits % 8 != 0) {
    return call.Refuse(absl::StrCat("blocks of ", blocks.size, " times ", blocks.bits,
                                    " bits are not supported: powers of two, whole bytes"));
  }
  if (call.in(1).dtype() != DType::kUint8) {
    return call.Refuse(
        absl::StrCat("input 1 is ", call.in(1).type().ToString(), ", expected uint8"));
  }
  if (!call.Without(4, "g_idx")) return {};
  const Expr a = call.in(0);
  const Expr numbers =
      Reshape(Unpacked(call.in(1), blocks.bits), {blocks.rows, blocks.per_row(), blocks.size});
  const Expr scales = Reshape(call.in(2), {blocks.rows, blocks.per_row(), 1});
  const Expr zeros = ZeroPoints(call, call.in(3), blocks, scales);
  if (!call.ok()) return {};
  Expr w = Reshape((CastLike(numbers, scales) - zeros) * scales,
                   {blocks.rows, blocks.per_row() * blocks.size});
  if (blocks.per_row() * blocks.size != blocks.columns) w = SliceAxis(w, 1, 0, blocks.columns);
  Expr y = MatMul(a, Transpose(w, {1, 0}));
  if (call.in(5).defined()) y = y + call.in(5);
  return {y};
}

// The values that four bits stand for: floats of four bits, and quantiles of a normal
// distribution (NF4), as bitsandbytes has them.
const std::vector<float>& FourBitValues(bool quantiles) {
  static const auto* const floats = new std::vector<float>{
      0,     0.005208333333f,  0.66666667f,  1,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
      -0.0f, -0.005208333333f, -0.66666667f, -1, -0.33333333f, -0.5f, -0.16666667f, -0.25f};
  static const auto* const normal =
      new std::vector<float>{-1,           -0.6961928f,  -0.52507305f, -0.39491749f,
                             -0.28444138f, -0.18477343f, -0.09105004f, 0,
                             0.0795803f,   0.1609302f,   0.2461123f,   0.33791524f,
                             0.44070983f,  0.5626170f,   0.72295684f,  1};
  return quantiles ? *normal : *floats;
}

// Y = A W^T,  W = table[B] * absmax block by block, over the rows of W one after another
std::vector<Expr> MatMulBnb4(const Call& call) {
  const int64_t rows = call.RequiredInt("N", 1, kMostElements);
  const int64_t columns = call.RequiredInt("K", 1, kMostElements);
  const int64_t size = call.RequiredInt("block_size", 1, kMostElements);
  const bool quantiles = call.RequiredInt("quant_type", 0, 1) == 1;
  if (!call.ok() || !call.Without("transB", 1)) return {};
  if (rows > kMostElements / columns) return call.Refuse("N times K is too large");
  GraphBuilder& b = call.b();
  const Expr bytes = Reshape(call.in(1), {-1, 1});
  // The high bits come first.
  const Expr halves = b.Op(
      "BitwiseAnd",
      {b.Op("BitShift",
            {bytes, b.Constant(Tensor::FromValues<uint8_t>(Shape{2}, std::vector<uint8_t>{4, 0}))},
            {{"direction", "RIGHT"}}),
       b.Constant(Tensor::Scalar<uint8_t>(15))});
  const Expr table = b.Constant(Tensor::FromValues<float>(Shape{16}, FourBitValues(quantiles)));
  const int64_t elements = rows * columns, blocks = (elements + size - 1) / size;
  Expr values = CastLike(Gather(table, Cast(Reshape(halves, {-1}), DType::kInt64)), call.in(2));
  values = SliceAxis(values, 0, 0, elements);
  if (blocks * size != elements) {
    values = b.Op("Pad", {values, b.Ints({0, blocks * size - elements})});
  }
  Expr w = Reshape(values, {blocks, size}) * Reshape(call.in(2), {blocks, 1});
  w = SliceAxis(Reshape(w, {-1}), 0, 0, elements);
  return {MatMul(call.in(0), Transpose(Reshape(w, {rows, columns}), {1, 0}))};
}

// output = gather of (data - zero_points) * scales along gather_axis, blocks along the last
std::vector<Expr> GatherBlockQuantized(const Call& call) {
  // The standard gathers no elements of four bits.
  const auto whole = [](const Expr& x) {
    const bool small = x.defined() && (x.dtype() == DType::kInt4 || x.dtype() == DType::kUint4);
    return small ? Cast(x, DType::kInt8) : x;
  };
  const Expr data = whole(call.in(0)), scales = call.in(2), zeros = whole(call.in(3));
  if (!call.HasRank(0, {2, 3, 4}) || !call.HasRank(2, {data.rank()})) return {};
  const int rank = data.rank();
  const int64_t size = call.IntIn("block_size", 128, 16, kMostElements);
  const bool packed = data.dtype() == DType::kUint8;
  const int64_t bits = packed ? call.IntIn("bits", 4, 2, 8) : 8;
  const int64_t axis = call.IntIn("gather_axis", 0, -rank, rank - 1);
  const int64_t along = call.IntIn("quantize_axis", 1, -rank, rank - 1);
  if (!call.ok() || !IsPowerOf2(bits) || !IsPowerOf2(size)) {
    return call.Refuse("bits and block_size have to be powers of two");
  }
  if ((along + rank) % rank != rank - 1 || (axis + rank) % rank != 0) {
    return call.Refuse("only gather_axis 0 and the last axis as quantize_axis are supported");
  }
  const auto rows = [&](const Expr& table) { return Gather(table, call.in(1), 0); };
  const auto unpacked = [&](const Expr& x) {
    return packed ? WithLastAxes(Unpacked(x, bits), 2, {-1}) : x;
  };
  const Expr scale = rows(scales);
  Expr q = CastLike(unpacked(rows(data)), scales);
  if (!call.ok()) return {};
  const int64_t length = data.dim(-1) * 8 / bits, blocks = scales.dim(-1);
  if (length < 1 || blocks < 1 || (length - 1) / size + 1 != blocks) {
    return call.Refuse(absl::StrCat("blocks of ", size, " with scales ", scales.type().ToString(),
                                    " do not fit data ", data.type().ToString()));
  }
  if (blocks * size != length) {
    q = call.b().Op("Pad",
                    {q, call.b().Ints({0, blocks * size - length}), {}, call.b().Ints({-1})});
  }
  Expr zero = call.b().Scalar(packed ? static_cast<double>(1 << (bits - 1)) : 0, scales);
  if (zeros.defined()) {
    const Expr points = SliceAxis(unpacked(rows(zeros)), -1, 0, blocks);
    zero = Unsqueeze(CastLike(points, scales), {-1});
  }
  const Expr values =
      WithLastAxes((WithLastAxes(q, 1, {blocks, size}) - zero) * Unsqueeze(scale, {-1}), 2, {-1});
  return {blocks * size == length ? values : SliceAxis(values, -1, 0, length)};
}

}  // namespace

void RegisterPackedWeights(FunctionLibrary& library) {
  library.Add("MatMulNBits", Define(MatMulNBits, 3, "TIT..T"), kDomain);
  library.Add("MatMulBnb4", Define(MatMulBnb4, 3, "TIT"), kDomain);
  library.Add("GatherBlockQuantized", Define(GatherBlockQuantized, 3, ".IT."), kDomain);
}

}  // namespace onward::microsoft
