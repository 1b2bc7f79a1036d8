// SPDX-License-Identifier: Apache-2.0
// Headers that nearly every test includes, compiled once for all test programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>

#include "cmake/precompiled.h"
#include "core/onnx_io/model.h"
#include "core/runtime/session.h"
#include "tests/support/text_model.h"
#include "training_info/step.h"
