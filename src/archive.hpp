// SPDX-License-Identifier: Apache-2.0
// Values to bytes and back, bit by bit; what is written with one list of fields is read with it.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace xinfer {

// Fields one after the other; a struct has a method visit(Archive&) that names its own.
class Archive {
 public:
  Archive() = default;  // to write into
  explicit Archive(std::string bytes) : bytes(std::move(bytes)), reads_(true) {}

  std::string bytes;

  bool reads() const { return reads_; }
  bool at_end() const { return at_ == bytes.size(); }

  template <typename... T>
  void operator()(T&... values) {
    (one(values), ...);
  }

 private:
  template <typename T>
  void one(T& value) {
    if constexpr (std::is_arithmetic_v<T>)
      raw(&value, sizeof value);
    else
      value.visit(*this);
  }

  template <typename T, size_t N>
  void one(std::array<T, N>& values) {
    for (T& value : values) one(value);
  }

  template <typename T>
  void one(std::vector<T>& values) {
    uint64_t size = values.size();
    one(size);
    if (reads_) {
      if (size > bytes.size() - at_) throw std::invalid_argument("the state is cut off");
      values.resize(size);
    }
    for (T& value : values) one(value);
  }

  void raw(void* value, size_t size) {
    if (!reads_) {
      bytes.append(static_cast<const char*>(value), size);
      return;
    }
    if (size > bytes.size() - at_) throw std::invalid_argument("the state is cut off");
    std::memcpy(value, bytes.data() + at_, size);
    at_ += size;
  }

  bool reads_ = false;
  size_t at_ = 0;
};

}  // namespace xinfer
