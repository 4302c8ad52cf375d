// Counter-based random numbers against a second, plain Philox, which is itself held against published vectors.
#include <array>

#include "cases.hpp"

namespace nsp_ops {

namespace {

using Counter = std::array<uint32_t, 4>;

Counter philox(Counter c, uint32_t k0, uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
    const Counter next = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(b & 0xffffffffu),
                          static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(a & 0xffffffffu)};
    c = next;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

uint32_t word(uint64_t seed, uint64_t stream, uint64_t element) {
  const uint64_t block = element / 4;
  const Counter c = philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), static_cast<uint32_t>(stream),
                            static_cast<uint32_t>(stream >> 32)},
                           static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
  return c[element % 4];
}

double value(uint64_t seed, uint64_t stream, uint64_t element, bool normal) {
  if (!normal) return static_cast<double>(word(seed, stream, element) >> 8) * 0x1p-24;
  const uint64_t first = element / 2 * 2;  // the radius from (0,1], the angle from [0,1)
  const double u = static_cast<double>((word(seed, stream, first) >> 8) + 1) * 0x1p-24;
  const double angle = 2.0 * M_PI * static_cast<double>(word(seed, stream, first + 1) >> 8) * 0x1p-24;
  return std::sqrt(-2.0 * std::log(u)) * (element % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

// Known answers of the authors' library (Random123, kat_vectors, philox4x32 10).
void known_answers() {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0, 0), (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffff, 0xffffffff),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

void fill(Bench& bench, nsp_dtype type, int64_t n, uint64_t seed, uint64_t stream, uint64_t offset, bool normal) {
  nsp_random_fill_args a{};
  a.x = bench.out({n}, type);
  a.seed = seed;
  a.stream = stream;
  a.offset = offset;
  a.low = normal ? 0.25f : 0.0f;
  a.scale = normal ? 0.5f : 4.0f;
  a.distribution = normal ? 1 : 0;
  bench.run(bench.ops().random_fill, a);
  Array expected({n});
  for (int64_t i = 0; i < n; ++i) {
    expected.v[static_cast<std::size_t>(i)] = a.low + a.scale * value(seed, stream, offset + static_cast<uint64_t>(i), normal);
  }
  if (normal) {
    expect_near(bench.read(a.x), expected, bound(1e-6, type), "x");
  } else {
    expect_near(bench.read(a.x), stored(expected, type), 0.0, "x");
  }
}

}  // namespace

void add_random_cases(Cases& cases) {
  cases.push_back({NSP_OP_random_fill, "random_known_answers", [](Bench&) { known_answers(); }});
  for (const nsp_dtype type : kTypes) {
    for (const bool normal : {false, true}) {
      const std::string kind = normal ? "normal_" : "uniform_";
      for (const int64_t n : {0, 1, 3, 4, 10, 70001}) {
        cases.push_back({NSP_OP_random_fill, "random_" + kind + std::to_string(n) + suffix(type),
                         [=](Bench& b) { fill(b, type, n, 7, 1, 0, normal); }, type});
      }
      cases.push_back({NSP_OP_random_fill, "random_" + kind + "offset" + suffix(type),
                       [=](Bench& b) { fill(b, type, 9, 0x123456789abcdefull, 1ull << 40, 4294967293ull * 4 + 3, normal); }, type});
    }
  }
}

}  // namespace nsp_ops
