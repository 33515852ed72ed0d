// SPDX-License-Identifier: Apache-2.0
// The whole pipeline for one request after the other, or for batches that fill up for a while.
#pragma once

#include "group.hpp"

namespace xinfer {

// By arrival; a batch leaves when it is full or when its first request has waited long enough.
class DynamicBatch : public WholePipeline {
 public:
  DynamicBatch(int max_batch, double wait) : WholePipeline(max_batch), wait_(wait) {}

 protected:
  std::vector<int> choose(State& state, int most) override {
    std::vector<int> places = by_arrival(state);
    const int first = places.front(), size = static_cast<int>(places.size());
    const double waited = state.now - state.requests[first].queued;
    if (size < most && waited < wait_) {
      note(state, first, Verdict::deferred_batch, -1, wait_ - waited);
      return {};
    }
    places.resize(std::min(size, most));
    return places;
  }

 private:
  double wait_;
};

}  // namespace xinfer
