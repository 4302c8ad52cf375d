#include "tests/comm/collective_checks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace nsp::test {
namespace {

uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Element i of rank r: of widely different sizes and signs, so that another order of summation gives other bits.
template <class T>
T value(int rank, int64_t i) {
  const uint64_t h = mixed(static_cast<uint64_t>(i) * 1000003u + static_cast<uint64_t>(rank) * 7919u + 17);
  if constexpr (std::is_floating_point_v<T>) {
    const T mantissa = static_cast<T>(static_cast<int64_t>(h >> 20)) / static_cast<T>(int64_t{1} << 43) - T(0.5);
    return mantissa * static_cast<T>(1 << (h & 15));
  } else {
    return static_cast<T>(h);
  }
}

template <class T>
std::vector<T> values(int rank, int64_t n, int64_t first = 0) {
  std::vector<T> v(n);
  for (int64_t i = 0; i < n; ++i) v[i] = value<T>(rank, first + i);
  return v;
}

template <class T>
T added(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a + b;
  return static_cast<T>(static_cast<std::make_unsigned_t<std::conditional_t<std::is_floating_point_v<T>, int, T>>>(a) +
                        static_cast<std::make_unsigned_t<std::conditional_t<std::is_floating_point_v<T>, int, T>>>(b));
}

template <class T>
std::vector<T> serial_sum(int ranks, int64_t n, int64_t first = 0) {
  std::vector<T> sum = values<T>(0, n, first);
  for (int r = 1; r < ranks; ++r) {
    for (int64_t i = 0; i < n; ++i) sum[i] = added(sum[i], value<T>(r, first + i));
  }
  return sum;
}

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, int32_t>) return DType::i32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::i64;
  if constexpr (std::is_same_v<T, uint16_t>) return DType::bf16;
  return DType::u8;
}

template <class T>
TensorView view(std::vector<T>& v, int64_t lo = 0, int64_t n = -1) {
  return TensorView(v.data() + lo, dtype_of<T>(), {n < 0 ? static_cast<int64_t>(v.size()) - lo : n});
}

template <class T>
void expect_bits(const std::vector<T>& got, const std::vector<T>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  if (got.empty() || std::memcmp(got.data(), want.data(), got.size() * sizeof(T)) == 0) return;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &want[i], sizeof(T)) != 0) {
      FAIL() << what << ": element " << i << " of " << got.size() << " is " << +got[i] << ", want " << +want[i];
    }
  }
}

std::vector<int64_t> sizes(int64_t most) {
  std::vector<int64_t> s;
  for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{3}, int64_t{17}, int64_t{4099}, most}) {
    if (n <= most) s.push_back(n);
  }
  return s;
}

// Cuts of n: near-equal, everything in one chunk, and uneven ones with empty chunks.
std::vector<std::vector<int64_t>> cuts(int64_t n, int ranks) {
  std::vector<int64_t> equal(ranks), last(ranks, 0), uneven(ranks, 0);
  for (int64_t j = 0; j < ranks; ++j) equal[j] = n * (j + 1) / ranks - n * j / ranks;
  last[ranks - 1] = n;
  int64_t left = n;
  for (int j = 0; j < ranks; ++j) {
    uneven[j] = j == ranks - 1 ? left : j % 2 == 1 ? 0 : left / 3;
    left -= uneven[j];
  }
  return {equal, last, uneven};
}

int64_t offset_of(const std::vector<int64_t>& counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, int64_t{0});
}

template <class T>
void all_reduce_typed(Communicator& comm, HostWait& wait, int64_t most) {
  for (int64_t n : sizes(most)) {
    std::vector<T> data = values<T>(comm.rank(), n);
    wait.wait(comm.all_reduce(view(data), {}));
    expect_bits(data, serial_sum<T>(comm.size(), n), "all_reduce of " + std::to_string(n) + " " + name_of(dtype_of<T>()));
  }
}

template <class T>
void reduce_scatter_typed(Communicator& comm, HostWait& wait, int64_t most) {
  for (int64_t n : sizes(most)) {
    for (const std::vector<int64_t>& counts : cuts(n, comm.size())) {
      const int64_t own = counts[comm.rank()], first = offset_of(counts, comm.rank());
      const std::vector<T> want = serial_sum<T>(comm.size(), own, first);
      const std::vector<T> input = values<T>(comm.rank(), n);
      std::vector<T> in = input, out(own, T(1));
      wait.wait(comm.reduce_scatter(view(in), counts, view(out), {}));
      expect_bits(out, want, "reduce_scatter");
      expect_bits(in, input, "reduce_scatter's input");
      wait.wait(comm.reduce_scatter(view(in), counts, view(in, first, own), {}));
      expect_bits(std::vector<T>(in.begin() + first, in.begin() + first + own), want, "reduce_scatter in place");
      std::copy(input.begin() + first, input.begin() + first + own, in.begin() + first);
      expect_bits(in, input, "the other chunks of reduce_scatter in place");
    }
  }
}

