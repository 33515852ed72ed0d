// SPDX-License-Identifier: Apache-2.0
// The action queue of one robot, as the server can know it: what it has executed, what it may
// still execute, and what is on its way to it. Time in ms, rows in steps; no clock is shared.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "archive.hpp"

namespace xinfer {

constexpr double kDefaultSpacing = 1e3 / 30.0;  // of a robot that does not tell
constexpr double kDefaultHorizon = 16.0;        // of a robot that has not shown any
constexpr double kLinkRate = 0.02;              // of what is learned of longer delays
constexpr double kLost = 1000.0;                // after which an answer that is not seen is lost
constexpr double kMemory = 3000.0;              // over which the share of time in motion is a mean

// What an observation says of a robot's queue.
struct Sight {
  double executed = 0.0;  // steps since its session began
  double leftover = 0.0;  // rows that it may still execute
  double horizon = 0.0;   // rows that a fresh chunk is good for, 0: not known
  double spacing = 0.0;   // of its rows [ms], 0: not known
};

// A chunk that is computed, or on its way to the robot.
struct Coming {
  double end = 0.0;      // executed steps up to which its rows are good
  double left = 0.0;     // when it left the server [ms], infinite while it is computed
  double arrival = 0.0;  // at the robot [ms], as foreseen

  void visit(Archive& a) { a(end, left, arrival); }
};

class Mirror {
 public:
  bool known = false;
  double spacing = kDefaultSpacing;
  double horizon = kDefaultHorizon;
  double link = 0.0;       // up and down together [ms]
  double moves = 1.0;      // share of its time in which the robot had a row to execute, of late
  double error_sum = 0.0;  // |predicted - observed| executed steps, over all observations
  double error_max = 0.0;
  int64_t observations = 0;  // that were predicted

  double mean_error() const { return observations ? error_sum / observations : 0.0; }

  void visit(Archive& a) {
    a(known, spacing, horizon, link, moves, error_sum, error_max, observations, executed_, at_,
      good_, coming_);
  }

  // Takes in what a robot has seen of its queue half a link ago.
  void observe(double now, const Sight& sight) {
    const double sampled = now - 0.5 * link;
    if (sight.executed < executed_) {  // another robot, or another session
      known = false;
      coming_.clear();
    }
    if (known) {
      const double error = std::abs(executed_at(sampled) - sight.executed);
      error_sum += error;
      error_max = std::max(error_max, error);
      ++observations;
      if (const double passed = sampled - at_; passed > 0.0) {
        const double share = std::min((sight.executed - executed_) * spacing / passed, 1.0);
        moves += passed / (passed + kMemory) * (share - moves);
      }
    }
    known = true;
    if (sight.spacing > 0.0) spacing = sight.spacing;
    if (sight.horizon > 0.0) {
      horizon = sight.horizon;
    } else if (sight.leftover > 0.0) {
      horizon = observations > 0 ? std::max(horizon, sight.leftover) : sight.leftover;
    }
    executed_ = sight.executed;
    at_ = sampled;
    good_ = sight.executed + sight.leftover;
    reconcile(now, sampled);
  }

  // A chunk is computed from the newest observation from now on.
  void compute() {
    if (!known) return;
    withdraw();
    coming_.push_back({executed_ + horizon, kNoTime, kNoTime});
  }

  // Its computation ends without it.
  void withdraw() {
    if (computes()) coming_.pop_back();
  }

  // It has left the server.
  void send(double now, double output) {
    if (!computes()) return;
    coming_.back().left = now + output;
    coming_.back().arrival = now + output + 0.5 * link;
  }

  bool computes() const { return !coming_.empty() && coming_.back().left == kNoTime; }

  // Executed steps at the newest observation: where a chunk that is computed now starts.
  double start() const { return executed_; }

  // Steps that the robot has executed at a time, with what is on its way.
  double executed_at(double t) const {
    double steps = executed_, good = good_, from = at_;
    for (const Coming& chunk : coming_)
      if (chunk.arrival < t) run(steps, good, from, chunk.arrival, chunk.end);
    run(steps, good, from, t, good);
    return steps;
  }

  // Executed steps up to which it has rows, those on their way among them.
  double good_until() const {
    double good = good_;
    for (const Coming& chunk : coming_)
      if (chunk.left < kNoTime) good = std::max(good, chunk.end);
    return good;
  }

  // When the robot has executed everything that it has and that is coming [ms].
  double dry_at() const {
    double steps = executed_, good = good_, from = at_;
    for (const Coming& chunk : coming_)
      if (chunk.arrival < kNoTime) run(steps, good, from, chunk.arrival, chunk.end);
    return from + std::max(good - steps, 0.0) * spacing;
  }

 private:
  static constexpr double kNoTime = std::numeric_limits<double>::infinity();

  // Executes rows until a time, from which on rows are good up to another end.
  void run(double& steps, double& good, double& from, double until, double end) const {
    if (until > from) {
      steps = std::min(steps + (until - from) / spacing, std::max(steps, good));
      from = until;
    }
    good = std::max(good, end);
  }

  // Forgets what the robot has, or never got, and learns the link from the first sight of it.
  void reconcile(double now, double sampled) {
    size_t kept = 0;
    for (Coming& chunk : coming_) {
      const bool waits = chunk.left == kNoTime;
      if (!waits && chunk.end <= good_) {
        learn(now - chunk.left);
        continue;
      }
      if (!waits && now - chunk.left > kLost) continue;
      if (!waits) chunk.arrival = std::max(chunk.arrival, sampled);  // it is later than foreseen
      coming_[kept++] = chunk;
    }
    coming_.resize(kept);
  }

  // A sight of an answer cannot be sooner than both ways; later it may be by any time.
  void learn(double seen) {
    if (link == 0.0 || seen < link)
      link = std::max(seen, 0.0);
    else
      link += std::min(kLinkRate * (seen - link), kLinkRate * spacing);
  }

  double executed_ = 0.0, at_ = 0.0, good_ = 0.0;
  std::vector<Coming> coming_;  // by the time of their computation
};

}  // namespace xinfer
