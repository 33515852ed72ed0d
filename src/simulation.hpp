// SPDX-License-Identifier: Apache-2.0
// A fleet in virtual time: event heap, device with true rates, virtual robots.
#pragma once

#include <queue>

#include "core.hpp"

namespace xinfer {

// One request of one robot as the scenario has drawn it. Times in ns, work relative to W_s.
struct Draw {
  double up, front_end, vit, prefill, action, down, jitter;
};

constexpr int kDraws = 7;

struct Scenario {
  int robots = 0, requests = 0;  // requests drawn for each robot
  const int64_t* start_ns = nullptr;   // (robots,) first send
  const int64_t* quota = nullptr;      // (robots,) requests after which a robot leaves
  const int64_t* budget_ns = nullptr;  // (robots, requests)
  const double* draws = nullptr;       // (robots, requests, 7), as Draw; times in ns
  int64_t end_ns = 0;                  // no request is sent from here on
  int64_t period_ns = 0;               // TE
  int64_t reserved_ns = 0;             // delta
  int64_t output_ns = 0;               // h_out
  int64_t observation_ns = 0;          // delay until the scheduler sees a completion
  int64_t tick_ns = 0;                 // while work waits
  std::array<std::vector<double>, kStages> true_rate;
};

struct Response {
  int64_t robot, index, sent_ns, received_ns, budget_ns;
};

struct Transition {  // the scheduler starts a unit, or sees it end
  int64_t at_ns, unit, stage, count, started;
};

class Simulation {
 public:
  Simulation(Core& core, const Scenario& scenario) : core_(core), s_(scenario) {
    flight_.resize(s_.robots);
  }

  std::vector<Response> responses;
  std::vector<Transition> transitions;
  bool keep_transitions = false;
  int64_t events = 0;

  void run() {
    for (int r = 0; r < s_.robots; ++r)
      if (s_.quota[r] > 0) push(s_.start_ns[r], Kind::send, r);
    while (true) {
      const int64_t next_end = executing_.empty() ? kNeverNs : next_end_ns_;
      if (heap_.empty() && next_end == kNeverNs) break;
      ++events;
      if (!heap_.empty() && heap_.top().at_ns <= next_end) {
        const Event event = heap_.top();
        heap_.pop();
        handle(event);
      } else {
        end_of_unit(next_end);
      }
    }
  }

 private:
  enum class Kind { send, arrive, ready, observed, response, tick };
  struct Event {
    int64_t at_ns;
    int64_t order;
    Kind kind;
    int64_t subject;
    bool operator<(const Event& other) const {
      return at_ns != other.at_ns ? at_ns > other.at_ns : order > other.order;
    }
  };
  struct Flight {  // the request of a robot that is under way; at most one
    int64_t index = 0, sent_ns = 0, arrival_ns = 0, key = 0, pace_ns = 0;
  };
  struct Executing {
    int64_t number;
    int stage;
    int64_t begin_ns;
    double left;  // [ms of isolated work]
  };
  static constexpr int64_t kNeverNs = std::numeric_limits<int64_t>::max();

  void push(int64_t at_ns, Kind kind, int64_t subject) {
    heap_.push({at_ns, order_++, kind, subject});
  }

  const Draw& draw(int64_t robot, int64_t index) const {
    return reinterpret_cast<const Draw*>(s_.draws)[robot * s_.requests + index];
  }
  int64_t budget(int64_t robot, int64_t index) const {
    return s_.budget_ns[robot * s_.requests + index];
  }

