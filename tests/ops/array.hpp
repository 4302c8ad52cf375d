// Numbers of a reference computation: a dense row-major array of doubles, random ones, and finite differences.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace nsp_ops {

struct Array {
  std::vector<int64_t> shape;
  std::vector<double> v;

  Array() = default;
  explicit Array(std::vector<int64_t> s, double value = 0.0) : shape(std::move(s)), v(static_cast<std::size_t>(count(shape)), value) {}
  static int64_t count(const std::vector<int64_t>& shape) {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
  }
  int64_t size() const { return static_cast<int64_t>(v.size()); }
  int64_t dim(std::size_t d) const { return shape[d]; }
  template <class... I>
  double& operator()(I... index) {
    return v[offset({static_cast<int64_t>(index)...})];
  }
  template <class... I>
  double operator()(I... index) const {
    return v[offset({static_cast<int64_t>(index)...})];
  }

 private:
  std::size_t offset(std::initializer_list<int64_t> index) const {
    int64_t at = 0;
    std::size_t d = 0;
    for (int64_t i : index) at = at * shape[d++] + i;
    return static_cast<std::size_t>(at);
  }
};

// Values that fp32 holds exactly, so that the reference and the backend start from the same numbers.
inline Array random_array(std::vector<int64_t> shape, unsigned seed, double low = -1.0, double high = 1.0) {
  Array a(std::move(shape));
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(static_cast<float>(low), static_cast<float>(high));
  for (double& x : a.v) x = static_cast<double>(uniform(generator));
  return a;
}

// Whole numbers in [low, high).
inline Array random_integers(std::vector<int64_t> shape, unsigned seed, int64_t low, int64_t high) {
  Array a(std::move(shape));
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int64_t> uniform(low, high - 1);
  for (double& x : a.v) x = static_cast<double>(uniform(generator));
  return a;
}

// How near a result must be: `sums` for what is computed, `store` for the rounding of each element when it is stored, relative
// to that element (2^-8 for bf16; in fp32 it is part of `sums`). See docs/numerics.md.
struct Bound {
  double sums, store;
  Bound(double s, double rounding = 0.0) : sums(s), store(rounding) {}
};

// The largest difference is at most bound.sums times the largest reference value, or times `floor` where that is larger
// (for results that cancel), beside the rounding. NaN and infinities must agree.
inline void expect_near(const Array& got, const Array& expected, Bound bound, const std::string& what, double floor = 1e-30) {
  ASSERT_EQ(got.shape, expected.shape) << what;
  double largest = floor;
  for (double x : expected.v) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  for (std::size_t i = 0; i < got.v.size(); ++i) {
    if (!std::isfinite(expected.v[i])) {
      ASSERT_TRUE(got.v[i] == expected.v[i] || (std::isnan(got.v[i]) && std::isnan(expected.v[i])))
          << what << ", element " << i << ": " << got.v[i] << " instead of " << expected.v[i];
    } else {
      ASSERT_LE(std::abs(got.v[i] - expected.v[i]), bound.sums * largest * (1.0 + bound.store) + bound.store * std::abs(expected.v[i]))
          << what << ", element " << i << ": " << got.v[i] << " instead of " << expected.v[i];
    }
  }
}

// Element by element: |got - expected| <= bound * |expected| + floor.
inline void expect_relative(const Array& got, const Array& expected, Bound bound, double floor, const std::string& what) {
  ASSERT_EQ(got.shape, expected.shape) << what;
  for (std::size_t i = 0; i < got.v.size(); ++i) {
    ASSERT_LE(std::abs(got.v[i] - expected.v[i]), (bound.sums * (1.0 + bound.store) + bound.store) * std::abs(expected.v[i]) + floor)
        << what << ", element " << i << ": " << got.v[i] << " instead of " << expected.v[i];
  }
}

inline double dot(const Array& a, const Array& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.v.size(); ++i) sum += a.v[i] * b.v[i];
  return sum;
}

// Proves a reference gradient: central differences of `loss`, which must read x by reference.
inline void expect_gradient(Array& x, const Array& gradient, const std::function<double()>& loss, const std::string& what) {
  constexpr double kStep = 1e-5;
  ASSERT_EQ(x.shape, gradient.shape) << what;
  double largest = 1e-3;
  for (double g : gradient.v) largest = std::max(largest, std::abs(g));
  for (std::size_t i = 0; i < x.v.size(); ++i) {
    const double before = x.v[i];
    x.v[i] = before + kStep;
    const double above = loss();
    x.v[i] = before - kStep;
    const double below = loss();
    x.v[i] = before;
    ASSERT_NEAR((above - below) / (2.0 * kStep), gradient.v[i], 1e-6 * largest) << what << ", the reference itself, element " << i;
  }
}

}  // namespace nsp_ops
