// SPDX-License-Identifier: Apache-2.0
// When a robot with time to spare should ask again: the device's spare responses are shared.
#pragma once

#include "state.hpp"

namespace xinfer {

struct PacingSettings {
  bool enabled = false;
  double rate = 0.0;      // responses per ms that the fleet may ask for
  double spread = 0.0;    // share of the period by which it may be longer, for a quiet time
  double step = 0.0;      // of that search
  double window = 0.0;    // arrivals that are closer than this are in each other's way
  double back = 0.0;      // from the end of Action to the robot's next arrival, at least
  double reserved = 0.0;  // delta
  double gone = 0.0;      // a robot that is overdue by this is not foreseen any more
};

constexpr int kForeseen = 4;     // arrivals of each robot that are looked at
constexpr int kBisections = 16;  // of the common period

class Pacing {
 public:
  explicit Pacing(PacingSettings settings) : s_(settings) {}

  // Time between the arrivals of the request that has just ended and the next one of its robot;
  // 0 to leave it to the robot. Never more than its response budget.
  double next(State& state, int number) {
    Robot& robot = state.robots[number];
    robot.paced = 0.0;
    if (!s_.enabled || robot.budget <= robot.period) return 0.0;
    const double common = common_period(state);
    const double period = std::min(std::max(common, robot.period), robot.budget);
    if (period <= robot.period) return 0.0;
    const double soonest = std::max(robot.last_arrival + robot.period, state.now + s_.back);
    const double latest = robot.last_arrival + std::min(period * (1.0 + s_.spread), robot.budget);
    double best = std::max(robot.last_arrival + period, soonest);
    double least = std::numeric_limits<double>::infinity();
    for (double at = best; at <= latest; at += s_.step) {
      const double near = crowd(state, number, at);
      if (near < least) {
        least = near;
        best = at;
      }
    }
    robot.paced = best - robot.last_arrival;
    return robot.paced;
  }

 private:
  bool foreseen(const State& state, const Robot& robot) const {
    return robot.known &&
           state.now <= robot.last_arrival + std::max(robot.period, robot.budget) + s_.gone;
  }

  // The least period that, asked of every robot with time to spare, keeps the fleet's rate.
  double common_period(const State& state) const {
    const double affordable = s_.rate / state.slowdown();
    double low = 0.0, high = 0.0;
    for (const Robot& robot : state.robots)
      if (foreseen(state, robot)) high = std::max(high, robot.budget);
    if (rate(state, low) <= affordable) return low;
    if (rate(state, high) > affordable) return high;
    for (int i = 0; i < kBisections; ++i) {
      const double middle = 0.5 * (low + high);
      (rate(state, middle) <= affordable ? high : low) = middle;
    }
    return high;
  }

  double rate(const State& state, double period) const {
    double sum = 0.0;
    for (const Robot& robot : state.robots)
      if (foreseen(state, robot))
        sum += 1.0 / std::max(std::min(period, robot.budget), robot.period);
    return sum;
  }

  // Foreseen arrivals of the others around a time, each weighted by its nearness.
  double crowd(const State& state, int number, double at) const {
    double near = 0.0;
    for (size_t k = 0; k < state.robots.size(); ++k) {
      const Robot& other = state.robots[k];
      if (static_cast<int>(k) == number || !foreseen(state, other)) continue;
      const double interval = std::max(other.period, other.paced);
      double next = std::max(other.last_arrival + interval, state.now);
      for (int i = 0; i < kForeseen && next < at + s_.window; ++i, next += interval)
        near += std::max(1.0 - std::abs(at - next) / s_.window, 0.0);
    }
    return near;
  }

  PacingSettings s_;
};

}  // namespace xinfer
