// SPDX-License-Identifier: Apache-2.0
// Whole-pipeline batches by the executed steps that they gain per time of the device.
// Source: Armory, scheduling in robot time; the window and the protection are ours.
#pragma once

#include <tuple>

#include "robot_time.hpp"

namespace xinfer {

struct LookaheadSettings {
  int max_batch = 1;
  int depth = 1;              // batches that are planned ahead
  bool page = false;          // steps are counted to the end of the plan, else to a fixed time
  double window = 0.0;        // of that, in lives of the shortest chunk; at least the longest plan
  TierWeights weights;
  bool protection = true;     // whether who has moved less weighs more
  double fairness = 0.0;      // sqrt(weight) / share^fairness, the share of time in motion
  double least_share = 0.0;   // below which a share weighs no more
};

class Lookahead : public WholePipeline {
 public:
  explicit Lookahead(LookaheadSettings settings)
      : WholePipeline(settings.max_batch), s_(settings) {}

 protected:
  std::vector<int> choose(State& state, int most) override {
    look(state);
    const double speed = state.slowdown(), longest = pipeline_ms(state, most) * speed;
    double shortest = kNever;
    for (const Queue& q : queues_) shortest = std::min(shortest, q.horizon * q.spacing);
    end_ = state.now + std::max(s_.depth * longest, s_.window * shortest);
    best_ = -1.0;
    plan(state, 0, state.now, most, speed, queues_);
    std::vector<int> places;
    for (int index : best_first_) places.push_back(queues_[index].place);
    return places;
  }

 private:
  // A robot's queue as it is planned: rows that are good, and one chunk that is to come.
  struct Queue {
    int place;  // of its request, -1 if it does not wait
    double weight, spacing, horizon, link;
    double steps, good, from;  // executed, good up to, and when
    double start;              // of a chunk that is computed next
    double end, arrival;       // of the chunk to come, infinite if there is none
  };

  double weight(const Mirror& mirror) const {
    const double weight = s_.weights.of(mirror);
    if (!s_.protection) return weight;
    return std::sqrt(weight) / std::pow(std::max(mirror.moves, s_.least_share), s_.fairness);
  }

  void look(const State& state) {
    queues_.clear();
    for (int place : by_arrival(state)) {
      const Mirror& mirror = state.mirrors[state.requests[place].robot];
      Queue q{};
      q.arrival = kNever;
      q.place = place;
      q.weight = weight(mirror);
      q.spacing = mirror.spacing;
      q.horizon = mirror.horizon;
      q.link = 0.5 * mirror.link + state.device.output;
      q.from = state.now;
      if (mirror.known) {
        q.steps = mirror.executed_at(state.now);
        q.good = mirror.good_until();
        q.start = mirror.start();
      }
      queues_.push_back(q);
    }
  }

  // Lets time pass.
  static void run(Queue& q, double until) {
    if (q.arrival <= until) {
      move(q, q.arrival);
      take(q);
    }
    move(q, until);
  }

  static void take(Queue& q) {
    q.good = std::max(q.good, q.end);
    q.arrival = kNever;
  }

  static void move(Queue& q, double until) {
    if (until <= q.from) return;
    q.steps = std::min(q.steps + (until - q.from) / q.spacing, std::max(q.steps, q.good));
    q.from = until;
  }

  static double steps_at(Queue q, double t) {
    run(q, t);
    return q.steps;
  }

  // Tries every size of the batch that starts at a time, and of those after it.
  void plan(const State& state, int level, double t, int most, double speed,
            const std::vector<Queue>& queues) {
    const int robots = static_cast<int>(queues.size());
    for (int size = 1; size <= std::min(most, robots); ++size) {
      const double took = pipeline_ms(state, size) * speed, done = t + took;
      const double end = s_.page ? done : end_;
      std::vector<std::tuple<double, double, int>> gains;  // the largest first, then the driest
      for (int i = 0; i < robots; ++i) {
        const Queue& q = queues[i];
        Queue with = q;
        give(with, t, done);
        const double gain = q.weight * (steps_at(with, end) - steps_at(q, end));
        gains.push_back({-gain, q.from + (q.good - q.steps) * q.spacing, i});
      }
      std::sort(gains.begin(), gains.end());
      std::vector<Queue> next = queues;
      if (level == 0) first_.clear();
      for (int k = 0; k < size; ++k) {
        const int i = std::get<2>(gains[k]);
        give(next[i], t, done);
        if (level == 0) first_.push_back(i);
      }
      for (Queue& q : next) {
        run(q, done);
        q.start = q.steps;
      }
      if (level + 1 < s_.depth) {
        plan(state, level + 1, done, most, speed, next);
      } else {
        judge(state, done, next);
      }
    }
  }

  // Lets a robot have a chunk that starts now and is done at a time.
  static void give(Queue& q, double t, double done) {
    run(q, t);
    if (q.arrival < kNever) take(q);  // it is on its way: nearly there
    q.end = q.start + q.horizon;
    q.arrival = done + q.link;
  }

  // Steps that a whole plan gains, per time that the device needs for it.
  void judge(const State& state, double done, const std::vector<Queue>& after) {
    double gained = 0.0;
    for (size_t i = 0; i < after.size(); ++i) {
      const Queue& before = queues_[i];
      gained += before.weight * (s_.page ? steps_at(after[i], done) - before.steps
                                         : steps_at(after[i], end_) - steps_at(before, end_));
    }
    const double score = gained / (done - state.now);
    if (score <= best_) return;
    best_ = score;
    best_first_ = first_;
  }

  LookaheadSettings s_;
  std::vector<Queue> queues_;
  std::vector<int> first_, best_first_;  // who is in the first batch
  double end_ = 0.0, best_ = 0.0;
};

}  // namespace xinfer