  void handle(const Event& event) {
    const int64_t now = event.at_ns;
    switch (event.kind) {
      case Kind::send: {
        Flight& f = flight_[event.subject];
        f.sent_ns = now;
        push(now + static_cast<int64_t>(draw(event.subject, f.index).up), Kind::arrive, event.subject);
        break;
      }
      case Kind::arrive: {
        Flight& f = flight_[event.subject];
        f.arrival_ns = now;
        f.key = ++last_key_;
        robot_of_.push_back(static_cast<int>(event.subject));
        core_.announce(now, event.subject, now, budget(event.subject, f.index), s_.period_ns);
        push(now + static_cast<int64_t>(draw(event.subject, f.index).front_end), Kind::ready,
             event.subject);
        break;
      }
      case Kind::ready: {
        const Flight& f = flight_[event.subject];
        core_.submit(now, f.key, event.subject, f.arrival_ns, budget(event.subject, f.index),
                     s_.reserved_ns, s_.period_ns);
        dispatch(now);
        break;
      }
      case Kind::observed: {
        if (keep_transitions) note_end(event.subject, now);
        core_.complete(now, event.subject, finished_);
        for (int64_t key : finished_) respond(robot_of_[key - 1], now);
        dispatch(now);
        break;
      }
      case Kind::response: {
        Flight& f = flight_[event.subject];
        responses.push_back({event.subject, f.index, f.sent_ns, now, budget(event.subject, f.index)});
        const int64_t jitter = static_cast<int64_t>(draw(event.subject, f.index).jitter);
        // The robot's rule, robot/next_send.py: s' = max(s + TE, r)
        const int64_t next = std::max(f.sent_ns + std::max(s_.period_ns, f.pace_ns) + jitter, now);
        if (++f.index < s_.quota[event.subject] && f.index < s_.requests && next < s_.end_ns)
          push(next, Kind::send, event.subject);
        break;
      }
      case Kind::tick:
        tick_pending_ = false;
        dispatch(now);
        break;
    }
  }

  void respond(int64_t robot, int64_t now) {
    flight_[robot].pace_ns = core_.pace_ns(static_cast<int>(robot));
    push(now + s_.output_ns + static_cast<int64_t>(draw(robot, flight_[robot].index).down),
         Kind::response, robot);
  }

  void dispatch(int64_t now) {
    core_.dispatch(now, started_);
    if (!started_.empty()) {
      progress(now);
      for (const Unit& unit : started_) {
        const int64_t robot = core_.state.requests[unit.members[0]].robot;
        const Draw& d = draw(robot, flight_[robot].index);
        const double noise = unit.stage == kVit ? d.vit : unit.stage == kPrefill ? d.prefill : d.action;
        const Device& device = core_.state.device;
        executing_.push_back({unit.number, unit.stage,
                              now + static_cast<int64_t>(device.overhead[unit.stage] * 1e6),
                              device.batch_work(unit.stage, unit.count) * noise});
        ++counts_[unit.stage];
        if (keep_transitions) transitions.push_back({now, unit.number, unit.stage, unit.count, 1});
      }
      plan(now);
    }
    if (core_.state.waits() && !tick_pending_) {
      tick_pending_ = true;
      push(now + s_.tick_ns, Kind::tick, 0);
    }
  }

  void progress(int64_t now) {
    for (Executing& e : executing_) {
      const int64_t from = std::max(progressed_ns_, e.begin_ns);
      if (now > from) e.left -= (now - from) * 1e-6 * rate(e.stage);
    }
    progressed_ns_ = now;
  }

  double rate(int stage) const {
    return s_.true_rate[stage][core_.state.device.index_without(counts_, stage)];
  }

  void plan(int64_t now) {
    next_end_ns_ = kNeverNs;
    for (size_t i = 0; i < executing_.size(); ++i) {
      const Executing& e = executing_[i];
      const double left = std::max(e.left, 0.0) / rate(e.stage);
      const int64_t at = std::max(now, e.begin_ns) + static_cast<int64_t>(left * 1e6);
      if (at < next_end_ns_) {
        next_end_ns_ = at;
        ending_ = i;
      }
    }
  }

  void end_of_unit(int64_t now) {
    progress(now);
    const Executing done = executing_[ending_];
    executing_.erase(executing_.begin() + ending_);
    --counts_[done.stage];
    plan(now);
    push(now + s_.observation_ns, Kind::observed, done.number);
  }

  void note_end(int64_t number, int64_t now) {
    for (const Unit& unit : core_.state.units)
      if (unit.number == number) transitions.push_back({now, number, unit.stage, unit.count, 0});
  }

  Core& core_;
  const Scenario& s_;
  std::priority_queue<Event> heap_;
  int64_t order_ = 0, last_key_ = 0, progressed_ns_ = 0, next_end_ns_ = kNeverNs;
  size_t ending_ = 0;
  bool tick_pending_ = false;
  std::vector<Flight> flight_;
  std::vector<int> robot_of_;  // by key - 1
  std::vector<Executing> executing_;
  Counts counts_{};
  std::vector<Unit> started_;
  std::vector<int64_t> finished_;
};

}  // namespace xinfer
