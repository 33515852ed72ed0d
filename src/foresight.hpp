// SPDX-License-Identifier: Apache-2.0
// The default policy: what is urgent starts; other work starts early only if playing the near
// future forward finds nobody hurt; robots with time to spare are asked back at the next gap.
#pragma once

#include "decision.hpp"
#include "pacing.hpp"
#include "rollout.hpp"

namespace xinfer {

struct ForesightSettings {
  RolloutSettings rollout;
  PacingSettings pacing;
  double tolerance = 0.0;   // soft count of late requests that an early start may add
  int tries = 0;            // early starts that are tried for a stage in one pass
  double shed_at = 0.0;     // soft count at which putting off a late request is tried
  double shed_gain = 0.0;   // soft count that putting off must save
  double shed_share = 0.0;  // of all requests that may be put off
  double shed_burst = 0.0;  // of them at once
  double put_off = 0.0;     // how much later one is due then, at most
  double patience = 0.0;    // least time after which a robot gives its request up
  double spare = 0.0;       // time in which a robot is not put off again
  double hopeless = 0.0;    // share of its budget by which a request late in any case is due later
  double gone = 0.0;        // a robot that is overdue by this is not foreseen any more
};

class Foresight : public Policy {
 public:
  explicit Foresight(ForesightSettings settings)
      : s_(settings), pacing_(settings.pacing), allowance_(settings.shed_burst / 2.0) {}

  void dispatch(State& state, double now, std::vector<Unit>& started) override {
    state.advance(now);
    if (!state.waits()) return;
    look(state);
    Rollout rollout(state, s_.rollout);
    double cost = shed(state, rollout);  // of leaving the rest waiting; negative: not known
    for (int stage : kStageOrder) {
      int tries = 0;
      // by the time they are due; a batch takes along who waits behind the first
      for (Mask mask = o_.waiting[stage]; mask && state.has_room(stage);) {
        const int first = lowest(mask);
        mask &= mask - 1;
        const Mask taken = o_.batch(state, stage, first);
        const bool urgent = o_.items[first].due - now <= s_.rollout.urgent;
        if (!urgent) {
          if (tries++ >= s_.tries) break;
          if (cost < 0.0) cost = rollout.play(o_, kNever);
          Outlook with = o_;
          with.start(state, stage, taken, now);
          const double cost_with = rollout.play(with, cost + s_.tolerance);
          if (cost_with > cost + s_.tolerance) {
            const int place = o_.items[first].place;
            note(state, place, Verdict::deferred_rollout, hurt(state, rollout), cost, cost_with);
            break;
          }
          cost = cost_with;
        } else {
          cost = -1.0;
        }
        o_.start(state, stage, taken, now);
        mask &= ~taken;
        launch_batch(state, taken, started, urgent ? Verdict::issued_protected : Verdict::issued);
      }
    }
  }

  double pace(State& state, int robot) override {
    allowance_ = std::min(allowance_ + s_.shed_share, s_.shed_burst);
    return pacing_.next(state, robot);
  }

  bool shields(const State& state, const Request& r) const override {
    return due(state, state.load(Counts{}), r) - state.now <= s_.rollout.urgent;
  }

  void visit(Archive& a) override { a(allowance_); }

 private:
  // Key of the first registered request that the rollout found late, -1 if none.
  int64_t hurt(const State& state, const Rollout& rollout) const {
    for (Mask mask = rollout.late; mask; mask &= mask - 1) {
      const int place = o_.items[lowest(mask)].place;
      if (place >= 0) return state.requests[place].key;
    }
    return -1;
  }

  void launch_batch(State& state, Mask taken, std::vector<Unit>& started, Verdict verdict) {
    std::array<int, kMaxBatch> places{};
    int count = 0;
    for (; taken; taken &= taken - 1) {
      places[count] = o_.items[lowest(taken)].place;
      note(state, places[count++], verdict);
    }
    started.push_back(state.start(state.now, places.data(), count));
  }

  // Live requests, those in CPU preparation, and each robot's next one, by the time they are due.
  void look(const State& state) {
    all_.clear();
    const Load& alone = state.load(Counts{});
    for (int place : state.live) {
      const Request& r = state.requests[place];
      all_.push_back({due(state, alone, r), state.now, place, r.robot});
    }
    for (size_t number = 0; number < state.robots.size(); ++number) {
      const Robot& robot = state.robots[number];
      if (!robot.known || (robot.in_server && !robot.announced)) continue;
      double arrival = robot.last_arrival;
      if (robot.announced) {
        if (state.now > arrival + s_.gone) continue;  // it was never registered
      } else {
        const double next = robot.last_arrival + std::max(robot.period, robot.paced);
        if (state.now > next + s_.gone) continue;
        arrival = std::max({next, robot.returned + s_.pacing.back, state.now});
      }
      const double from = std::max(arrival + state.device.front_end, state.now + 0.1);
      if (from < state.now + s_.rollout.horizon)
        all_.push_back({arrival + robot.budget - s_.pacing.reserved, from, -1,
                        static_cast<int>(number)});
    }
    const auto sooner = [&](const Item& a, const Item& b) {
      const bool runs_a = runs(state, a), runs_b = runs(state, b);
      if (runs_a != runs_b) return runs_a;
      return a.due != b.due ? a.due < b.due : a.robot < b.robot;
    };
    if (all_.size() > kMaxItems) {
      std::partial_sort(all_.begin(), all_.begin() + kMaxItems, all_.end(), sooner);
      all_.resize(kMaxItems);
    }
    std::sort(all_.begin(), all_.end(), [](const Item& a, const Item& b) {
      return a.due != b.due ? a.due < b.due : a.robot < b.robot;
    });
    lay_out(state);
  }

