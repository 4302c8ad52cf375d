#include "cases.hpp"

namespace nsp_ops {

namespace {

struct Shape {
  int64_t n, channels, vocabulary, positions, gap;  // positions == 0: no position table
};

constexpr Shape kShapes[] = {{5, 7, 3, 4, 0}, {5, 7, 3, 4, 3}, {5, 7, 3, 0, 1},      {0, 4, 3, 2, 0},
                             {3, 0, 3, 2, 0}, {1, 1, 1, 1, 0}, {600, 130, 50, 20, 2}};

void forward(Bench& bench, const Shape& s, nsp_dtype type) {
  const Array table = stored(random_array({s.vocabulary, s.channels}, 1), type),
              position_table = stored(random_array({s.positions, s.channels}, 2), type);
  const Array tokens = random_integers({s.n}, 3, 0, s.vocabulary),
              positions = random_integers({s.n}, 4, 0, std::max<int64_t>(s.positions, 1));
  Array expected({s.n, s.channels});
  for (int64_t n = 0; n < s.n; ++n) {
    for (int64_t c = 0; c < s.channels; ++c) {
      expected(n, c) = table(tokens(n), c) + (s.positions > 0 ? position_table(positions(n), c) : 0.0);
    }
  }
  nsp_embedding_forward_args a{};
  a.out = bench.out({s.n, s.channels}, type, s.gap);
  a.tokens = bench.in(tokens, NSP_I32);
  a.table = bench.in(table, type, s.gap);
  if (s.positions > 0) {
    a.positions = bench.in(positions, NSP_I32);
    a.position_table = bench.in(position_table, type, s.gap);
  }
  bench.run(bench.ops().embedding_forward, a);
  expect_near(bench.read(a.out), expected, bound(1e-7, type), "out");
}

void scatter(Array& table, const Array& index, const Array& rows) {
  for (int64_t n = 0; n < rows.dim(0); ++n) {
    for (int64_t c = 0; c < rows.dim(1); ++c) table(index(n), c) += rows(n, c);
  }
}

// which: 1 = tokens, 2 = positions, 3 = both.
void backward(Bench& bench, const Shape& s, nsp_dtype type, int which) {
  const Array dout = stored(random_array({s.n, s.channels}, 5), type), tokens = random_integers({s.n}, 6, 0, s.vocabulary);
  const Array positions = random_integers({s.n}, 7, 0, std::max<int64_t>(s.positions, 1));
  Array dtable = random_array({s.vocabulary, s.channels}, 8), dpositions = random_array({s.positions, s.channels}, 9);
  nsp_embedding_backward_args a{};
  a.dout = bench.in(dout, type, s.gap);
  a.tokens = bench.in(tokens, NSP_I32);
  if (which & 1) a.dtable = bench.in(dtable, NSP_F32, s.gap);
  if (which & 2) {
    a.positions = bench.in(positions, NSP_I32);
    a.dposition_table = bench.in(dpositions, NSP_F32, s.gap);
  }
  bench.run(bench.ops().embedding_backward, a);
  if (which & 1) {
    scatter(dtable, tokens, dout);
    expect_near(bench.read(a.dtable), dtable, 1e-6, "dtable");
  }
  if (which & 2) {
    scatter(dpositions, positions, dout);
    expect_near(bench.read(a.dposition_table), dpositions, 1e-6, "dposition_table");
  }
}

}  // namespace

void add_embedding_cases(Cases& cases) {
  for (const nsp_dtype type : kTypes) {
    int number = 0;
    for (const Shape& s : kShapes) {
      const std::string id = std::to_string(number++) + suffix(type);
      const int which = s.positions > 0 ? 3 : 1;
      cases.push_back({NSP_OP_embedding_forward, "embedding_forward_" + id, [=](Bench& b) { forward(b, s, type); }, type});
      cases.push_back({NSP_OP_embedding_backward, "embedding_backward_" + id, [=](Bench& b) { backward(b, s, type, which); }, type});
    }
    cases.push_back({NSP_OP_embedding_backward, "embedding_backward_positions_only" + suffix(type),
                     [=](Bench& b) { backward(b, kShapes[0], type, 2); }, type});
  }
}

}  // namespace nsp_ops
