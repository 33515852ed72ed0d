// SPDX-License-Identifier: Apache-2.0
// The scheduler's state: live requests, running units with their progress, recent arrivals.
#pragma once

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "device.hpp"
#include "mirror.hpp"
#include "request.hpp"

namespace xinfer {

// Everything that a scheduling policy sees. Pure: the time is an argument.
class State {
 public:
  State(Device device, Counts limits, bool interference)
      : device(std::move(device)), limits(limits), interference(interference) {
    fill_loads();
  }

  Device device;
  Counts limits;      // units that may run at once on each lane
  bool interference;  // false: every lookup is at n = 0 (an ablation)
  bool stage_overlap = true;  // false: units of one stage at a time (an ablation)
  int max_held = 0;           // requests between the start of ViT and their end, 0: any number
  int held = 0;

  std::vector<Request> requests;                   // stable places
  std::vector<int> live;                           // places in use, in the order of submission
  std::array<std::vector<int>, kStages> ready;     // by (deadline, key)
  std::vector<Unit> units;                         // running, in the order of dispatch
  std::vector<Arrival> history;                    // registrations of the last window
  std::vector<Robot> robots;
  std::vector<Mirror> mirrors;                     // of each robot's action queue
  Counts running{};
  double now = 0.0;
  double window = 180.0;  // P, of the arrival history
  double learning_rate = 0.0;  // of the online correction, 0 to trust the table
  std::array<double, kStages> correction{1.0, 1.0, 1.0};  // true W_s over that of the table
  int64_t last_unit = 0;

  bool earlier(int a, int b) const {
    const Request &x = requests[a], &y = requests[b];
    return x.deadline != y.deadline ? x.deadline < y.deadline : x.key < y.key;
  }

  const Load& load(const Counts& n) const {
    if (!interference) return loads_[0];
    int at = 0;
    for (int s = 0; s < kStages; ++s)
      at = at * (device.bound[s] + 2) + std::min(n[s], device.bound[s] + 1);
    return loads_[at];
  }

  // Eq. 9, residual time of a running unit.
  double residual(const Load& load, const Unit& unit) const {
    return std::max(unit.begin - now, 0.0) + unit.left * load.inverse[unit.stage];
  }

  // Eq. 10, remaining time R_j(n) to the end of the output, without queueing to come.
  double remaining(const Load& load, const Request& r) const {
    const double current = r.unit < 0 ? load.stage[r.stage] : residual(load, units[r.unit]);
    return current + load.rest[r.stage];
  }

  // Eq. 3
  double slack(const Load& load, const Request& r) const {
    return r.deadline - now - remaining(load, r);
  }

  // Eq. 9: done work integrates rho_s(n_r(u) - e_s) over the observed counts.
  void advance(double t) {
    for (Unit& unit : units) {
      const double from = std::max(now, unit.begin);
      if (t > from) {
        const double rate =
            interference ? device.rate[unit.stage][device.index_without(running, unit.stage)] : 1.0;
        unit.done += (t - from) * rate;
        unit.left = std::max(unit.work - unit.done, 0.0);
      }
    }
    now = std::max(now, t);
  }

  void visit(Archive& archive);  // core.hpp

  // Requests that may still enter ViT.
  int free_states() const { return max_held > 0 ? max_held - held : kMaxBatch; }

  // Whether the lane of a stage can take another unit.
  bool has_room(int stage) const {
    if (running[stage] >= limits[stage]) return false;
    if (stage == kVit && free_states() <= 0) return false;
    return stage_overlap || running[0] + running[1] + running[2] == running[stage];
  }

  // Whether work waits that a lane could take.
  bool waits() const {
    for (int stage = 0; stage < kStages; ++stage)
      if (!ready[stage].empty() && has_room(stage)) return true;
    return false;
  }

  int find(int64_t key) const {
    for (int place : live)
      if (requests[place].key == key) return place;
    return -1;
  }

  void wait(int place) {
    auto& queue = ready[requests[place].stage];
    queue.insert(std::upper_bound(queue.begin(), queue.end(), place,
                                  [this](int a, int b) { return earlier(a, b); }), place);
  }

  void leave_queue(int place) {
    auto& queue = ready[requests[place].stage];
    queue.erase(std::find(queue.begin(), queue.end(), place));
  }

  int submit(double t, int64_t key, int number, double arrival, double budget, double reserved,
             double period) {
    advance(t);
    int place = -1;
    if (free_.empty()) {
      place = static_cast<int>(requests.size());
      requests.emplace_back();
    } else {
      place = free_.back();
      free_.pop_back();
    }
    Request& r = requests[place];
    r = Request{};
    r.key = key;
    r.robot = number;
    r.arrival = arrival;
    r.budget = budget;
    r.deadline = arrival + budget - reserved;
    r.queued = t;
    live.push_back(place);
    wait(place);
    size_t old = 0;
    while (old < history.size() && history[old].time <= t - window) ++old;
    history.erase(history.begin(), history.begin() + old);
    history.push_back({t, budget});
    if (number >= static_cast<int>(robots.size()) || arrival >= robots[number].last_arrival ||
        !robots[number].known) {  // else a newer one of the robot is here already
      announce(t, number, arrival, budget, period);
      robots[number].announced = false;
    }
    device.front_end += learning_rate * (t - arrival - device.front_end);
    return place;
  }