  double due(const State& state, const Load& alone, const Request& r) const {
    const double due = r.deadline + r.put_off, finish = state.now + state.remaining(alone, r);
    if (finish <= due || s_.hopeless <= 0.0) return due;
    // late in any case: makes room, and comes back soon
    const double step = s_.hopeless * std::min(r.budget, s_.rollout.urgent);
    return due + step * std::ceil((finish - due) / step);
  }

  static bool runs(const State& state, const Item& item) {
    return item.place >= 0 && state.requests[item.place].unit >= 0;
  }

  void lay_out(const State& state) {
    o_.size = static_cast<int>(all_.size());
    o_.waiting = {};
    o_.coming = 0;
    o_.running = 0;
    o_.counts = state.running;
    unit_of_.assign(state.units.size(), -1);
    for (int i = 0; i < o_.size; ++i) {
      o_.items[i] = all_[i];
      const int place = all_[i].place;
      if (place < 0) {
        o_.coming |= bit(i);
        continue;
      }
      const Request& r = state.requests[place];
      if (r.unit < 0) {
        o_.waiting[r.stage] |= bit(i);
        continue;
      }
      int& k = unit_of_[r.unit];
      if (k >= 0) {
        o_.units[k].items |= bit(i);
      } else {
        const Unit& unit = state.units[r.unit];
        k = o_.running++;
        o_.units[k] = {bit(i), unit.stage, unit.begin, std::max(unit.left, 0.3)};
      }
    }
  }

  // Puts off late requests, one at a time, where that saves others; returns the cost that is left.
  double shed(State& state, Rollout& rollout) {
    double cost = -1.0;
    for (int round = 0; round < 3 && allowance_ >= 1.0; ++round) {
      cost = rollout.play(o_, kNever);
      if (cost < s_.shed_at) break;
      Mask late = rollout.late & (o_.waiting[0] | o_.waiting[1] | o_.waiting[2]);
      int best = -1, tried = 0;
      double least = cost - s_.shed_gain;
      for (; late && tried < 4; late &= late - 1, ++tried) {
        const int i = lowest(late);
        const Request& r = state.requests[o_.items[i].place];
        if (r.put_off > 0.0 || state.now < state.robots[r.robot].spared_until) continue;
        const double other = rollout.play(put_off(i, respite(r)), least);
        if (other < least) {
          least = other;
          best = i;
        }
      }
      if (best < 0) break;
      const int place = o_.items[best].place;
      note(state, place, Verdict::put_off, -1, cost, least);
      const double by = respite(state.requests[place]);
      o_ = put_off(best, by);
      state.requests[place].put_off = by;
      state.robots[state.requests[place].robot].spared_until = state.now + s_.spare;
      allowance_ -= 1.0;
      cost = -1.0;
    }
    return cost;
  }

  // How much later a request is due once it is put off: it must still be answered before its
  // robot gives it up.
  double respite(const Request& r) const {
    const double patience = std::max(2.0 * r.budget, s_.patience);
    return std::max(std::min(s_.put_off, r.arrival + patience - s_.pacing.back - r.deadline), 0.0);
  }

  // The outlook with item i due later; items stay in order.
  Outlook put_off(int i, double by) const {
    Outlook o = o_;
    const double due = o_.items[i].due + by;
    int last = i;
    while (last + 1 < o_.size && o_.items[last + 1].due <= due) ++last;
    const auto moved = [&](Mask mask) {  // rotates bits i .. last one place down
      const Mask span = (last == 63 ? ~Mask{0} : bit(last + 1) - 1) & ~(bit(i) - 1);
      const Mask inner = ((mask & span & ~bit(i)) >> 1) | (mask & bit(i) ? bit(last) : 0);
      return (mask & ~span) | inner;
    };
    for (int k = i; k < last; ++k) o.items[k] = o_.items[k + 1];
    o.items[last] = o_.items[i];
    o.items[last].due = due;
    for (Mask& mask : o.waiting) mask = moved(mask);
    o.coming = moved(o.coming);
    for (int k = 0; k < o.running; ++k) o.units[k].items = moved(o.units[k].items);
    return o;
  }

  ForesightSettings s_;
  Pacing pacing_;
  double allowance_;  // requests that may be put off now
  Outlook o_;
  std::vector<Item> all_;
  std::vector<int> unit_of_;
};

}  // namespace xinfer