template <class T>
void all_gather_typed(Communicator& comm, HostWait& wait, int64_t most) {
  for (int64_t n : sizes(most)) {
    for (const std::vector<int64_t>& counts : cuts(n, comm.size())) {
      const int64_t own = counts[comm.rank()], first = offset_of(counts, comm.rank());
      std::vector<T> mine = values<T>(comm.rank(), own), out(n, T(1)), in_place(n, T(1)), want;
      std::copy(mine.begin(), mine.end(), in_place.begin() + first);
      for (int j = 0; j < comm.size(); ++j) {
        const std::vector<T> part = values<T>(j, counts[j]);
        want.insert(want.end(), part.begin(), part.end());
      }
      const WorkPtr a = comm.all_gather(view(mine), counts, view(out), {});
      const WorkPtr b = comm.all_gather(view(in_place, first, own), counts, view(in_place), {});
      wait.wait(b);
      wait.wait(a);
      expect_bits(out, want, "all_gather");
      expect_bits(in_place, want, "all_gather in place");
    }
  }
}

template <class T>
void all_to_all_typed(Communicator& comm, HostWait& wait, int64_t most) {
  const int p = comm.size(), r = comm.rank();
  for (int64_t n : sizes(most)) {
    // i sends count(i, j) to j; some are zero.
    const auto count = [&](int i, int j) { return (i * 3 + j) % 4 == 1 ? 0 : n * (1 + (i + 2 * j) % 3) / (3 * p); };
    std::vector<int64_t> in_counts(p), out_counts(p);
    for (int j = 0; j < p; ++j) in_counts[j] = count(r, j), out_counts[j] = count(j, r);
    std::vector<T> in = values<T>(r, offset_of(in_counts, p)), out(offset_of(out_counts, p)), want;
    for (int j = 0; j < p; ++j) {
      int64_t first = 0;
      for (int k = 0; k < r; ++k) first += count(j, k);
      const std::vector<T> part = values<T>(j, count(j, r), first);
      want.insert(want.end(), part.begin(), part.end());
    }
    wait.wait(comm.all_to_all(view(in), in_counts, view(out), out_counts, {}));
    expect_bits(out, want, "all_to_all");
  }
}

}  // namespace

void check_all_reduce(Communicator& comm, HostWait& wait, int64_t most) {
  all_reduce_typed<float>(comm, wait, most);
  all_reduce_typed<double>(comm, wait, std::min<int64_t>(most, 100003));
  all_reduce_typed<int32_t>(comm, wait, std::min<int64_t>(most, 100003));
  all_reduce_typed<int64_t>(comm, wait, std::min<int64_t>(most, 100003));
}

void check_reduce_scatter(Communicator& comm, HostWait& wait, int64_t most) {
  reduce_scatter_typed<float>(comm, wait, most);
  reduce_scatter_typed<double>(comm, wait, std::min<int64_t>(most, 10007));
  reduce_scatter_typed<int32_t>(comm, wait, std::min<int64_t>(most, 10007));
  reduce_scatter_typed<int64_t>(comm, wait, std::min<int64_t>(most, 10007));
}

void check_all_gather(Communicator& comm, HostWait& wait, int64_t most) {
  all_gather_typed<float>(comm, wait, most);
  all_gather_typed<uint16_t>(comm, wait, std::min<int64_t>(most, 10007));
  all_gather_typed<uint8_t>(comm, wait, std::min<int64_t>(most, 10007));
}

void check_all_to_all(Communicator& comm, HostWait& wait, int64_t most) {
  all_to_all_typed<float>(comm, wait, most);
  all_to_all_typed<double>(comm, wait, std::min<int64_t>(most, 10007));
  all_to_all_typed<uint16_t>(comm, wait, std::min<int64_t>(most, 10007));
  all_to_all_typed<uint8_t>(comm, wait, std::min<int64_t>(most, 10007));
}

void check_broadcast(Communicator& comm, HostWait& wait, int64_t most) {
  for (int64_t n : sizes(most)) {
    for (int root = 0; root < comm.size(); ++root) {
      std::vector<float> data = comm.rank() == root ? values<float>(root, n) : std::vector<float>(n);
      wait.wait(comm.broadcast(view(data), root, {}));
      expect_bits(data, values<float>(root, n), "broadcast");
    }
  }
}

