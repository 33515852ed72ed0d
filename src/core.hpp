// SPDX-License-Identifier: Apache-2.0
// State and policy together, driven in integer nanoseconds: submit, dispatch, complete, cancel.
#pragma once

#include <memory>
#include <utility>

#include "foresight.hpp"
#include "journal.hpp"
#include "lockstep.hpp"
#include "lookahead.hpp"
#include "play_ahead.hpp"
#include "priority.hpp"
#include "serial.hpp"
#include "shared_slack.hpp"

namespace xinfer {

constexpr int kStateFormat = 1;  // of snapshots; another one when a field comes, goes or moves

// What changes while it runs; device, limits and settings are those that it was made of.
inline void State::visit(Archive& archive) {
  archive(device.front_end, held, requests, live, ready, units, history, robots, mirrors, running,
          now, correction, last_unit, free_);
  if (archive.reads()) fill_loads();
}

class Core {
 public:
  Core(State state, std::unique_ptr<Policy> policy)
      : state(std::move(state)), policy(std::move(policy)) {}

  State state;
  std::unique_ptr<Policy> policy;
  std::vector<Decision> log;
  std::vector<Unit> started;  // by the last dispatch
  Journal journal;
  double prediction_error = 0.0;  // sum of |end predicted at the start - end seen| of units
  int64_t predictions = 0;

  void keep_log(bool keep) { policy->log = keep ? &log : nullptr; }

  double ms(int64_t ns) {
    if (origin_ns_ < 0) origin_ns_ = ns;
    return static_cast<double>(ns - origin_ns_) * 1e-6;
  }

  int64_t ns(double ms) const { return origin_ns_ + std::llround(ms * 1e6); }

  void announce(int64_t now_ns, int robot, int64_t arrival_ns, int64_t budget_ns,
                int64_t period_ns) {
    const double now = ms(now_ns);  // first: it sets the origin
    state.announce(now, robot, ms(arrival_ns), budget_ns * 1e-6, period_ns * 1e-6);
    journal.timed(CallKind::announce, now_ns, robot, arrival_ns, budget_ns, period_ns);
  }

  void observe(int64_t now_ns, int robot, const Sight& sight) {
    state.observe(ms(now_ns), robot, sight);
    journal.timed(CallKind::observe, now_ns, robot, std::llround(sight.executed),
                  std::llround(sight.leftover), std::llround(sight.horizon),
                  std::llround(sight.spacing * 1e6));
  }

  void submit(int64_t now_ns, int64_t key, int robot, int64_t arrival_ns, int64_t budget_ns,
              int64_t reserved_ns, int64_t period_ns) {
    const double now = ms(now_ns);  // first: it sets the origin
    state.submit(now, key, robot, ms(arrival_ns), budget_ns * 1e-6, reserved_ns * 1e-6,
                 period_ns * 1e-6);
    journal.timed(CallKind::submit, now_ns, key, robot, arrival_ns, budget_ns, reserved_ns,
                  period_ns);
  }

  void dispatch(int64_t now_ns, std::vector<Unit>& started) {
    started.clear();
    policy->dispatch(state, ms(now_ns), started);
    foresee(started.size());
    journal.timed(CallKind::dispatch, now_ns);
    journal.units(started, state.requests);
  }

  // Ends a unit: its requests wait for the next stage, or are done.
  void complete(int64_t now_ns, int64_t number, std::vector<int64_t>& finished) {
    const double now = ms(now_ns);
    const Unit unit = state.stop(now, number);
    state.learn(unit);
    prediction_error += std::abs(unit.foreseen_end - now);
    ++predictions;
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
    journal.timed(CallKind::complete, now_ns, number);
    journal.keys(finished);
  }

  // Requests that have ended earlier and were held back; call it before every dispatch.
  void release(int64_t now_ns, std::vector<int64_t>& finished) {
    finished.clear();
    state.advance(ms(now_ns));
    if (!held_back_.empty() && policy->releases(state)) finished.swap(held_back_);
    journal.timed(CallKind::release, now_ns);
    journal.keys(finished);
  }

  // For a robot whose request has just ended: see Policy::pace.
  int64_t pace_ns(int robot) {
    const int64_t pace = static_cast<int64_t>(policy->pace(state, robot) * 1e6);
    journal.untimed(CallKind::pace, robot, pace);
    return pace;
  }

  // Takes a waiting request out; false if it runs or is not known.
  bool cancel(int64_t now_ns, int64_t key) {
    const int place = state.find(key);
    const bool waits = place >= 0 && state.requests[place].unit < 0;
    journal.timed(CallKind::cancel, now_ns, key, waits);
    if (!waits) return false;
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
    journal.timed(CallKind::withdraw, now_ns, number);
  }

  void set_budget(int64_t key, int64_t budget_ns) {
    journal.untimed(CallKind::set_budget, key, budget_ns);
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

  // Live requests that the policy shields.
  int num_protected() const {
    return static_cast<int>(std::count_if(state.live.begin(), state.live.end(), [&](int place) {
      return policy->shields(state, state.requests[place]);
    }));
  }

  // Slack of a live request beside what runs now, infinite of another one [ms].
  double slack(int64_t key) const {
    const int place = state.find(key);
    return place < 0 ? kNever : state.slack(state.load(state.running), state.requests[place]);
  }

  // All that changes while it runs, to go on from here with restore; the journal begins anew.
  std::string snapshot() {
    Archive archive;
    visit(archive);
    journal.restart();
    return std::move(archive.bytes);
  }

  // For a new core that was made of the same device, policy and settings.
  void restore(std::string bytes) {
    Archive archive(std::move(bytes));
    visit(archive);
    if (!archive.at_end()) throw std::invalid_argument("the state is of another policy");
    journal.restart();
  }

 private:
  void visit(Archive& archive) {
    int format = kStateFormat;
    archive(format);
    if (format != kStateFormat) throw std::invalid_argument("another version has kept the state");
    archive(state, origin_ns_, held_back_, prediction_error, predictions, policy->verdicts);
    policy->visit(archive);
  }

  // Predicts when the newest units end, beside all that runs now.
  void foresee(size_t newest) {
    const Load& load = state.load(state.running);
    for (size_t i = state.units.size() - newest; i < state.units.size(); ++i)
      state.units[i].foreseen_end = state.now + state.residual(load, state.units[i]);
  }

  int64_t origin_ns_ = -1;
  std::vector<int64_t> held_back_;
};

}  // namespace xinfer