  // Starts a unit of requests that wait for one stage.
  const Unit& start(double t, const int* members, int count) {
    const int stage = requests[members[0]].stage;
    Unit unit;
    unit.number = ++last_unit;
    unit.stage = stage;
    unit.count = count;
    unit.begin = t + device.overhead[stage];
    unit.work = device.batch_work(stage, count) * correction[stage];
    unit.left = unit.work;
    for (int i = 0; i < count; ++i) {
      unit.members[i] = members[i];
      leave_queue(members[i]);
      requests[members[i]].unit = static_cast<int>(units.size());
      if (stage == kVit) {
        requests[members[i]].holds = true;
        ++held;
        mirrors[requests[members[i]].robot].compute();
      }
    }
    ++running[stage];
    units.push_back(unit);
    return units.back();
  }

  // Takes a unit off its lane and returns it; its requests wait nowhere yet.
  Unit stop(double t, int64_t number) {
    advance(t);
    for (size_t i = 0; i < units.size(); ++i) {
      if (units[i].number != number) continue;
      Unit unit = units[i];
      units.erase(units.begin() + i);
      --running[unit.stage];
      for (size_t k = i; k < units.size(); ++k)
        for (int m = 0; m < units[k].count; ++m)
          requests[units[k].members[m]].unit = static_cast<int>(k);
      for (int m = 0; m < unit.count; ++m) requests[unit.members[m]].unit = -1;
      return unit;
    }
    throw std::out_of_range("no unit " + std::to_string(number) + " is running");
  }

  // Online correction: the work that a unit turned out to hold, by the table's rates, drifts W_s.
  void learn(const Unit& unit) {
    if (learning_rate <= 0.0 || unit.done <= 0.0) return;
    const double seen = unit.done / device.batch_work(unit.stage, unit.count);
    double& c = correction[unit.stage];
    c += learning_rate * (std::min(std::max(seen, 0.1), 10.0) - c);
    fill_loads();
  }

  // How much slower the device has turned out to be than its table.
  double slowdown() const {
    double table = 0.0, seen = 0.0;
    for (int s = 0; s < kStages; ++s) {
      table += device.work[s];
      seen += device.work[s] * correction[s];
    }
    return seen / table;
  }

  // A request has reached the server and is prepared on the CPU.
  void announce(double t, int number, double arrival, double budget, double period) {
    advance(t);
    if (number >= static_cast<int>(robots.size())) robots.resize(number + 1);
    if (robots.size() > mirrors.size()) mirrors.resize(robots.size());
    Robot& who = robots[number];
    who.known = who.in_server = who.announced = true;
    who.last_arrival = arrival;
    who.budget = budget;
    who.period = period;
    who.paced = 0.0;
  }

  // A robot tells of its action queue.
  void observe(double t, int number, const Sight& sight) {
    advance(t);
    if (number >= static_cast<int>(mirrors.size())) mirrors.resize(number + 1);
    mirrors[number].observe(t, sight);
  }

  // The last stage of a request has ended: its chunk is on its way.
  void send(int place, double t) {
    mirrors[requests[place].robot].send(t, device.output);
    remove(place, t);
  }

  // Mean |predicted - observed| executed steps, over all robots.
  double mirror_error() const {
    double sum = 0.0;
    int64_t count = 0;
    for (const Mirror& mirror : mirrors) {
      sum += mirror.error_sum;
      count += mirror.observations;
    }
    return count ? sum / count : 0.0;
  }

  void remove(int place, double t) {
    live.erase(std::find(live.begin(), live.end(), place));
    Robot& who = robots[requests[place].robot];
    if (!who.announced && who.last_arrival <= requests[place].arrival) {  // no newer one is here
      who.in_server = false;
      who.returned = t;
    }
    if (requests[place].holds) {
      --held;
      mirrors[requests[place].robot].withdraw();
    }
    requests[place].key = -1;
    free_.push_back(place);
  }

 private:
  // Eq. 8 for every load up to one unit beyond the bounds: there n - e_s is at the bound still.
  void fill_loads() {
    const Counts& c = device.bound;
    loads_.clear();
    Counts n{};
    for (n[0] = 0; n[0] <= c[0] + 1; ++n[0])
      for (n[1] = 0; n[1] <= c[1] + 1; ++n[1])
        for (n[2] = 0; n[2] <= c[2] + 1; ++n[2]) {
          Load load;
          const int all = device.index(n);
          for (int s = 0; s < kStages; ++s) {
            const double work = device.work[s] * correction[s];
            load.stage[s] = device.overhead[s] + work * (interference ? device.inverse[s][all] : 1.0);
            load.inverse[s] = interference ? device.inverse[s][device.index_without(n, s)] : 1.0;
          }
          load.rest[kAction] = device.output;
          load.rest[kPrefill] = load.stage[kAction] + load.rest[kAction];
          load.rest[kVit] = load.stage[kPrefill] + load.rest[kPrefill];
          loads_.push_back(load);
        }
  }

  std::vector<Load> loads_;
  std::vector<int> free_;
};

}  // namespace xinfer
