// SPDX-License-Identifier: Apache-2.0
// Groups of requests that pass the stages together, and policies that serve one group at a time.
#pragma once

#include "decision.hpp"

namespace xinfer {

// Requests that pass stage after stage together; who has ended or is gone leaves it.
class Group {
 public:
  bool empty() const { return members_.empty(); }

  void form(const State& state, const std::vector<int>& places) {
    members_.clear();
    for (int place : places) members_.push_back({place, state.requests[place].key});
  }

  void tidy(const State& state) {
    const auto gone = [&](const Member& m) { return state.requests[m.place].key != m.key; };
    members_.erase(std::remove_if(members_.begin(), members_.end(), gone), members_.end());
  }

  // The first stage that a member has not passed; one beyond the last if there is no member.
  int stage(const State& state) const {
    int least = kStages;
    for (const Member& m : members_) least = std::min(least, state.requests[m.place].stage);
    return least;
  }

  // Members that wait for a stage, as many as one unit takes.
  std::vector<int> batch(const State& state, int stage) const {
    std::vector<int> places;
    for (const Member& m : members_) {
      const Request& r = state.requests[m.place];
      if (r.stage == stage && r.unit < 0 &&
          static_cast<int>(places.size()) < state.device.max_batch(stage))
        places.push_back(m.place);
    }
    return places;
  }

  void visit(Archive& a) { a(members_); }

 private:
  struct Member {
    int place;
    int64_t key;

    void visit(Archive& a) { a(place, key); }
  };
  std::vector<Member> members_;
};

class GroupPolicy : public Policy {
 protected:
  // Starts what the lane of the group's stage takes: nobody is a stage ahead of the others.
  void issue(State& state, const Group& group, std::vector<Unit>& started) {
    const int stage = group.stage(state);
    while (stage < kStages && state.has_room(stage)) {
      const std::vector<int> places = group.batch(state, stage);
      if (places.empty()) break;
      for (int place : places) note(state, place, Verdict::issued);
      started.push_back(state.start(state.now, places.data(), static_cast<int>(places.size())));
    }
  }

  // Requests that may enter ViT, at most so many.
  static int room(const State& state, int most) {
    return state.max_held > 0 ? std::min(most, state.free_states()) : most;
  }

  // Those that wait for ViT, by arrival.
  static std::vector<int> by_arrival(const State& state) {
    std::vector<int> places = state.ready[kVit];
    std::sort(places.begin(), places.end(), [&](int a, int b) {
      return state.requests[a].key < state.requests[b].key;
    });
    return places;
  }
};

// One group at a time, through the whole pipeline, nothing beside it.
class WholePipeline : public GroupPolicy {
 public:
  explicit WholePipeline(int max_batch) : max_batch_(max_batch) {}

  void dispatch(State& state, double now, std::vector<Unit>& started) override {
    state.advance(now);
    group_.tidy(state);
    const int most = room(state, max_batch_);
    if (group_.empty() && most > 0 && !state.ready[kVit].empty())
      group_.form(state, choose(state, most));
    issue(state, group_, started);
  }

  void visit(Archive& a) override { a(group_); }

 protected:
  // Who of those that wait for ViT goes next, at most so many; nobody to wait.
  virtual std::vector<int> choose(State& state, int most) = 0;

  int max_batch_;

 private:
  Group group_;
};

}  // namespace xinfer
