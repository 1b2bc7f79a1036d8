// SPDX-License-Identifier: Apache-2.0
// Gradient rules: fourier transforms and what is made of them. Transforms are linear, so their
// gradients are transforms again. A DFT is emitted on [lines, n, parts] alone, whose second axis
// is the default in every opset.
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "autograd/functions.h"
#include "autograd/rule.h"
#include "autograd/shape_expr.h"
#include "core/tensor/tensor.h"

namespace onward {
namespace {

// An int64 scalar, whatever integer tensor of one element it comes from.
Expr ScalarInt(const Expr& e) {
  Expr wide = e.dtype() == DType::kInt64 ? e : Cast(e, DType::kInt64);
  return wide.rank() == 0 ? wide : Reshape(wide, std::vector<int64_t>{});
}

// The first n of an axis; n may be more than there are.
Expr FirstOf(const Expr& e, const Expr& n, int64_t axis) {
  GraphBuilder& b = e.builder();
  Expr end = n.rank() == 1 ? n : Unsqueeze(n, {0});
  return Slice(e, b.Ints({0}), end, b.Ints({axis}));
}

// An axis of a value that is transformed: the value turned to [lines, n, parts], and back.
class Lines {
 public:
  Lines(const Expr& like, int axis) : like_(like), axis_(axis) {}

  // The axis, and what a value has along it, as vectors of one element; that as a scalar.
  Expr axis() const { return like_.builder().Ints({axis_}); }
  Expr Along(const Expr& e) const { return DimVector(e, axis_); }
  Expr CountAlong(const Expr& e) const { return DimScalar(e, axis_); }
  Expr From(const Expr& e) const {
    const int rank = like_.rank();
    Expr turned = IsLast() ? e : Transpose(e, Swapped());
    if (rank == 3) return turned;
    return ReshapeTo(turned, {Rest(), DimOf(turned, rank - 2), DimOf(turned, rank - 1)});
  }
  // The same for a value whose axis and parts have other sizes than `like`.
  Expr To(const Expr& lines) const {
    const int rank = like_.rank();
    Expr whole = lines;
    if (rank != 3) {
      std::vector<Extent> shape;
      for (int i = 0; i + 2 < rank; ++i) shape.push_back(DimOf(like_, i == axis_ ? rank - 2 : i));
      shape.push_back(DimOf(lines, 1));
      shape.push_back(DimOf(lines, 2));
      whole = ReshapeTo(lines, shape);
    }
    return IsLast() ? whole : Transpose(whole, Swapped());
  }

 private:
  bool IsLast() const { return axis_ == like_.rank() - 2; }
  // The axis and the last one before the parts, exchanged.
  std::vector<int64_t> Swapped() const {
    std::vector<int64_t> perm(like_.rank());
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[axis_], perm[perm.size() - 2]);
    return perm;
  }

  Expr like_;
  int axis_;
};

// The same where only the data tell which axis it is: with the axes before it as one, and those
// behind it.
class LinesAtRunTime {
 public:
  LinesAtRunTime(const Expr& like, const Expr& axis) : shape_(ShapeVector(like)) {
    GraphBuilder& b = like.builder();
    const Expr given = Reshape(ScalarInt(axis), {1}), rank = SizeOf(shape_);
    axis_ = Where(Less(given, b.Ints({0})), given + rank, given);
    parts_ = Reshape(rank - b.Int(1), {1});
    before_ = Slice(shape_, b.Ints({0}), axis_, b.Ints({0}));
    behind_ = Slice(shape_, axis_ + b.Ints({1}), parts_, b.Ints({0}));
  }

  Expr axis() const { return axis_; }
  Expr Along(const Expr& e) const { return Gather(ShapeVector(e), axis_); }
  Expr CountAlong(const Expr& e) const { return Squeeze(Along(e), {0}); }
  Expr From(const Expr& e) const {
    const Expr before = ProductOf(before_), behind = ProductOf(behind_);
    const Expr n = Along(e), parts = Gather(ShapeVector(e), parts_);
    const Expr apart = Reshape(e, Concat({before, n, behind, parts}, 0));
    return Reshape(Transpose(apart, {0, 2, 1, 3}), Concat({before * behind, n, parts}, 0));
  }
  Expr To(const Expr& lines) const {
    const Expr n = DimVector(lines, 1), parts = DimVector(lines, 2);
    const Expr apart =
        Reshape(lines, Concat({ProductOf(before_), ProductOf(behind_), n, parts}, 0));
    return Reshape(Transpose(apart, {0, 2, 1, 3}), Concat({before_, n, behind_, parts}, 0));
  }

