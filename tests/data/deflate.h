// SPDX-License-Identifier: Apache-2.0
// Compressed files for the readers' tests.
#ifndef ONWARD_TESTS_DATA_DEFLATE_H_
#define ONWARD_TESTS_DATA_DEFLATE_H_

#include <zlib.h>

#include <string>

namespace onward {

inline std::string Deflate(const std::string& bytes, int window_bits) {
  z_stream z{};
  deflateInit2(&z, 9, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, bytes.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

inline std::string Gzip(const std::string& bytes) { return Deflate(bytes, 15 + 16); }

}  // namespace onward

#endif  // ONWARD_TESTS_DATA_DEFLATE_H_
