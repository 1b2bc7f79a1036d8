// SPDX-License-Identifier: Apache-2.0
// What the gradients of Loop and Scan share: which states carry gradients, and what the
// backward pass has to know of each iteration.
#ifndef ONWARD_AUTOGRAD_RULES_LOOP_H_
#define ONWARD_AUTOGRAD_RULES_LOOP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autograd/body.h"
#include "autograd/rule.h"

namespace onward {

Grads LoopVjp(const Vjp& v);
Grads ScanVjp(const Vjp& v);

// A node that runs its body again and again, as its rule sees it.
struct Repeated {
  Node node;                                    // with its own inputs alone
  Graph body;                                   // without inputs that are initializers
  std::vector<ValueType> types;                 // of the body's inputs, in every iteration
  int first_in = 0, first_out = 0, states = 0;  // where states are among those of the body
  int own = 0;                                  // inputs; captured ones follow
  int added_states = 0;                         // behind the others (kept.h)
  // The body with what it draws as further inputs, behind its own: what is differentiated, so
  // that the gradient sees the draws of the forward pass.
  Graph replayed;
  std::vector<ValueType> replayed_types;  // of its inputs
  std::vector<std::string> draws;         // their names in both bodies
};

absl::StatusOr<Repeated> Repetition(const Vjp& v);
// Of a node without its captured inputs; `around` knows what it and its body read.
absl::StatusOr<Repeated> RepetitionOf(Node node, GraphBuilder& around);

// The states whose gradients are carried from iteration to iteration: those an active
// value may reach, and that a gradient may come back through.
std::vector<int> ActiveStates(const Vjp& v, const Repeated& loop);

// The captured inputs of the node whose gradients are wanted.
std::vector<int> WantedCaptured(const Vjp& v, const Repeated& loop);

// Whether every iteration leaves the state as it was.
bool IsConstant(const Repeated& loop, int state);

// Names the node's outputs that nobody wants so far: new ones stand among and behind them.
void NameOutputs(GraphBuilder& b, Repeated* loop);
// Makes the body also give, as its last outputs, op(value): each iteration's, stacked. Returns
// the name of what the node gives for it.
std::string KeepOf(const char* op, const std::string& value, const ValueType& type, GraphBuilder& b,
                   Repeated* loop);

// Identity, Gather, ...: a node of these inputs, its outputs to be named.
Node Operation(const char* op, std::vector<std::string> inputs, Attributes attributes = {});

}  // namespace onward

#endif  // ONWARD_AUTOGRAD_RULES_LOOP_H_
