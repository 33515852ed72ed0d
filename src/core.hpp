// SPDX-License-Identifier: Apache-2.0
// State and policy together, driven in integer nanoseconds: submit, dispatch, complete, cancel.
#pragma once

#include <memory>
#include <utility>

#include "foresight.hpp"
#include "lockstep.hpp"
#include "lookahead.hpp"
#include "play_ahead.hpp"
#include "priority.hpp"
#include "serial.hpp"
#include "shared_slack.hpp"

namespace xinfer {

class Core {
 public:
  Core(State state, std::unique_ptr<Policy> policy)
      : state(std::move(state)), policy(std::move(policy)) {}

  State state;
  std::unique_ptr<Policy> policy;
  std::vector<Decision> log;
  std::vector<Unit> started;  // by the last dispatch

  void keep_log(bool keep) { policy->log = keep ? &log : nullptr; }

  double ms(int64_t ns) {
    if (origin_ns_ < 0) origin_ns_ = ns;
    return static_cast<double>(ns - origin_ns_) * 1e-6;
  }

  void announce(int64_t now_ns, int robot, int64_t arrival_ns, int64_t budget_ns,
                int64_t period_ns) {
    const double now = ms(now_ns);  // first: it sets the origin
    state.announce(now, robot, ms(arrival_ns), budget_ns * 1e-6, period_ns * 1e-6);
  }

  void observe(int64_t now_ns, int robot, const Sight& sight) {
    state.observe(ms(now_ns), robot, sight);
  }

  void submit(int64_t now_ns, int64_t key, int robot, int64_t arrival_ns, int64_t budget_ns,
              int64_t reserved_ns, int64_t period_ns) {
    const double now = ms(now_ns);  // first: it sets the origin
    state.submit(now, key, robot, ms(arrival_ns), budget_ns * 1e-6, reserved_ns * 1e-6,
                 period_ns * 1e-6);
  }

  void dispatch(int64_t now_ns, std::vector<Unit>& started) {
    started.clear();
    policy->dispatch(state, ms(now_ns), started);
  }

  // Ends a unit: its requests wait for the next stage, or are done.
  void complete(int64_t now_ns, int64_t number, std::vector<int64_t>& finished) {
    const double now = ms(now_ns);
    const Unit unit = state.stop(now, number);
    state.learn(unit);
    finished.clear();
    for (int m = 0; m < unit.count; ++m) {
      const int place = unit.members[m];
      Request& r = state.requests[place];
      if (r.stage == kAction) {
        (policy->holds_back() ? held_back_ : finished).push_back(r.key);
        state.send(place, now);
      } else {
        ++r.stage;
        state.wait(place);
      }
    }
  }

  // Requests that have ended earlier and were held back; call it before every dispatch.
  void release(int64_t now_ns, std::vector<int64_t>& finished) {
    finished.clear();
    state.advance(ms(now_ns));
    if (!held_back_.empty() && policy->releases(state)) finished.swap(held_back_);
  }

  // For a robot whose request has just ended: see Policy::pace.
  int64_t pace_ns(int robot) { return static_cast<int64_t>(policy->pace(state, robot) * 1e6); }

  // Takes a waiting request out; false if it runs or is not known.
  bool cancel(int64_t now_ns, int64_t key) {
    const int place = state.find(key);
    if (place < 0 || state.requests[place].unit >= 0) return false;
    const double now = ms(now_ns);
    state.advance(now);
    state.leave_queue(place);
    state.remove(place, now);
    return true;
  }

  // Ends a unit that has failed; its requests are gone.
  void withdraw(int64_t now_ns, int64_t number) {
    const double now = ms(now_ns);
    const Unit unit = state.stop(now, number);
    for (int m = 0; m < unit.count; ++m) state.remove(unit.members[m], now);
  }

  void set_budget(int64_t key, int64_t budget_ns) {
    const int place = state.find(key);
    if (place < 0) return;
    Request& r = state.requests[place];
    if (r.unit < 0) state.leave_queue(place);
    r.deadline += budget_ns * 1e-6 - r.budget;
    r.budget = budget_ns * 1e-6;
    r.put_off = 0.0;
    if (r.unit < 0) state.wait(place);
    state.robots[r.robot].budget = r.budget;
  }

 private:
  int64_t origin_ns_ = -1;
  std::vector<int64_t> held_back_;
};

}  // namespace xinfer
