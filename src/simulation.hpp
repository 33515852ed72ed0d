// SPDX-License-Identifier: Apache-2.0
// A fleet in virtual time: event heap, device with true rates, virtual robots.
#pragma once

#include <deque>
#include <queue>
#include <utility>

#include "core.hpp"
#include "scenario.hpp"

namespace xinfer {

// Robots ask, wait and ask again. In robot time they execute a row at each control tick instead:
// a chunk is good for some steps from where its observation was, a tick with no such row is
// starved. They tell of their queue at each tick, and a request stands: as soon as the answer has
// left the lanes, the next one is registered, which takes the newest observation that has arrived.
class Simulation {
 public:
  Simulation(Core& core, const Scenario& scenario) : core_(core), s_(scenario) {
    flight_.resize(s_.robots);
    if (in_robot_time()) {
      queues_.resize(s_.robots);
      robot_time.resize(s_.robots);
    }
  }

  std::vector<Response> responses;
  std::vector<Transition> transitions;
  std::vector<RobotTime> robot_time;
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
    for (int r = 0; r < static_cast<int>(robot_time.size()); ++r) {
      const Mirror& mirror = core_.state.mirrors[r];
      robot_time[r].observations = static_cast<double>(mirror.observations);
      robot_time[r].error_sum = mirror.error_sum;
      robot_time[r].error_max = mirror.error_max;
      robot_time[r].device_ms = busy_ns_ * 1e-6;
    }
  }

 private:
  enum class Kind { send, arrive, ready, observed, response, tick, control, sight };
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
  struct Queue {  // of one robot, in robot time; steps
    int64_t executed = 0, good = 0;
    int64_t seen = 0;           // executed at the newest observation that the server has
    int64_t start = 0;          // of the chunk that is computed
    std::deque<std::pair<int64_t, int64_t>> sights;  // on their way: executed, rows left
    std::deque<int64_t> chunks;                      // on their way: where they start
  };
  static constexpr int64_t kNeverNs = std::numeric_limits<int64_t>::max();

  void push(int64_t at_ns, Kind kind, int64_t subject) {
    heap_.push({at_ns, order_++, kind, subject});
  }

  bool in_robot_time() const { return s_.execution_steps != nullptr; }
  const Draw& draw(int64_t robot, int64_t index) const {
    if (in_robot_time()) index %= s_.requests;
    return reinterpret_cast<const Draw*>(s_.draws)[robot * s_.requests + index];
  }
  int64_t budget(int64_t robot, int64_t index) const {
    if (in_robot_time()) index %= s_.requests;
    return s_.budget_ns[robot * s_.requests + index];
  }

  void handle(const Event& event) {
    const int64_t now = event.at_ns;
    switch (event.kind) {
      case Kind::send: {
        Flight& f = flight_[event.subject];
        f.sent_ns = now;
        push(now + static_cast<int64_t>(draw(event.subject, f.index).up), Kind::arrive, event.subject);
        if (in_robot_time()) control(event.subject, now);
        break;
      }
      case Kind::arrive: {
        announce(event.subject, now);
        const Draw& d = draw(event.subject, flight_[event.subject].index);
        push(now + static_cast<int64_t>(d.front_end), Kind::ready, event.subject);
        break;
      }
      case Kind::ready: {
        submit(event.subject, now);
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
        if (in_robot_time()) {
          take_chunk(event.subject);
          break;
        }
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
      case Kind::control:
        control(event.subject, now);
        break;
      case Kind::sight: {
        Queue& q = queues_[event.subject];
        const auto [executed, left] = q.sights.front();
        q.sights.pop_front();
        q.seen = executed;
        core_.observe(now, event.subject,
                      {static_cast<double>(executed), static_cast<double>(left),
                       static_cast<double>(s_.execution_steps[event.subject]), s_.spacing_ns * 1e-6});
        break;
      }
    }
  }

  void announce(int64_t robot, int64_t now) {
    Flight& f = flight_[robot];
    f.arrival_ns = now;
    f.key = ++last_key_;
    robot_of_.push_back(static_cast<int>(robot));
    core_.announce(now, robot, now, budget(robot, f.index), s_.period_ns);
  }

  void submit(int64_t robot, int64_t now) {
    const Flight& f = flight_[robot];
    core_.submit(now, f.key, robot, f.arrival_ns, budget(robot, f.index), s_.reserved_ns,
                 s_.period_ns);
  }

  // Executes a row, if there is one, and tells the server.
  void control(int64_t robot, int64_t now) {
    Queue& q = queues_[robot];
    const bool has_row = q.executed < q.good;
    if (has_row) ++q.executed;
    if (now >= s_.count_from_ns) {
      RobotTime& out = robot_time[robot];
      ++out.ticks;
      ++(has_row ? out.executed : out.starved);
    }
    q.sights.push_back({q.executed, q.good - q.executed});
    push(now + static_cast<int64_t>(draw(robot, flight_[robot].index).up), Kind::sight, robot);
    if (now + s_.spacing_ns < s_.end_ns) push(now + s_.spacing_ns, Kind::control, robot);
  }

  void take_chunk(int64_t robot) {
    Queue& q = queues_[robot];
    q.good = std::max(q.good, q.chunks.front() + s_.execution_steps[robot]);
    q.chunks.pop_front();
  }

  void respond(int64_t robot, int64_t now) {
    Flight& f = flight_[robot];
    f.pace_ns = core_.pace_ns(static_cast<int>(robot));
    const int64_t at = now + s_.output_ns + static_cast<int64_t>(draw(robot, f.index).down);
    push(at, Kind::response, robot);
    if (!in_robot_time()) return;
    queues_[robot].chunks.push_back(queues_[robot].start);
    responses.push_back({robot, f.index, f.sent_ns, at, budget(robot, f.index)});
    if (now >= s_.end_ns) return;
    ++f.index;
    f.sent_ns = now;
    announce(robot, now);
    submit(robot, now);
  }

  void dispatch(int64_t now) {
    core_.release(now, released_);
    for (int64_t key : released_) respond(robot_of_[key - 1], now);
    core_.dispatch(now, started_);
    if (!started_.empty()) {
      progress(now);
      for (const Unit& unit : started_) {
        const int64_t robot = core_.state.requests[unit.members[0]].robot;
        if (in_robot_time() && unit.stage == kVit)
          for (int m = 0; m < unit.count; ++m) {
            Queue& q = queues_[core_.state.requests[unit.members[m]].robot];
            q.start = q.seen;
          }
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
    if (!executing_.empty() && now > s_.count_from_ns && now <= s_.end_ns)
      busy_ns_ += now - std::max(progressed_ns_, s_.count_from_ns);
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
  int64_t order_ = 0, last_key_ = 0, progressed_ns_ = 0, next_end_ns_ = kNeverNs,
          busy_ns_ = 0;
  size_t ending_ = 0;
  bool tick_pending_ = false;
  std::vector<Flight> flight_;
  std::vector<Queue> queues_;
  std::vector<int> robot_of_;  // by key - 1
  std::vector<Executing> executing_;
  Counts counts_{};
  std::vector<Unit> started_;
  std::vector<int64_t> finished_, released_;
};

}  // namespace xinfer
