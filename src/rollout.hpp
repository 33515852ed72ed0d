// SPDX-License-Identifier: Apache-2.0
// The near future of the lanes, played forward on the rate table.
#pragma once

#include "state.hpp"

namespace xinfer {

constexpr int kMaxItems = 64;
constexpr int kMaxUnits = 64;
constexpr int kMaxSteps = 1000;

using Mask = uint64_t;  // a set of items

inline int lowest(Mask mask) { return __builtin_ctzll(mask); }
inline Mask bit(int item) { return Mask{1} << item; }

// One request that is live, prepared on the CPU, or foreseen.
struct Item {
  double due = 0.0;    // its deadline, or a later one if it was put off
  double from = 0.0;   // when it can wait for its first stage
  int place = -1;      // in State::requests, -1 while it is not registered
  int robot = -1;
};

struct RolloutSettings {
  double urgent = 0.0;     // an item may start by itself once it is due within this time
  double horizon = 0.0;    // how far is played
  double sharpness = 0.0;  // of the soft step between on time and late
  double margin = 0.0;     // how much earlier than due counts as on time
  double tardiness = 0.0;  // price of a millisecond of lateness, in late requests
};

// Items by the time they are due, what waits and what runs.
struct Outlook {
  struct Running {
    Mask items;
    int stage;
    double begin, left;
  };

  int size = 0;
  std::array<Item, kMaxItems> items;
  std::array<Mask, kStages> waiting{};
  Mask coming = 0;
  int running = 0;
  std::array<Running, kMaxUnits> units;
  Counts counts{};

  // What one unit of the stage takes along: the first waiting ones, up to the batch size.
  Mask batch(const State& state, int stage, int first) const {
    Mask taken = bit(first);
    Mask rest = waiting[stage] & ~taken;
    int most = state.device.max_batch(stage);
    if (stage == kVit) most = std::min(most, std::max(state.free_states(), 1));
    for (int left = most - 1; left > 0 && rest; --left) {
      taken |= rest & -rest;
      rest &= rest - 1;
    }
    return taken;
  }

  void start(const State& state, int stage, Mask taken, double now) {
    waiting[stage] &= ~taken;
    const int count = __builtin_popcountll(taken);
    units[running++] = {taken, stage, now + state.device.overhead[stage],
                        state.device.batch_work(stage, count) * state.correction[stage]};
    ++counts[stage];
  }
};

class Rollout {
 public:
  Rollout(const State& state, const RolloutSettings& settings)
      : state_(state), device_(state.device), s_(settings) {}

  Mask late = 0;  // items that finish after they are due

  // Soft count of the late items; gives up once it exceeds the bound.
  double play(const Outlook& from, double bound) {
    o_ = from;
    late = 0;
    double t = state_.now, cost = 0.0;
    const double end = t + s_.horizon;
    for (int step = 0; step < kMaxSteps; ++step) {
      double next = std::min(start_urgent(t, end), next_arrival(end));
      const int ending = next_completion(t, next);
      progress(t, next);
      t = next;
      if (ending >= 0) {
        cost += complete(ending, t);
        if (cost > bound) return cost;
      } else if (!arrive(t) && t >= end) {
        break;
      }
    }
    return cost + beyond(t);
  }

 private:
  double price(int item, double finish) {
    const double by = finish + s_.margin - o_.items[item].due;
    if (finish > o_.items[item].due) late |= bit(item);
    return 1.0 / (1.0 + std::exp(-by / s_.sharpness)) + s_.tardiness * std::max(by, 0.0);
  }

  // Of a unit that runs; as if alone in the ablation without interference.
  double look_up(const std::array<std::vector<double>, kStages>& table, int stage) const {
    return state_.interference ? table[stage][device_.index_without(o_.counts, stage)] : 1.0;
  }

  // Starts what is urgent, later stages first; returns when the next waiting item becomes so.
  double start_urgent(double t, double end) {
    double next = end;
    for (int stage = kAction; stage >= kVit; --stage)
      while (o_.waiting[stage] && o_.counts[stage] < state_.limits[stage] &&
             o_.running < kMaxUnits) {
        const int first = lowest(o_.waiting[stage]);
        const double when = o_.items[first].due - s_.urgent;
        if (when > t) {
          next = std::min(next, when);
          break;
        }
        o_.start(state_, stage, o_.batch(state_, stage, first), t);
      }
    return next;
  }

  double next_arrival(double end) const {
    double next = end;
    for (Mask mask = o_.coming; mask; mask &= mask - 1)
      next = std::min(next, o_.items[lowest(mask)].from);
    return next;
  }

  // Index of the unit that ends first, no later than `next`, which becomes its end; -1 if none.
  int next_completion(double t, double& next) const {
    int ending = -1;
    for (int k = 0; k < o_.running; ++k) {
      const Outlook::Running& u = o_.units[k];
      const double at = std::max(t, u.begin) + u.left * look_up(device_.inverse, u.stage);
      if (at <= next) {
        next = at;
        ending = k;
      }
    }
    return ending;
  }

  void progress(double t, double next) {
    std::array<double, kStages> rate{};
    for (int s = 0; s < kStages; ++s)
      if (o_.counts[s]) rate[s] = look_up(device_.rate, s);
    for (int k = 0; k < o_.running; ++k) {
      Outlook::Running& u = o_.units[k];
      const double from = std::max(t, u.begin);
      if (next > from) u.left = std::max(u.left - (next - from) * rate[u.stage], 0.0);
    }
  }

  double complete(int ending, double t) {
    const Outlook::Running u = o_.units[ending];
    o_.units[ending] = o_.units[--o_.running];
    --o_.counts[u.stage];
    if (u.stage < kAction) {
      o_.waiting[u.stage + 1] |= u.items;
      return 0.0;
    }
    double cost = 0.0;
    for (Mask mask = u.items; mask; mask &= mask - 1)  // the second term: rather sooner than later
      cost += price(lowest(mask), t + device_.output) + 1e-5 * (t - state_.now);
    return cost;
  }

  bool arrive(double t) {
    bool any = false;
    for (Mask mask = o_.coming; mask; mask &= mask - 1) {
      const int i = lowest(mask);
      if (o_.items[i].from > t) continue;
      o_.coming &= ~bit(i);
      o_.waiting[kVit] |= bit(i);
      any = true;
    }
    return any;
  }

  // What is not done at the horizon goes on under the load of then, without further queueing.
  double beyond(double t) {
    const Load& load = state_.load(o_.counts);
    double cost = 0.0;
    for (int k = 0; k < o_.running; ++k) {
      const Outlook::Running& u = o_.units[k];
      const double finish =
          std::max(u.begin, t) + u.left * load.inverse[u.stage] + load.rest[u.stage];
      for (Mask mask = u.items; mask; mask &= mask - 1) cost += price(lowest(mask), finish);
    }
    for (int stage = 0; stage < kStages; ++stage)
      for (Mask mask = o_.waiting[stage]; mask; mask &= mask - 1)
        cost += price(lowest(mask), t + load.stage[stage] + load.rest[stage]);
    return cost;
  }

  const State& state_;
  const Device& device_;
  const RolloutSettings& s_;
  Outlook o_;
};

}  // namespace xinfer