void check_send_recv(Communicator& comm, HostWait& wait, int64_t most) {
  const int p = comm.size(), r = comm.rank();
  if (p == 1) return;
  for (int64_t n : sizes(most)) {
    // Round the ring; receives of several messages are entered before and after the sends, which must keep their order.
    const int next = (r + 1) % p, previous = (r + p - 1) % p;
    std::vector<float> a = values<float>(r, n), b = values<float>(r + 100, n), x(n), y(n);
    const WorkPtr recv_x = comm.recv(view(x), previous, {});
    const WorkPtr send_a = comm.send(view(a), next, {});
    const WorkPtr send_b = comm.send(view(b), next, {});
    const WorkPtr recv_y = comm.recv(view(y), previous, {});
    for (const WorkPtr& work : {recv_y, send_b, recv_x, send_a}) wait.wait(work);
    expect_bits(x, values<float>(previous, n), "first message");
    expect_bits(y, values<float>(previous + 100, n), "second message");
  }
  // Only two ranks of the group: the others' collectives must still agree.
  std::vector<int32_t> one{r == 0 ? 4711 : 0};
  if (r == 0) wait.wait(comm.send(view(one), p - 1, {}));
  if (r == p - 1) wait.wait(comm.recv(view(one), 0, {}));
  if (r == p - 1) {
    EXPECT_EQ(one[0], 4711);
  }
  barrier_now(comm, wait);
}

void check_overlap(Communicator& comm, HostWait& wait, int64_t elements) {
  const int p = comm.size(), r = comm.rank();
  constexpr int kOperations = 12;
  std::vector<std::vector<float>> data(kOperations), out(kOperations);
  std::vector<std::shared_ptr<Gate>> gates;
  std::vector<WorkPtr> works;
  std::vector<int64_t> counts(p);
  for (int k = 0; k < kOperations; ++k) {
    const int64_t n = elements / (1 + k % 3) + k;
    for (int64_t j = 0; j < p; ++j) counts[j] = n * (j + 1) / p - n * j / p;
    gates.push_back(std::make_shared<Gate>());
    data[k].resize(n);
    if (k % 3 == 0) works.push_back(comm.all_reduce(view(data[k]), {nullptr, gates[k]}));
    if (k % 3 == 1)
      out[k].resize(counts[r]), works.push_back(comm.reduce_scatter(view(data[k]), counts, view(out[k]), {nullptr, gates[k]}));
    // The gather reads what the reduce_scatter before it wrote: it starts behind that work.
    if (k % 3 == 2) out[k].resize(out[k - 1].size() * p), works.push_back(nullptr);
  }
  std::vector<WorkPtr> gathers;
  for (int k = 2; k < kOperations; k += 3) {
    const int64_t n = static_cast<int64_t>(data[k - 1].size());
    for (int64_t j = 0; j < p; ++j) counts[j] = n * (j + 1) / p - n * j / p;
    out[k].resize(n);
    works[k] = comm.all_gather(view(out[k - 1]), counts, view(out[k]), {nullptr, works[k - 1]});
  }
  for (int i = 0; i < kOperations; ++i) {
    // The inputs are written only when their gate opens, rank r beginning at another one.
    const int k = (r % 2 == 0 ? i + 5 * r : kOperations * p - i - r) % kOperations;
    EXPECT_FALSE(k % 3 != 2 && p > 1 && works[k]->done()) << "done before its input was ready";
    const std::vector<float> input = values<float>(r, static_cast<int64_t>(data[k].size()), k);
    std::copy(input.begin(), input.end(), data[k].begin());
    gates[k]->open = true;
    wait.progress();
  }
  for (int k = kOperations - 1; k >= 0; --k) wait.wait(works[k]);
  for (int k = 0; k < kOperations; ++k) {
    const int source = k % 3 == 2 ? k - 1 : k;
    const std::vector<float> sum = serial_sum<float>(p, static_cast<int64_t>(data[source].size()), source);
    if (k % 3 == 0) expect_bits(data[k], sum, "overlapping all_reduce");
    if (k % 3 == 2) expect_bits(out[k], sum, "all_gather behind a reduce_scatter");
  }
}

void check_bytes(Communicator& comm, HostWait& wait) {
  const int64_t p = comm.size();
  const auto bytes_of = [&](auto collective) {
    const int64_t before = comm.bytes_sent();
    wait.wait(collective());
    double sent = static_cast<double>(comm.bytes_sent() - before);
    all_reduce_now(comm, wait, {&sent, 1});
    return static_cast<int64_t>(sent);
  };
  for (int64_t n : {int64_t{1}, int64_t{1000}, int64_t{77777}}) {
    std::vector<float> data(n), whole(n * p);
    EXPECT_EQ(bytes_of([&] { return comm.all_reduce(view(data), {}); }), 2 * (p - 1) * 4 * n);
    EXPECT_EQ(bytes_of([&] { return comm.all_gather(view(data), std::vector<int64_t>(p, n), view(whole), {}); }), p * (p - 1) * 4 * n);
    EXPECT_EQ(bytes_of([&] { return comm.reduce_scatter(view(whole), std::vector<int64_t>(p, n), view(data), {}); }), p * (p - 1) * 4 * n);
    EXPECT_EQ(bytes_of([&] { return comm.broadcast(view(data), 0, {}); }), (p - 1) * 4 * n);
  }
}

