// SPDX-License-Identifier: Apache-2.0
// Lockstep rounds: ViT and Prefill of one group beside Action of the group before it.
#pragma once

#include "group.hpp"

namespace xinfer {

class Lockstep : public GroupPolicy {
 public:
  Lockstep(int group, bool publish_at_barrier) : size_(group), publish_at_barrier_(publish_at_barrier) {}

  void dispatch(State& state, double now, std::vector<Unit>& started) override {
    state.advance(now);
    if (is_over(state)) begin(state);
    issue(state, action_, started);
    if (context_.stage(state) < kAction) issue(state, context_, started);
  }

  bool holds_back() const override { return publish_at_barrier_; }
  bool releases(const State& state) override { return is_over(state); }
  void visit(Archive& a) override { a(context_, action_); }

 private:
  // Whether this round's Context waits for Action, and its Action has ended.
  bool is_over(const State& state) {
    context_.tidy(state);
    action_.tidy(state);
    return action_.empty() && context_.stage(state) >= kAction;
  }

  void begin(State& state) {
    action_ = context_;
    std::vector<int> places = by_arrival(state);
    const int most = std::max(room(state, size_), 0);
    if (static_cast<int>(places.size()) > most) places.resize(most);
    context_.form(state, places);
  }

  int size_;
  bool publish_at_barrier_;
  Group context_, action_;
};

}  // namespace xinfer
