// SPDX-License-Identifier: Apache-2.0
// What the numbers of a constant tell: tables that a formula made are no weights.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "training_info/weights/weights.h"

namespace onward {
namespace {

constexpr double kClose = 1e-4;
constexpr double kLargeNegative = -1e3;
constexpr int64_t kShortestGrid = 4;
// Tables are small beside weights; beyond this nobody wrote one by formula.
constexpr int64_t kLargestTable = int64_t{1} << 24;

std::vector<double> Numbers(const Tensor& t) {
  if (t.elements() > kLargestTable) return {};
  auto numbers = ToDoubles(t);
  return numbers.ok() ? *std::move(numbers) : std::vector<double>();
}

// Columns j and j + distance hold a sine and a cosine of the same angles.
bool PairsAt(const std::vector<double>& v, int64_t columns, int64_t distance) {
  const int64_t rows = static_cast<int64_t>(v.size()) / columns;
  for (int64_t first = 0; first + distance < columns; ++first) {
    if ((first / distance) % 2 != 0) continue;
    for (int64_t r = 0; r < rows; ++r) {
      const double a = v[r * columns + first], b = v[r * columns + first + distance];
      if (std::abs(a * a + b * b - 1) > kClose) return false;
    }
  }
  return true;
}

// Steps of `stride` elements over an axis of `size`: equal along every line?
bool EqualSteps(const std::vector<double>& v, int64_t size, int64_t stride) {
  const int64_t lines = static_cast<int64_t>(v.size()) / size;
  bool moves = false;
  for (int64_t line = 0; line < lines; ++line) {
    const int64_t start = line / stride * stride * size + line % stride;
    const double step = v[start + stride] - v[start];
    moves = moves || step != 0;
    for (int64_t i = 1; i < size; ++i) {
      const double expected = v[start] + static_cast<double>(i) * step;
      if (std::abs(v[start + i * stride] - expected) > kClose * (std::abs(step) + 1e-30))
        return false;
    }
  }
  return moves;
}

// In every square of the last two axes: a number that depends on the distance from the
// diagonal, and grows by equal steps on either side of it.
bool GrowsFromDiagonal(const std::vector<double>& v, int64_t size) {
  bool moves = false;
  for (size_t start = 0; start < v.size(); start += static_cast<size_t>(size * size)) {
    const double* m = v.data() + start;
    const double right = m[1] - m[0], down = m[size] - m[0];
    moves = moves || right != 0 || down != 0;
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = 0; j < size; ++j) {
        const double steps = static_cast<double>(std::abs(i - j));
        const double expected = m[0] + steps * (j > i ? right : down);
        const double scale = std::abs(right) + std::abs(down) + 1e-30;
        if (std::abs(m[i * size + j] - expected) > kClose * scale) return false;
      }
    }
  }
  return moves;
}

}  // namespace

bool IsUniform(const Tensor& t) {
  const size_t width = DTypeBits(t.dtype()) / 8;
  if (width == 0 || t.elements() == 0) return false;
  const char* data = t.data<char>();
  for (int64_t i = 1; i < t.elements(); ++i) {
    if (std::memcmp(data, data + i * width, width) != 0) return false;
  }
  return true;
}

bool IsMask(const Tensor& t) {
  if (t.elements() < 2) return false;
  const std::vector<double> v = Numbers(t);
  if (v.empty()) return false;
  if (IsUniform(t)) return v[0] <= kLargeNegative;
  const double other = *std::max_element(
      v.begin(), v.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  if (other != 1 && other > kLargeNegative) return false;
  return std::all_of(v.begin(), v.end(), [&](double x) { return x == 0 || x == other; });
}

bool IsSinusoid(const Tensor& t) {
  const int rank = t.shape().rank();
  if (rank < 2 || t.shape()[rank - 1] < 2 || t.elements() <= t.shape()[rank - 1]) return false;
  const std::vector<double> v = Numbers(t);
  if (v.empty() || IsUniform(t)) return false;
  const int64_t columns = t.shape()[rank - 1];
  // Interleaved; all sines, then all cosines; the same for each of two axes of a picture.
  return PairsAt(v, columns, 1) || (columns % 2 == 0 && PairsAt(v, columns, columns / 2)) ||
         (columns % 4 == 0 && PairsAt(v, columns, columns / 4));
}

bool IsGrid(const Tensor& t) {
  const std::vector<double> v = Numbers(t);
  if (v.empty()) return false;
  const int rank = t.shape().rank();
  if (rank >= 2 && t.shape()[rank - 1] >= kShortestGrid &&
      t.shape()[rank - 1] == t.shape()[rank - 2] && GrowsFromDiagonal(v, t.shape()[rank - 1])) {
    return true;
  }
  int64_t stride = 1;
  for (int axis = rank - 1; axis >= 0; --axis) {
    const int64_t size = t.shape()[axis];
    if (size >= kShortestGrid && EqualSteps(v, size, stride)) return true;
    stride *= size;
  }
  return false;
}

}  // namespace onward
