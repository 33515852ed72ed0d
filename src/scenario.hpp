// SPDX-License-Identifier: Apache-2.0
// What a simulated round is made of, and what it leaves behind.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "device.hpp"

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
  // Robot time: robots execute rows and their requests stand, see Simulation; or null
  const int64_t* execution_steps = nullptr;  // (robots,) rows that a chunk is good for
  int64_t spacing_ns = 0;                    // of rows
  int64_t count_from_ns = 0;                 // control ticks count from here on
};

struct Response {
  int64_t robot, index, sent_ns, received_ns, budget_ns;
};

struct Transition {  // the scheduler starts a unit, or sees it end
  int64_t at_ns, unit, stage, count, started;
};

// What a robot has done with its rows, and the server known of it.
struct RobotTime {
  double ticks = 0, starved = 0, executed = 0, observations = 0, error_sum = 0, error_max = 0,
         device_ms = 0;
};

}  // namespace xinfer
