#include "cases.hpp"

namespace nsp_ops {

namespace {

struct Shape {
  int64_t b, t, h, d, gap, first;  // first: lowest position
  double theta;
};
constexpr Shape kShapes[] = {{2, 3, 2, 4, 0, 0, 10000.0},  {2, 3, 2, 6, 2, 5, 10000.0}, {1, 1, 1, 2, 0, 0, 10000.0},
                             {0, 3, 2, 4, 0, 0, 10000.0},  {1, 2, 1, 0, 0, 0, 10000.0}, {1, 4, 2, 64, 0, 100000, 500000.0},
                             {2, 70, 5, 32, 1, 0, 10000.0}};

Array rotated(const Array& x, const Array& positions, double theta, bool inverse) {
  Array out(x.shape);
  const int64_t half = x.dim(3) / 2;
  for (int64_t b = 0; b < x.dim(0); ++b) {
    for (int64_t t = 0; t < x.dim(1); ++t) {
      for (int64_t h = 0; h < x.dim(2); ++h) {
        for (int64_t d = 0; d < half; ++d) {
          const double angle = positions(b, t) * std::pow(theta, -2.0 * static_cast<double>(d) / static_cast<double>(x.dim(3)));
          const double c = std::cos(angle), s = inverse ? -std::sin(angle) : std::sin(angle);
          out(b, t, h, d) = x(b, t, h, d) * c - x(b, t, h, d + half) * s;
          out(b, t, h, d + half) = x(b, t, h, d) * s + x(b, t, h, d + half) * c;
        }
      }
    }
  }
  return out;
}

void rope(Bench& bench, const Shape& s, nsp_dtype type, bool inverse, bool in_place) {
  const Array x = stored(random_array({s.b, s.t, s.h, s.d}, 31), type),
              positions = random_integers({s.b, s.t}, 32, s.first, s.first + 2 * s.t + 1);
  nsp_rope_args a{};
  a.x = bench.in(x, type, s.gap);
  a.out = in_place ? a.x : bench.out(x.shape, type, s.gap);
  a.positions = bench.in(positions, NSP_I32, s.gap);
  a.theta = static_cast<float>(s.theta);
  a.inverse = inverse;
  bench.run(bench.ops().rope, a);
  expect_near(bench.read(a.out), rotated(x, positions, s.theta, inverse), bound(1e-6, type), "out");
}

// The backward of a rotation is the opposite one.
void prove() {
  Array x = random_array({1, 2, 2, 6}, 33);
  const Array positions = random_integers({1, 2}, 34, 0, 9), dout = random_array(x.shape, 35);
  expect_gradient(
      x, rotated(dout, positions, 100.0, true), [&] { return dot(rotated(x, positions, 100.0, false), dout); }, "dx");
}

}  // namespace

void add_rope_cases(Cases& cases) {
  for (const nsp_dtype type : kTypes) {
    int number = 0;
    for (const Shape& s : kShapes) {
      const std::string id = std::to_string(number++) + suffix(type);
      cases.push_back({NSP_OP_rope, "rope_" + id, [=](Bench& b) { rope(b, s, type, false, false); }, type});
      cases.push_back({NSP_OP_rope, "rope_inverse_" + id, [=](Bench& b) { rope(b, s, type, true, false); }, type});
      cases.push_back({NSP_OP_rope, "rope_in_place_" + id, [=](Bench& b) { rope(b, s, type, false, true); }, type});
    }
  }
  cases.push_back({NSP_OP_rope, "rope_reference", [](Bench&) { prove(); }});
}

}  // namespace nsp_ops
