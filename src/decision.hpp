// SPDX-License-Identifier: Apache-2.0
// Why a unit was started or left waiting, and the protocol of a scheduling policy.
#pragma once

#include "state.hpp"

namespace xinfer {

enum class Verdict : int {
  issued = 0,            // passed its checks, or the policy has none
  issued_protected = 1,  // shielded requests start without a check
  deferred_current = 2,  // would cost a protected request more than its slack
  deferred_forecast = 3, // would make a foreseen request late
  deferred_gate = 4,     // ordinary work waits while someone is protected or short of slack
  deferred_rollout = 5,  // waiting is predicted to keep more requests on time
  put_off = 6,           // given up for its budget, so that others are on time
  deferred_batch = 7,    // waits for others to fill its batch
};

constexpr int kVerdicts = 8;

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Decision {
  double time = 0.0;
  int64_t key = -1;
  int stage = 0;
  Verdict verdict = Verdict::issued;
  int64_t against = -1;        // key of the request that the check was about, -1 if none
  double slack = 0.0;          // of that request, or of the forecast
  double cost = 0.0;           // what the unit would take of it
  double foreseen = -1.0;      // when the forecast request arrives, -1 if none
  double protected_at = -1.0;  // since when this request is protected, -1 if it is not
};

class Policy {
 public:
  virtual ~Policy() = default;

  // Starts what may start now; appends the started units, and every decision if asked to.
  virtual void dispatch(State& state, double now, std::vector<Unit>& started) = 0;

  // Called when the last stage of a robot's request has ended: the time between its arrival and
  // that of the robot's next request that suits the fleet, 0 to leave it to the robot.
  virtual double pace(State&, int /*robot*/) { return 0.0; }

  // Whether the answers of requests that end are held back until the policy releases them.
  virtual bool holds_back() const { return false; }
  virtual bool releases(const State&) { return true; }

  // Whether it shields a live request from the others.
  virtual bool shields(const State&, const Request&) const { return false; }

  // What it keeps between two calls; what it looks up anew each time is none of it.
  virtual void visit(Archive&) {}

  std::vector<Decision>* log = nullptr;
  std::array<int64_t, kVerdicts> verdicts{};  // a verdict that is only repeated counts once

 protected:
  void note(State& state, int place, Verdict verdict, int64_t against = -1, double slack = 0.0,
            double cost = 0.0, double foreseen = -1.0) {
    Request& r = state.requests[place];
    const int told = r.stage * kVerdicts + static_cast<int>(verdict);
    if (r.told != told) ++verdicts[static_cast<int>(verdict)];
    r.told = told;
    if (!log) return;
    log->push_back({state.now, r.key, r.stage, verdict, against, slack, cost, foreseen,
                    r.promoted ? r.promoted_at : -1.0});
  }

  void launch(State& state, int place, std::vector<Unit>& started, Verdict verdict) {
    note(state, place, verdict);
    started.push_back(state.start(state.now, &place, 1));
  }
};

constexpr std::array<int, kStages> kStageOrder{kAction, kPrefill, kVit};

}  // namespace xinfer
