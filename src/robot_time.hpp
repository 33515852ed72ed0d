// SPDX-License-Identifier: Apache-2.0
// Whole-pipeline batches chosen by whose turn it is, or by who runs dry soonest.
// Source: Armory, scheduling in robot time; queues are mirrored on the server.
#pragma once

#include "group.hpp"

namespace xinfer {

// Robots of two tiers, told apart by how long a chunk of theirs lasts.
struct TierWeights {
  double fast = 1.0, slow = 1.0;
  double horizon = 0.0;  // longest life of a chunk of the fast tier [ms]

  double of(const Mirror& mirror) const {
    return mirror.horizon * mirror.spacing <= horizon ? fast : slow;
  }
};

// d_infer of a batch; one that is larger than any known takes as long as the largest.
inline double pipeline_ms(const State& state, int size) {
  const auto& infer = state.device.infer;
  return infer[std::min<size_t>(size, infer.size()) - 1];
}

// The next robots in a fixed order.
class RoundRobin : public WholePipeline {
 public:
  using WholePipeline::WholePipeline;

  void visit(Archive& a) override {
    WholePipeline::visit(a);
    a(next_);
  }

 protected:
  std::vector<int> choose(State& state, int most) override {
    std::vector<int> places = by_arrival(state);
    const int robots = static_cast<int>(state.robots.size());
    const auto turn = [&](int place) {
      return (state.requests[place].robot - next_ + robots) % robots;
    };
    std::stable_sort(places.begin(), places.end(), [&](int a, int b) { return turn(a) < turn(b); });
    places.resize(std::min<size_t>(places.size(), most));
    next_ = (state.requests[places.back()].robot + 1) % robots;
    return places;
  }

 private:
  int next_ = 0;  // robot
};

// Those whose rows are used up soonest.
class DryFirst : public WholePipeline {
 public:
  using WholePipeline::WholePipeline;

 protected:
  std::vector<int> choose(State& state, int most) override {
    std::vector<int> places = by_arrival(state);
    const auto dry = [&](int place) {
      const Mirror& mirror = state.mirrors[state.requests[place].robot];
      return mirror.known ? mirror.dry_at() : state.requests[place].arrival;
    };
    std::stable_sort(places.begin(), places.end(), [&](int a, int b) { return dry(a) < dry(b); });
    places.resize(std::min<size_t>(places.size(), most));
    return places;
  }
};

}  // namespace xinfer