 private:
  Expr shape_, axis_, parts_, before_, behind_;
};

Expr Transformed(const Expr& lines, const Expr& n, bool inverse, bool onesided = false) {
  return lines.builder().Op("DFT", {lines, n},
                            {{"inverse", inverse ? 1 : 0}, {"onesided", onesided ? 1 : 0}});
}

// None where it is an input whose value, or an axis of a rank that, nothing tells beforehand.
std::optional<int> TransformedAxis(const Vjp& v) {
  int64_t axis = v.attr("axis", -2);
  if (v.has_x(2)) {
    const Tensor* t = v.b().ConstantOf(v.node().inputs[2]);
    const absl::StatusOr<std::vector<int64_t>> given =
        t == nullptr ? absl::NotFoundError("") : ToInts(*t);
    if (!given.ok() || given->size() != 1) return std::nullopt;
    axis = given->front();
  }
  const absl::StatusOr<int> normal = NormalizeAxis(axis, v.x(0).rank());
  if (!normal.ok() || v.x(0).rank() < 2) return std::nullopt;
  return *normal;
}

// With e(t) = exp(2 pi i t), and dy as complex numbers:
//   y_k = sum of x_j e(-jk/n)      dx_j = sum of dy_k e(jk/n), n times the inverse transform
//   y_j = sum of x_k e(jk/n) / n   dx_k = sum of dy_j e(-jk/n) / n
// A spectrum that is cut to one side has zeros in the rest, which the transform adds; real x
// have real parts alone. What a length cuts off has no gradient, what it adds is dropped.
template <typename AnyLines>
Expr TransformGrad(const Vjp& v, const AnyLines& lines, const Expr& n) {
  const bool inverse = v.attr("inverse", 0) != 0;
  Expr dx = Transformed(lines.From(v.dy()), n, !inverse);
  Expr factor = CastLike(n, dx);
  return inverse ? dx / factor : dx * factor;
}

// y_j = (Re x_0 + sum over 0 < k < n/2 of 2 Re(x_k e(jk/n)) + Re(x_(n/2)) e(j/2)) / n
// dx_k = c_k / n * sum of dy_j e(-jk/n) with c = 1 at 0 and n/2, else 2
template <typename AnyLines>
Expr RealInverseGrad(const Vjp& v, const AnyLines& lines, const Expr& n) {
  GraphBuilder& b = v.b();
  Expr dx = Transformed(lines.From(v.dy()), n, /*inverse=*/false, /*onesided=*/true);
  Expr k = CountTo(DimScalar(dx, 1));
  Expr single = Or(Equal(k, b.Int(0)), Equal(k + k, n));
  Expr c = Where(single, b.Scalar(1, dx), b.Scalar(2, dx)) / CastLike(n, dx);
  return dx * Unsqueeze(c, {1});
}

template <typename AnyLines>
Grads DftGrads(const Vjp& v, const AnyLines& lines) {
  const bool real_inverse = v.attr("inverse", 0) != 0 && v.attr("onesided", 0) != 0;
  const Expr n = v.has_x(1) ? ScalarInt(v.x(1)) : lines.CountAlong(real_inverse ? v.y() : v.x(0));
  Expr dx = real_inverse ? RealInverseGrad(v, lines, n) : TransformGrad(v, lines, n);
  dx = lines.To(FirstOf(dx, DimVector(v.x(0), -1), 2));
  if (v.has_x(1) || real_inverse) {
    // Pads that are negative cut.
    Expr more = lines.Along(v.x(0)) - lines.Along(dx);
    dx = v.b().Op("Pad", {dx, Concat({v.b().Ints({0}), more}, 0), Expr(), lines.axis()});
  }
  return {WithShapeOf(dx, v.x(0))};
}

Grads DftVjp(const Vjp& v) {
  if (const std::optional<int> axis = TransformedAxis(v)) {
    return DftGrads(v, Lines(v.x(0), *axis));
  }
  const Expr axis = v.has_x(2) ? v.x(2) : v.b().Int(v.attr("axis", -2));
  return DftGrads(v, LinesAtRunTime(v.x(0), axis));
}

// y[b, f, k] = sum of s[b, f*step + j] w[j] e(-jk/n). With g[b, f, j] the gradient of the
// windowed frames, ds = g * w added up where the frames overlap, dw = sum of g * frames.
Grads StftVjp(const Vjp& v) {
  GraphBuilder& b = v.b();
  const bool windowed = v.has_x(2);
  const Expr signal = OfRank(v.x(0), 3);
  if (signal.rank() != 3) {
    return {FailAt(b, v.node(), "the signal is not [batch, length, 1 or 2]")};
  }
  Expr n = v.has_x(3) ? ScalarInt(v.x(3)) : windowed ? DimScalar(v.x(2), 0) : DimScalar(signal, 1);
  Expr frames = CountTo(DimScalar(v.dy(), 1));
  Expr at = Unsqueeze(frames * ScalarInt(v.x(1)), {1}) + Unsqueeze(CountTo(n), {0});
  Expr spectra = ReshapeTo(v.dy(), {Rest(), DimOf(v.dy(), 2), Fixed(2)});
  Expr g = Transformed(spectra, n, /*inverse=*/true);
  g = FirstOf(g * CastLike(n, g), DimVector(signal, -1), 2);
  g = ReshapeTo(g, {DimOf(v.dy(), 0), DimOf(v.dy(), 1), DimOf(g, 1), DimOf(signal, 2)});
  Grads grads(v.inputs());
  if (v.needs(0)) {
    Expr parts = windowed ? g * Unsqueeze(v.x(2), {1}) : g;
    grads[0] =
        WithShapeOf(b.Op("GatherGrad", {parts, at, signal}, {{"axis", 1}}, kOnwardDomain), v.x(0));
  }
  if (windowed && v.needs(2)) {
    grads[2] = ReduceSum(g * Gather(signal, at, 1), {0, 1, 3}, /*keepdims=*/false);
  }
  return grads;
}

}  // namespace

void RegisterSignalRules(RuleTable& table) {
  table.Add("DFT", DftVjp);
  table.Add("STFT", StftVjp);
  for (const char* op : {"BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix"}) {
    table.AddZero(op);
  }
}

}  // namespace onward
