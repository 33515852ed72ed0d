// SPDX-License-Identifier: Apache-2.0
// The scheduling policies by name, made of the settings in sched/settings.py.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>

#include "core.hpp"

namespace xinfer {

namespace py = pybind11;

// One number or switch of a policy's settings; sched/settings.py has them all.
inline double number(const py::dict& settings, const char* key) {
  return settings[key].cast<double>();
}
inline bool flag(const py::dict& settings, const char* key) { return settings[key].cast<bool>(); }

inline std::unique_ptr<Policy> make_lookahead(const py::dict& d) {
  const auto objective = d["objective"].cast<std::string>();
  const TierWeights weights{number(d, "fast_weight"), number(d, "slow_weight"),
                            number(d, "tier_horizon_ms")};
  if (objective == "starvation") {
    PlayAheadSettings s;
    s.max_batch = d["max_batch"].cast<int>();
    s.weights = weights;
    s.flat = number(d, "flat");
    s.fade = number(d, "fade");
    s.bonus = number(d, "bonus");
    s.protection = flag(d, "protection");
    s.memory = number(d, "memory");
    s.floor = number(d, "floor");
    s.floor_price = number(d, "floor_price");
    return std::make_unique<PlayAhead>(s);
  }
  LookaheadSettings s;
  s.max_batch = d["max_batch"].cast<int>();
  s.depth = d["depth"].cast<int>();
  s.page = objective == "page";
  s.window = number(d, "window");
  s.weights = weights;
  s.protection = flag(d, "protection");
  s.fairness = number(d, "fairness");
  s.least_share = number(d, "least_share");
  return std::make_unique<Lookahead>(s);
}

inline std::unique_ptr<Policy> make_policy(const std::string& name, const py::dict& d) {
  if (name == "fifo") return std::make_unique<Fifo>();
  if (name == "edf") return std::make_unique<Edf>();
  if (name == "slack_gate") return std::make_unique<SlackGate>(number(d, "threshold_ms"));
  if (name == "xinfer") {
    SharedSlackSwitches s;
    s.strict_gating = flag(d, "strict_gating");
    s.arrival_aware = flag(d, "arrival_aware");
    s.entry_only = flag(d, "entry_only");
    s.zero_slack_promotion = flag(d, "zero_slack_promotion");
    return std::make_unique<SharedSlack>(s, number(d, "reserved_ms"));
  }
  if (name == "foresight") {
    ForesightSettings s;
    s.rollout.urgent = number(d, "urgent_ms");
    s.rollout.horizon = number(d, "horizon_ms");
    s.rollout.sharpness = number(d, "sharpness_ms");
    s.rollout.margin = number(d, "margin_ms");
    s.rollout.tardiness = number(d, "tardiness_per_ms");
    s.pacing.enabled = flag(d, "pacing");
    s.pacing.rate = number(d, "pacing_rate_per_ms");
    s.pacing.spread = number(d, "pacing_spread");
    s.pacing.step = number(d, "pacing_step_ms");
    s.pacing.window = number(d, "pacing_window_ms");
    s.pacing.back = number(d, "back_ms");
    s.pacing.reserved = number(d, "reserved_ms");
    s.tolerance = number(d, "tolerance");
    s.tries = d["tries"].cast<int>();
    s.shed_at = number(d, "shed_at");
    s.shed_gain = number(d, "shed_gain");
    s.shed_share = number(d, "shed_share");
    s.shed_burst = number(d, "shed_burst");
    s.put_off = number(d, "put_off_ms");
    s.patience = number(d, "patience_ms");
    s.spare = number(d, "spare_ms");
    s.hopeless = number(d, "hopeless_share");
    s.gone = s.pacing.gone = number(d, "gone_ms");
    return std::make_unique<Foresight>(s);
  }
  if (name == "dynamic_batch")
    return std::make_unique<DynamicBatch>(d["max_batch"].cast<int>(), number(d, "wait_ms"));
  if (name == "robion")
    return std::make_unique<Lockstep>(d["group"].cast<int>(), flag(d, "publish_at_barrier"));
  if (name == "round_robin") return std::make_unique<RoundRobin>(d["max_batch"].cast<int>());
  if (name == "armory_edf") return std::make_unique<DryFirst>(d["max_batch"].cast<int>());
  if (name == "lookahead") return make_lookahead(d);
  throw std::invalid_argument("no compiled policy " + name);
}

}  // namespace xinfer
