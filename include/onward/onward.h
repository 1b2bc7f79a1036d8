// SPDX-License-Identifier: Apache-2.0
// All of Onward. Read training.h first; each header states its rules for threads.
//
// The interface uses standard C++17 types only. Until 1.0 a minor version may change it;
// libonward.so carries the minor version in its name.
#ifndef ONWARD_ONWARD_H_
#define ONWARD_ONWARD_H_

#include "onward/adapters.h"
#include "onward/author.h"
#include "onward/device.h"
#include "onward/environment.h"
#include "onward/gradient.h"
#include "onward/inference.h"
#include "onward/model.h"
#include "onward/status.h"
#include "onward/tensor.h"
#include "onward/training.h"
#include "onward/value.h"

#endif  // ONWARD_ONWARD_H_
