// SPDX-License-Identifier: Apache-2.0
// The baselines: arrival order, deadline order, and deadline order behind a slack gate.
#pragma once

#include "decision.hpp"

namespace xinfer {

// Arrival order on every lane; deadlines are ignored.
class Fifo : public Policy {
 public:
  void dispatch(State& state, double now, std::vector<Unit>& started) override {
    state.advance(now);
    for (int stage : kStageOrder)
      while (state.has_room(stage) && !state.ready[stage].empty()) {
        const auto& queue = state.ready[stage];
        const int oldest = *std::min_element(queue.begin(), queue.end(), [&](int a, int b) {
          return state.requests[a].key < state.requests[b].key;
        });
        launch(state, oldest, started, Verdict::issued);
      }
  }
};

// Earliest deadline first on every lane, within the limit of each.
class Edf : public Policy {
 public:
  void dispatch(State& state, double now, std::vector<Unit>& started) override {
    state.advance(now);
    for (int stage : kStageOrder)
      while (state.has_room(stage) && !state.ready[stage].empty())
        launch(state, state.ready[stage].front(), started, Verdict::issued);
  }
};

// Earliest deadline first; while a live request has less slack than the threshold, the rest waits.
class SlackGate : public Policy {
 public:
  explicit SlackGate(double threshold) : threshold_(threshold) {}

  void dispatch(State& state, double now, std::vector<Unit>& started) override {
    state.advance(now);
    for (int stage : kStageOrder) {
      size_t next = 0;
      while (state.has_room(stage) && next < state.ready[stage].size()) {
        const int place = state.ready[stage][next];
        const Load& load = state.load(state.running);
        int shortest = -1;
        double least = threshold_;
        for (int other : state.live) {
          const double slack = state.slack(load, state.requests[other]);
          if (slack < least) {
            least = slack;
            shortest = other;
          }
        }
        const bool is_short = state.slack(load, state.requests[place]) < threshold_;
        if (shortest >= 0 && !is_short) {
          note(state, place, Verdict::deferred_gate, state.requests[shortest].key, least);
          ++next;
          continue;
        }
        launch(state, place, started, is_short ? Verdict::issued_protected : Verdict::issued);
        next = 0;
      }
    }
  }

  bool shields(const State& state, const Request& r) const override {
    return state.slack(state.load(state.running), r) < threshold_;
  }

 private:
  double threshold_;
};

}  // namespace xinfer
