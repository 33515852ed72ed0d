// SPDX-License-Identifier: Apache-2.0
// What the scheduler knows of the device: work, overhead and the rate table. Times in ms.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace xinfer {

constexpr int kStages = 3;  // ViT, Prefill, Action
constexpr int kVit = 0, kPrefill = 1, kAction = 2;
constexpr int kMaxBatch = 8;
constexpr int kMaxGroup = 16;  // requests that pass the stages together

using Counts = std::array<int, kStages>;  // running units per stage

// One calibrated device; the same numbers as predict/calibration.py.
struct Device {
  std::array<double, kStages> work{};      // W_s, of one request alone
  std::array<double, kStages> overhead{};  // h_s
  double output = 0.0;                     // h_out
  double front_end = 0.0;                  // f, time between arrival and registration
  Counts bound{};                          // c_s, lookups are clipped here
  // W_s of a batch of b over W_s of one, b = 1 .. size
  std::array<std::vector<double>, kStages> batch;
  std::vector<double> infer;  // d_infer(b), all stages of a batch of b in turn, b = 1 .. size
  std::array<std::vector<double>, kStages> rate;     // rho_s(n), [(nV (cP+1) + nP)(cA+1) + nA]
  std::array<std::vector<double>, kStages> inverse;  // 1 / rho_s(n)

  int index(const Counts& n) const {
    const int v = std::min(n[0], bound[0]), p = std::min(n[1], bound[1]),
              a = std::min(n[2], bound[2]);
    return (v * (bound[1] + 1) + p) * (bound[2] + 1) + a;
  }

  // Clipped index of n without one unit of a stage: first take out, then clip.
  int index_without(Counts n, int stage) const {
    n[stage] = std::max(n[stage] - 1, 0);
    return index(n);
  }

  int max_batch(int stage) const { return static_cast<int>(batch[stage].size()); }
  double batch_work(int stage, int count) const { return work[stage] * batch[stage][count - 1]; }
};

}  // namespace xinfer