void check_split(Communicator& comm, HostWait& wait) {
  const int p = comm.size(), r = comm.rank();
  // Even and odd ranks, in reverse order; then every rank alone.
  const std::unique_ptr<Communicator> half = comm.split(r % 2, -r, "half", nullptr);
  const std::unique_ptr<Communicator> alone = comm.split(r, 0, "alone", nullptr);
  const int members = (p + 1 - r % 2) / 2;
  ASSERT_EQ(half->size(), members);
  EXPECT_EQ(half->rank(), members - 1 - r / 2);
  EXPECT_EQ(half->name(), "half");
  ASSERT_EQ(alone->size(), 1);
  wait.add(half.get());
  wait.add(alone.get());
  // Collectives of three communicators at once, in an order of its own on each rank.
  std::vector<double> a{1.0 * r, 1}, b{2.0 * r, 1}, c{3.0 * r, 1};
  std::vector<WorkPtr> works;
  if (r % 2 == 0) works.push_back(comm.all_reduce(view(a), {}));
  works.push_back(half->all_reduce(view(b), {}));
  if (r % 2 == 1) works.push_back(comm.all_reduce(view(a), {}));
  works.push_back(alone->all_reduce(view(c), {}));
  for (const WorkPtr& work : works) wait.wait(work);
  double sum = 0;
  for (int k = r % 2; k < p; k += 2) sum += 2.0 * k;
  EXPECT_EQ(a, (std::vector<double>{p * (p - 1) / 2.0, 1.0 * p}));
  EXPECT_EQ(b, (std::vector<double>{sum, 1.0 * members}));
  EXPECT_EQ(c, (std::vector<double>{3.0 * r, 1}));
  EXPECT_EQ(alone->bytes_sent(), 0);
  check_overlap(*half, wait, 5000);
  wait.remove(half.get());
  wait.remove(alone.get());
  barrier_now(comm, wait);
}

void check_helpers(Communicator& comm, HostWait& wait) {
  const int p = comm.size(), r = comm.rank();
  double sums[2] = {1.0, static_cast<double>(r)};
  all_reduce_now(comm, wait, sums);
  EXPECT_EQ(sums[0], p);
  EXPECT_EQ(sums[1], p * (p - 1) / 2.0);
  char text[6] = "-----";
  if (r == p - 1) std::memcpy(text, "hello", 6);
  broadcast_now(comm, wait, text, 6, p - 1);
  EXPECT_STREQ(text, "hello");
  const int32_t mine = 10 * r;
  const std::vector<char> all = gather_now(comm, wait, &mine, sizeof mine);
  ASSERT_EQ(all.size(), p * sizeof mine);
  for (int j = 0; j < p; ++j) {
    int32_t theirs = 0;
    std::memcpy(&theirs, all.data() + j * sizeof theirs, sizeof theirs);
    EXPECT_EQ(theirs, 10 * j);
  }
  barrier_now(comm, wait);
}

void check_errors(Communicator& comm) {
  const int p = comm.size();
  std::vector<uint16_t> halves(4 * p);
  std::vector<float> data(4 * p), out(4);
  const auto fails = [&](auto call) {
    try {
      call();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::internal) << error.what();
    }
  };
  fails([&] { comm.all_reduce(view(halves), {}); });
  fails([&] { comm.reduce_scatter(view(halves), std::vector<int64_t>(p, 4), view(halves, 0, 4), {}); });
  fails([&] { comm.reduce_scatter(view(data), std::vector<int64_t>(p, 3), view(out), {}); });
  fails([&] { comm.reduce_scatter(view(data), std::vector<int64_t>(p + 1, 4), view(out), {}); });
  fails([&] { comm.all_gather(view(out), std::vector<int64_t>(p, 4), view(halves), {}); });
  fails([&] { comm.all_reduce(TensorView(data.data(), DType::f32, {2, 2}, {1, 2}), {}); });
  fails([&] { comm.broadcast(view(data), p, {}); });
  fails([&] { comm.send(view(data), comm.rank(), {}); });
  fails([&] { comm.recv(view(data), -1, {}); });
}

}  // namespace nsp::test
