// SPDX-License-Identifier: Apache-2.0
// Every call of a core with what it returned, in few bytes; and those bytes as numbers again.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "request.hpp"

namespace xinfer {

enum class CallKind : int {  // the numbers are those of sched/journal.py
  announce = 1,
  observe = 2,
  submit = 3,
  release = 4,
  dispatch = 5,
  complete = 6,
  pace = 7,
  cancel = 8,
  withdraw = 9,
  set_budget = 10,
};

// A call is its kind and its numbers, each of 7 bits a byte, the sign in the lowest; a list has its
// length before it. The first number of a call that has a time is the time since the one before.
class Journal {
 public:
  bool keeps = false;

  // The next time that is written is a whole one.
  void restart() { last_ns_ = 0; }

  std::string take() {
    std::string out;
    out.swap(bytes_);
    return out;
  }

  template <typename... T>
  void timed(CallKind kind, int64_t now_ns, T... values) {
    if (!keeps) return;
    bytes_.push_back(static_cast<char>(kind));
    number(now_ns - last_ns_);
    last_ns_ = now_ns;
    (number(values), ...);
  }

  template <typename... T>
  void untimed(CallKind kind, T... values) {
    if (!keeps) return;
    bytes_.push_back(static_cast<char>(kind));
    (number(values), ...);
  }

  void keys(const std::vector<int64_t>& keys) {
    if (!keeps) return;
    number(static_cast<int64_t>(keys.size()));
    for (int64_t key : keys) number(key);
  }

  void units(const std::vector<Unit>& units, const std::vector<Request>& requests) {
    if (!keeps) return;
    number(static_cast<int64_t>(units.size()));
    for (const Unit& unit : units) {
      number(unit.number);
      number(unit.stage);
      number(unit.count);
      for (int m = 0; m < unit.count; ++m) number(requests[unit.members[m]].key);
    }
  }

 private:
  void number(int64_t value) {
    uint64_t left = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
    for (; left >= 0x80; left >>= 7) bytes_.push_back(static_cast<char>(left | 0x80));
    bytes_.push_back(static_cast<char>(left));
  }

  std::string bytes_;
  int64_t last_ns_ = 0;
};

// Reads what a journal has taken down; times are whole again.
class JournalReader {
 public:
  JournalReader(const std::string& bytes, int64_t last_ns) : bytes_(bytes), last_ns_(last_ns) {}

  int64_t last_ns() const { return last_ns_; }
  bool at_end() const { return at_ == bytes_.size(); }

  // The kind of the next call, its time if it has one, and its numbers, lists with their lengths.
  std::vector<int64_t> next() {
    const int64_t kind = byte();
    std::vector<int64_t> out{kind};
    const auto take = [&](int count) {
      for (int i = 0; i < count; ++i) out.push_back(number());
    };
    const auto time = [&] { out.push_back(last_ns_ += number()); };
    const auto list = [&] {
      take(1);
      take(length(out.back()));
    };
    switch (static_cast<CallKind>(kind)) {
      case CallKind::announce: time(); take(4); break;
      case CallKind::observe: time(); take(5); break;
      case CallKind::submit: time(); take(6); break;
      case CallKind::release: time(); list(); break;
      case CallKind::dispatch:
        time();
        take(1);
        for (int units = length(out.back()); units > 0; --units) {
          take(2);
          list();
        }
        break;
      case CallKind::complete: time(); take(1); list(); break;
      case CallKind::pace: take(2); break;
      case CallKind::cancel: time(); take(2); break;
      case CallKind::withdraw: time(); take(1); break;
      case CallKind::set_budget: take(2); break;
      default: throw std::invalid_argument("no call of a scheduler has the number " + std::to_string(kind));
    }
    return out;
  }

 private:
  int length(int64_t value) const {
    if (value < 0 || value > static_cast<int64_t>(bytes_.size() - at_))
      throw std::invalid_argument("a list of a call is cut off");
    return static_cast<int>(value);
  }

  uint8_t byte() {
    if (at_end()) throw std::invalid_argument("a call is cut off");
    return static_cast<uint8_t>(bytes_[at_++]);
  }

  int64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint64_t bits = byte();
      value |= (bits & 0x7f) << shift;
      if (bits < 0x80) return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
    }
    throw std::invalid_argument("a number of a call is too long");
  }

  const std::string& bytes_;
  size_t at_ = 0;
  int64_t last_ns_;
};

}  // namespace xinfer
