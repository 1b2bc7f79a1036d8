// SPDX-License-Identifier: Apache-2.0
#include "core/ops/quantize/byte_planes.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace onward {
namespace {

constexpr int64_t kMostPhases = 64;
constexpr int64_t kSmallBytes = 4096;

// Rows of images are short: a call of memcpy costs as much as the copy.
void CopyRow(const uint8_t* from, int64_t n, uint8_t* to) {
  if (n < 32) {
    std::memcpy(to, from, n);
    return;
  }
  const auto copy = [&](int64_t at) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + at),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at)));
  };
  for (int64_t i = 0; i + 32 < n; i += 32) copy(i);
  copy(n - 32);
}

// Nothing is read beyond the last of them.
void CopyEverySecond(const uint8_t* from, int64_t n, uint8_t* to) {
  const __m128i even = _mm_set1_epi16(0xff);
  int64_t i = 0;
  for (; i + 16 < n; i += 16) {
    const auto* pairs = reinterpret_cast<const __m128i*>(from + 2 * i);
    const __m128i a = _mm_and_si128(_mm_loadu_si128(pairs), even);
    const __m128i b = _mm_and_si128(_mm_loadu_si128(pairs + 1), even);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm_packus_epi16(a, b));
  }
  if (n > 16) {  // the last 16, some of them once more, as the second ones of their pairs
    const auto* pairs = reinterpret_cast<const __m128i*>(from + 2 * (n - 16) - 1);
    const __m128i a = _mm_srli_epi16(_mm_loadu_si128(pairs), 8);
    const __m128i b = _mm_srli_epi16(_mm_loadu_si128(pairs + 1), 8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + n - 16), _mm_packus_epi16(a, b));
    return;
  }
  for (; i < n; ++i) to[i] = from[2 * i];
}

}  // namespace

BytePlanes::Axis BytePlanes::AxisOf(const Window& window, int axis) {
  Axis a{.in = 1, .kernel = 1, .stride = 1, .dilation = 1, .pad = 0, .out = 1, .phases = {}};
  if (axis >= 0) {
    a = {.in = window.in[axis],
         .kernel = window.kernel[axis],
         .stride = window.strides[axis],
         .dilation = window.dilations[axis],
         .pad = window.pads_begin[axis],
         .out = window.out[axis],
         .phases = {}};
  }
  return a;
}

std::optional<BytePlanes> BytePlanes::Of(const ConvGeometry& g) {
  const int rank = g.window.rank();
  if (rank > 2) return std::nullopt;
  BytePlanes p;
  p.rows_ = AxisOf(g.window, rank - 2);
  p.columns_ = AxisOf(g.window, rank - 1);
  int64_t expected = 1, made = 1;
  for (Axis* axis : {&p.rows_, &p.columns_}) {
    if (axis->stride > kMostPhases) return std::nullopt;
    axis->phases.assign(axis->stride, -1);
    for (int64_t t = 0; t < std::min(axis->kernel, axis->stride); ++t) {
      int64_t& phase = axis->phases[t * axis->dilation % axis->stride];
      if (phase < 0) phase = axis->phase_count++;
    }
    expected *= axis->in + axis->out + 8;
    made *= axis->length() * axis->phase_count;
    if (made > 16 * expected + kSmallBytes) return std::nullopt;
  }
  p.channels_ = g.in_channels;
  p.rows_out_ = p.rows_.out;
  p.columns_out_ = p.columns_.out;
  p.line_ = p.columns_.length();
  const int64_t plane = p.rows_.length() * p.line_;
  p.channel_bytes_ = plane * p.rows_.phase_count * p.columns_.phase_count;
  p.as_it_is_ = p.rows_.stride == 1 && p.columns_.stride == 1 && p.rows_.pad == 0 &&
                p.columns_.pad == 0 && p.line_ == p.columns_.in && p.rows_.length() == p.rows_.in;
  const int64_t channels = g.in_channels / g.groups;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < p.rows_.kernel; ++i) {
      for (int64_t j = 0; j < p.columns_.kernel; ++j) {
        const int64_t row = i * p.rows_.dilation, column = j * p.columns_.dilation;
        const int64_t phase = p.rows_.phases[row % p.rows_.stride] * p.columns_.phase_count +
                              p.columns_.phases[column % p.columns_.stride];
        p.offsets_.push_back(c * p.channel_bytes_ + phase * plane + row / p.rows_.stride * p.line_ +
                             column / p.columns_.stride);
      }
    }
  }
  return p;
}

// What is not padding of a line in phase `phase`: elements [first, last), from `from` of a row on.
BytePlanes::Run BytePlanes::RunOf(int64_t phase) const {
  const int64_t stride = columns_.stride, missing = columns_.pad - phase;
  const int64_t room = columns_.in + missing;
  Run run;
  run.first = missing <= 0 ? 0 : std::min(line_, (missing + stride - 1) / stride);
  run.last = room <= 0 ? run.first : std::clamp((room + stride - 1) / stride, run.first, line_);
  run.from = run.first * stride - missing;
  return run;
}

void BytePlanes::FillLine(const uint8_t* row, const Run& run, uint8_t padding,
                          uint8_t* line) const {
  for (int64_t i = 0; i < run.first; ++i) line[i] = padding;
  for (int64_t i = run.last; i < line_; ++i) line[i] = padding;
  const int64_t n = run.last - run.first;
  const uint8_t* from = row + run.from;
  uint8_t* to = line + run.first;
  if (columns_.stride == 1) {
    CopyRow(from, n, to);
  } else if (columns_.stride == 2) {
    CopyEverySecond(from, n, to);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * columns_.stride];
  }
}

void BytePlanes::Fill(const uint8_t* image, int64_t begin, int64_t end, uint8_t padding,
                      uint8_t* to) const {
  for (int64_t c = begin; c < end; ++c) {
    const uint8_t* channel = image + c * rows_.in * columns_.in;
    uint8_t* out = to + c * channel_bytes_;
    for (int64_t pi = 0; pi < rows_.stride; ++pi) {
      for (int64_t pj = 0; pj < columns_.stride; ++pj) {
        if (rows_.phases[pi] < 0 || columns_.phases[pj] < 0) continue;
        uint8_t* plane = out + (rows_.phases[pi] * columns_.phase_count + columns_.phases[pj]) *
                                   rows_.length() * line_;
        const Run run = RunOf(pj);
        for (int64_t r = 0; r < rows_.length(); ++r) {
          const int64_t row = r * rows_.stride + pi - rows_.pad;
          if (row < 0 || row >= rows_.in) {
            std::memset(plane + r * line_, padding, line_);
          } else {
            FillLine(channel + row * columns_.in, run, padding, plane + r * line_);
          }
        }
      }
    }
  }
}

}  // namespace onward
