// SPDX-License-Identifier: Apache-2.0
#include "core/base/size_text.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace onward::size_text_test {

TEST(SizeText, HasTheUnitThatFits) {
  for (const auto& [bytes, text] :
       std::vector<std::pair<int64_t, const char*>>{{0, "0 bytes"},
                                                    {1, "1 byte"},
                                                    {1023, "1023 bytes"},
                                                    {1024, "1.0 kB"},
                                                    {1536, "1.5 kB"},
                                                    {(1 << 20) - 1, "1.0 MB"},
                                                    {18769510, "17.9 MB"},
                                                    {int64_t{3} << 30, "3.0 GB"},
                                                    {int64_t{5000} << 30, "5000.0 GB"}}) {
    EXPECT_EQ(SizeText(bytes), text);
  }
}

}  // namespace onward::size_text_test
