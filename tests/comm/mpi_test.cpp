// The collectives over MPI, through the module as nsp loads it. Run by mpirun; every rank runs every test.
// Other modes, for tests that start this program: --open (start and end only), --lost-rank (the last rank never comes).
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "comm/ring.hpp"
#include "comm/watchdog.hpp"
#include "nsp/plugin.hpp"
#include "tests/comm/collective_checks.hpp"

namespace nsp::test {
namespace {

class SilentLog final : public Log {
 public:
  void info(const std::string&) override {}
  void warning(const std::string&) override {}
};

// The module, from the search path to its world.
class MpiModule {
 public:
  explicit MpiModule(CollectiveRing& ring) {
    const char* folder = std::getenv("NSP_PLUGIN_PATH");
    NSP_REQUIRE(folder != nullptr, "NSP_PLUGIN_PATH names the folder of the module");
    const std::string file = (std::filesystem::path(folder) / "libnsp_comm_mpi.so").string();
    void* module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) throw Error(ErrorKind::plugin, dlerror());
    const auto* plugin = static_cast<const nsp_plugin_v1*>(dlsym(module, "nsp_plugin"));
    NSP_REQUIRE(plugin != nullptr && std::string(plugin->kind) == "comm" && std::string(plugin->name) == "mpi",
                "the module says what it is");
    const std::string stamp = plugin->stamp;
    NSP_REQUIRE(stamp.starts_with(NSP_STAMP_BASE ";mpi=") && stamp.size() > sizeof(NSP_STAMP_BASE ";mpi="), "the stamp names the MPI");
    const PluginContext context{options_, log_};
    provider_.reset(static_cast<CommProvider*>(plugin->create(&context)));
    world_ = provider_->open(CommContext{ring});
  }
  Communicator& world() { return *world_; }
  void close() {
    world_.reset();
    provider_->close();
  }

 private:
  Options options_;
  SilentLog log_;
  std::unique_ptr<CommProvider> provider_;
  std::unique_ptr<Communicator> world_;
};

// gtest makes the tests, so what they share with main hangs on this; it lives in main.
struct Shared {
  Communicator* world = nullptr;
  HostWait* wait = nullptr;
  CollectiveRing* ring = nullptr;
};
Shared& shared() {
  static Shared instance;
  return instance;
}

class Mpi : public testing::Test {
 protected:
  Communicator& comm() { return *shared().world; }
  HostWait& wait() { return *shared().wait; }
};

TEST_F(Mpi, SumsInRankOrder) {
  check_all_reduce(comm(), wait(), (1 << 21) + 7);
  check_reduce_scatter(comm(), wait(), 300007);
}

TEST_F(Mpi, MovesData) {
  check_all_gather(comm(), wait(), 300007);
  check_all_to_all(comm(), wait(), 300007);
  check_broadcast(comm(), wait(), 300007);
  check_send_recv(comm(), wait(), 300007);
}

TEST_F(Mpi, OverlapsInAnyOrder) {
  for (int i = 0; i < 10; ++i) check_overlap(comm(), wait(), 1 << (4 + 2 * i % 18));
  check_overlap(comm(), wait(), 1 << 20);
}

TEST_F(Mpi, CountsItsBytes) {
  check_bytes(comm(), wait());
}

TEST_F(Mpi, Splits) {
  check_split(comm(), wait());
  check_split(comm(), wait());
}

TEST_F(Mpi, HelpersAndErrors) {
  check_helpers(comm(), wait());
  check_errors(comm());
  check_helpers(comm(), wait());
}

TEST_F(Mpi, DifferentCollectivesAreAnError) {
  // On a communicator of its own: it is unusable afterwards.
  const std::unique_ptr<Communicator> broken = comm().split(0, comm().rank(), "broken", nullptr);
  if (broken->size() == 1) GTEST_SKIP() << "needs two ranks";
  HostWait own_wait;
  own_wait.add(broken.get());
  std::vector<float> data(1000);
  const int64_t n = comm().rank() == 0 ? 990 : 1000;
  if (comm().rank() == 0) {
    try {
      own_wait.wait(broken->broadcast(TensorView(data.data(), DType::f32, {n}), 1, {}));
      ADD_FAILURE() << "a message of another size was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::comm) << error.what();
    }
  } else {
    own_wait.wait(broken->broadcast(TensorView(data.data(), DType::f32, {n}), 1, {}));
  }
}

int lost_rank(MpiModule& module, FixedRing& ring) {
  Communicator& world = module.world();
  Watchdog watchdog(ring, world.rank(), "host-of-the-test", 2.0);
  HostWait wait;
  wait.add(&world);
  barrier_now(world, wait);
  if (world.rank() == world.size() - 1) std::this_thread::sleep_for(std::chrono::seconds(60));
  barrier_now(world, wait);
  return 0;
}

int run(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string mode = argc > 1 ? argv[1] : "";
  FixedRing ring;
  MpiModule module(ring);
  int code = 0;
  if (mode == "--lost-rank") code = lost_rank(module, ring);
  if (mode.empty()) {
    Watchdog watchdog(ring, module.world().rank(), "host-of-the-test", 60.0);
    HostWait wait;
    wait.add(&module.world());
    shared() = {&module.world(), &wait, &ring};
    if (module.world().rank() != 0)
      delete testing::UnitTest::GetInstance()->listeners().Release(testing::UnitTest::GetInstance()->listeners().default_result_printer());
    double failures = RUN_ALL_TESTS();
    std::printf("rank %d of %d: %s\n", module.world().rank(), module.world().size(), failures != 0 ? "FAILED" : "passed");
    all_reduce_now(module.world(), wait, {&failures, 1});
    code = failures != 0 ? 1 : 0;
  }
  module.close();
  return code;
}

}  // namespace
}  // namespace nsp::test

int main(int argc, char** argv) {
  try {
    return nsp::test::run(argc, argv);
  } catch (const nsp::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 10 + nsp::exit_code_of(error.kind());
  }
}
