// SPDX-License-Identifier: Apache-2.0
// XInfer / FleetServe: blocking-aware promotion and shared-slack admission.
// Source: "Scaling VLA Serving Under Robotic Execution Constraints" (2026), algorithms 1 and 2.
#pragma once

#include "decision.hpp"

namespace xinfer {

struct SharedSlackSwitches {
  bool strict_gating = false;        // ordinary work waits while anyone is protected
  bool arrival_aware = true;         // the forecast check
  bool entry_only = false;           // checks before ViT only
  bool zero_slack_promotion = false; // promote at zero slack, whatever blocks
};

class SharedSlack : public Policy {
 public:
  SharedSlack(SharedSlackSwitches switches, double reserved)
      : switches_(switches), reserved_(reserved) {}

  void dispatch(State& state, double now, std::vector<Unit>& started) override {
    state.advance(now);
    refresh(state);  // once: without a launch it finds the same again
    for (int stage : kStageOrder) {
      bool again = !state.ready[stage].empty() && state.has_room(stage);
      while (again) {
        again = false;
        scan_order(state, stage);
        for (int place : order_) {
          if (!state.has_room(stage)) break;
          const bool shielded = state.requests[place].is_protected();
          if (!shielded && !admits(state, place)) continue;
          launch(state, place, started, shielded ? Verdict::issued_protected : Verdict::issued);
          refresh(state);
          if (stage != kAction) {  // Prefill and ViT are ordered anew after every launch
            again = true;
            break;
          }
        }
      }
    }
  }

  bool shields(const State&, const Request& r) const override { return r.is_protected(); }

 private:
  void scan_order(const State& state, int stage) {
    order_.clear();
    for (int place : state.ready[stage])
      if (state.requests[place].is_protected()) order_.push_back(place);
    for (int place : state.ready[stage])
      if (!state.requests[place].is_protected()) order_.push_back(place);
  }

  // n^f: running units and the protected ready ones that the free lanes can take.
  static Counts foreseeable(const State& state) {
    Counts n = state.running;
    Counts waiting{};
    for (int place : state.live) {
      const Request& r = state.requests[place];
      if (r.unit < 0 && r.is_protected()) ++waiting[r.stage];
    }
    for (int s = 0; s < kStages; ++s)
      n[s] += std::max(std::min(waiting[s], state.limits[s] - n[s]), 0);
    return n;
  }

  // Algorithm 2: promote whom a running ordinary unit could make late, until nothing is added.
  void refresh(State& state) {
    const Load& alone = state.load(Counts{});
    for (int place : state.live) {
      Request& r = state.requests[place];
      r.hopeless = state.slack(alone, r) < 0.0;
    }
    for (bool added = true; added;) {
      added = false;
      foreseeable_ = foreseeable(state);
      const Load& load = state.load(foreseeable_);
      double first = 0.0, second = 0.0;  // the two largest residuals of ordinary running requests
      int owner = -1;
      if (!switches_.zero_slack_promotion)
        for (const Unit& unit : state.units)
          for (int m = 0; m < unit.count; ++m) {
            const int place = unit.members[m];
            if (state.requests[place].is_protected()) continue;
            const double left = state.residual(load, unit);
            if (left > first) {
              second = first;
              first = left;
              owner = place;
            } else if (left > second) {
              second = left;
            }
          }
      for (int place : state.live) {
        Request& r = state.requests[place];
        if (r.promoted) continue;
        if (state.slack(load, r) < (place == owner ? second : first)) {
          r.promoted = true;
          r.promoted_at = state.now;
          added = true;
        }
      }
    }
  }

  bool admits(State& state, int place) {
    const int stage = state.requests[place].stage;
    if (switches_.strict_gating) {
      for (int other : state.live)
        if (state.requests[other].is_protected()) {
          note(state, place, Verdict::deferred_gate, state.requests[other].key);
          return false;
        }
      return true;
    }
    if (switches_.entry_only && stage != kVit) return true;
    Counts more = foreseeable_;
    ++more[stage];
    return current_feasible(state, place, more) &&
           (!switches_.arrival_aware || forecast_feasible(state, place, more));
  }

  // Eq. 4: for every protected h, R_h(n^f + e_s) - R_h(n^f) <= sigma_h(n^f).
  bool current_feasible(State& state, int place, const Counts& more) {
    const Load &before = state.load(foreseeable_), &after = state.load(more);
    for (int other : state.live) {
      const Request& r = state.requests[other];
      if (!r.is_protected()) continue;
      const double cost = state.remaining(after, r) - state.remaining(before, r);
      const double slack = state.slack(before, r);
      if (cost <= slack) continue;
      note(state, place, Verdict::deferred_current, r.key, slack, cost);
      return false;
    }
    return true;
  }

  // The arrivals foreseen while the candidate runs must still be able to meet their budgets.
  bool forecast_feasible(State& state, int place, const Counts& more) {
    const Request& candidate = state.requests[place];
    const double end = state.now + state.load(more).stage[candidate.stage];
    forecasts_.clear();
    groups_.clear();
    for (const Arrival& arrival : state.history) {
      if (arrival.time <= state.now - state.window) continue;
      size_t g = 0;
      while (g < groups_.size() && groups_[g].budget != arrival.budget) ++g;
      if (g == groups_.size()) groups_.push_back({arrival.budget, arrival.time, 0});
      groups_[g].last = std::max(groups_[g].last, arrival.time);
      ++groups_[g].count;
    }
    for (const Group& group : groups_) {
      const double step = state.window / group.count;
      for (double at = std::max(state.now, group.last + step); at < end; at += step)
        if (at + group.budget - reserved_ < candidate.deadline)
          forecasts_.insert(
              std::upper_bound(forecasts_.begin(), forecasts_.end(), at,
                               [](double time, const Arrival& a) { return time < a.time; }),
              {at, group.budget});
    }
    Counts n = more;
    for (const Arrival& forecast : forecasts_) {
      const Load& load = state.load(n);
      const double need =
          reserved_ + state.device.front_end + load.stage[kVit] + load.rest[kVit];
      if (need > forecast.budget) {
        note(state, place, Verdict::deferred_forecast, -1, forecast.budget - need, need, forecast.time);
        return false;
      }
      ++n[kVit];
    }
    return true;
  }

  struct Group {
    double budget, last;
    int count;
  };

  SharedSlackSwitches switches_;
  double reserved_;
  Counts foreseeable_{};
  std::vector<int> order_;
  std::vector<Group> groups_;
  std::vector<Arrival> forecasts_;
};

}  // namespace xinfer
