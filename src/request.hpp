// SPDX-License-Identifier: Apache-2.0
// Requests, units and robots as the scheduler knows them. Times in ms.
#pragma once

#include "archive.hpp"
#include "device.hpp"

namespace xinfer {

struct Request {
  int64_t key = -1;
  int robot = 0;
  double arrival = 0.0, budget = 0.0, deadline = 0.0;  // deadline l = a + b - delta
  int stage = 0;
  int unit = -1;  // index in State::units, -1 while it waits
  bool promoted = false, hopeless = false;
  bool holds = false;  // its ViT has started, so it counts against State::max_held
  double promoted_at = 0.0;
  double queued = 0.0;   // when it was registered
  double put_off = 0.0;  // added to the deadline of a request that is given up for its budget
  int told = -1;         // the newest verdict about it, with its stage

  bool is_protected() const { return promoted && !hopeless; }

  void visit(Archive& a) {
    a(key, robot, arrival, budget, deadline, stage, unit, promoted, hopeless, holds, promoted_at,
      queued, put_off, told);
  }
};

struct Unit {
  int64_t number = -1;
  int stage = 0;
  int count = 0;
  std::array<int, kMaxBatch> members{};  // indices in State::requests
  double begin = 0.0;                    // beta, the end of the launch overhead
  double work = 0.0;                     // W_s, of the whole batch
  double done = 0.0;                     // w
  double left = 0.0;                     // [W_s - w]^+
  double foreseen_end = 0.0;             // as predicted once its dispatch was done

  void visit(Archive& a) {
    a(number, stage, count, members, begin, work, done, left, foreseen_end);
  }
};

struct Arrival {
  double time, budget;

  void visit(Archive& a) { a(time, budget); }
};

// What is known of one robot, to foresee its next request.
struct Robot {
  bool known = false;
  bool in_server = false;      // a request of it is here
  bool announced = false;      // and not registered yet
  double last_arrival = 0.0;   // of its newest request
  double budget = 0.0;         // of that
  double period = 0.0;         // TE
  double paced = 0.0;          // time between arrivals that it was asked for, 0 if none
  double returned = -1e300;    // when its last response left the lanes
  double spared_until = -1e300;  // it is not put off again before

  void visit(Archive& a) {
    a(known, in_server, announced, last_arrival, budget, period, paced, returned, spared_until);
  }
};

// One load n, looked up once: the remaining time of any request follows in constant time.
struct Load {
  std::array<double, kStages> rest{};     // sum of q_k(n) over the stages after s, and h_out
  std::array<double, kStages> stage{};    // q_s(n)
  std::array<double, kStages> inverse{};  // 1 / rho_s(n - e_s), of a running unit
};

}  // namespace xinfer
