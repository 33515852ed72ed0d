// SPDX-License-Identifier: Apache-2.0
// Whole-pipeline batches that leave robots the least time without rows, found by playing ahead.
#pragma once

#include "robot_time.hpp"

namespace xinfer {

constexpr size_t kMaxPlanned = 32;  // robots, those that run dry first
constexpr double kLightest = 1e-3;  // weight that counts
constexpr double kMaxPlan = 10.0;   // length of a plan, in batches of the largest size

struct PlayAheadSettings {
  int max_batch = 1;
  TierWeights weights;
  double flat = 0.0;       // time in which starvation counts in full, in lives of the shortest chunk
  double fade = 0.0;       // time after it over which it counts less and less
  double bonus = 0.0;      // life by which a plan may treat a robot as drier, for each weight above 1
  bool protection = true;  // whether who has starved counts more, without bound above a floor
  double memory = 0.0;     // weight of the share of time in which a robot starved of late
  double floor = 0.0;      // that share from which on it costs in addition
  double floor_price = 0.0;
};

class PlayAhead : public WholePipeline {
 public:
  explicit PlayAhead(PlayAheadSettings settings)
      : WholePipeline(settings.max_batch), s_(settings) {}

 protected:
  std::vector<int> choose(State& state, int most) override {
    speed_ = state.slowdown();
    look(state, most);
    const int largest = std::min<int>(most, queues_.size());
    double best = kNever;
    std::vector<int> chosen, first;
    for (int size = 1; size <= largest; ++size)
      for (double bonus : bonuses_) {
        first_ = queues_;
        driest(first_, size, bonus, first);
        double at = 0.0;
        step(state, first_, first, at);
        const double cost = play(state, at, largest, best);
        if (cost >= best) continue;
        best = cost;
        chosen = first;
      }
    for (int& index : chosen) index = queues_[index].place;
    return chosen;
  }

 private:
  struct Queue {
    int place;               // of its request
    double weight, starved;  // starved: share of its time of late
    double life, lag;        // of a chunk; from the end of the lanes to its first row
    double left;             // until it runs dry
    double cost;             // counted time without rows
  };

  void look(const State& state, int most) {
    queues_.clear();
    double shortest = kNever, lightest = kNever;
    heaviest_ = 0.0;
    for (int place : by_arrival(state)) {
      const Mirror& mirror = state.mirrors[state.requests[place].robot];
      const double life = mirror.horizon * mirror.spacing;
      const double left = mirror.known ? std::max(mirror.dry_at() - state.now, 0.0) : 0.0;
      queues_.push_back({place, s_.weights.of(mirror), 1.0 - mirror.moves, life,
                         mirror.link + state.device.output, left, 0.0});
      shortest = std::min(shortest, life);
      lightest = std::min(lightest, queues_.back().weight);
      heaviest_ = std::max(heaviest_, queues_.back().weight);
    }
    lightest = std::max(lightest, kLightest);
    for (Queue& q : queues_) q.weight /= lightest;  // only their ratio counts
    heaviest_ /= lightest;
    std::stable_sort(queues_.begin(), queues_.end(),
                     [](const Queue& a, const Queue& b) { return a.left < b.left; });
    if (queues_.size() > kMaxPlanned) queues_.resize(kMaxPlanned);
    const double longest = kMaxPlan * pipeline_ms(state, most) * speed_;
    flat_ = std::min(s_.flat * shortest, longest);
    fade_ = std::max(std::min(s_.fade * shortest, longest - flat_), 1.0);
    bonuses_.assign(1, 0.0);
    if (heaviest_ > 1.0 && s_.bonus > 0.0) bonuses_.push_back(s_.bonus * shortest);
  }

  // Indices of those that run dry first; who weighs more is taken for drier.
  void driest(const std::vector<Queue>& queues, int size, double bonus, std::vector<int>& out) {
    out.resize(queues.size());
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int>(i);
    const auto key = [&](int i) { return queues[i].left - bonus * (queues[i].weight - 1.0); };
    std::partial_sort(out.begin(), out.begin() + size, out.end(), [&](int a, int b) {
      const double x = key(a), y = key(b);
      return x != y ? x < y : a < b;
    });
    out.resize(size);
  }

  // How much the time up to one counts.
  double counted(double at) const {
    if (at <= flat_) return at;
    const double over = std::min(at - flat_, fade_);
    return flat_ + over - over * over / (2.0 * fade_);
  }

  // Lets a batch be computed from a time on.
  void step(const State& state, std::vector<Queue>& queues, const std::vector<int>& batch,
            double& at) {
    const double took = pipeline_ms(state, static_cast<int>(batch.size())) * speed_;
    given_.assign(queues.size(), 0);
    for (int index : batch) given_[index] = 1;
    for (size_t i = 0; i < queues.size(); ++i) {
      Queue& q = queues[i];
      const double until = given_[i] ? took + q.lag : took;
      if (until > q.left) q.cost += counted(at + until) - counted(at + q.left);
      q.left = given_[i] ? q.life - std::min(q.left, until) + q.lag : std::max(q.left - took, 0.0);
    }
    at += took;
  }

  // Least cost of going on with batches of one size; gives a size up once it exceeds the bound.
  double play(const State& state, double from, int largest, double bound) {
    double least = bound;
    for (int size = 1; size <= largest; ++size)
      for (double bonus : bonuses_) {
        after_ = first_;
        for (double at = from; at < flat_ + fade_;) {
          driest(after_, size, bonus, batch_);
          step(state, after_, batch_, at);
        }
        least = std::min(least, cost(after_));
      }
    return least;
  }

  double cost(const std::vector<Queue>& queues) const {
    const double all = flat_ + 0.5 * fade_;
    double sum = 0.0;
    for (const Queue& q : queues) {
      const double share = q.cost / all;
      if (!s_.protection) {
        sum += q.weight * share;
        continue;
      }
      const double above = std::max(q.starved - s_.floor, 0.0), scale = heaviest_ * above;
      sum += q.weight * q.weight * share * (share + s_.memory * q.starved) +
             s_.floor_price * above * (1.0 + scale * scale) * share;  // no weight outdoes it
    }
    return sum;
  }

  PlayAheadSettings s_;
  std::vector<int> batch_;
  std::vector<Queue> queues_, first_, after_;
  std::vector<double> bonuses_;
  std::vector<char> given_;
  double flat_ = 0.0, fade_ = 1.0, speed_ = 1.0, heaviest_ = 0.0;
};

}  // namespace xinfer
