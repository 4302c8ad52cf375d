#include "io/run_lock.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <thread>

#include "io/lock_holder.hpp"
#include "nsp/error.hpp"
#include "temp_folder.hpp"

namespace nsp::test {
namespace {

constexpr double watch = 0.1;  // seconds; nobody beats in these tests unless they say so

class RunLockTest : public testing::Test {
 protected:
  RunLockTest() { ::unsetenv("SLURM_JOB_ID"); }
  ~RunLockTest() override { ::unsetenv("SLURM_JOB_ID"); }
  // A lock as another job would have left it.
  void leave(const LockHolder& holder, int age_seconds) {
    std::ofstream(path_) << lock_text(holder);
    const timespec when{std::time(nullptr) - age_seconds, 0};
    const timespec times[2] = {when, when};
    ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  }
  // The lock of another job on another host, whose heartbeat is fresh.
  static LockHolder elsewhere() {
    LockHolder holder = this_process();
    holder.host = "node-far-away";
    holder.pid = 4321;
    holder.since = "2026-01-31T12:00:00Z";
    return holder;
  }
  std::string text_of_refusal() {
    try {
      RunLock lock(folder_.path());
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "the lock was taken";
    return {};
  }
  std::string look() const {
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t files() const {
    std::size_t n = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_.path())) ++n;
    return n;
  }
  TempFolder folder_;
  std::string path_ = folder_ / "lock";
};

TEST_F(RunLockTest, TakenRefusedGivenBack) {
  {
    RunLock lock(folder_.path());
    EXPECT_EQ(lock.taken_over(), "");
    EXPECT_EQ(files(), 1u);
    const std::string text = text_of_refusal();
    EXPECT_NE(text.find("process " + std::to_string(::getpid())), std::string::npos) << text;
    EXPECT_NE(text.find(this_process().host), std::string::npos) << text;
    EXPECT_NE(text.find("run.dir"), std::string::npos) << text;
    EXPECT_EQ(files(), 1u);  // nothing lies about
  }
  EXPECT_EQ(files(), 0u);
  RunLock again(folder_.path());
}

TEST_F(RunLockTest, AJobElsewhereHoldsItWhileItsHeartBeats) {
  leave(elsewhere(), 50);
  const std::string text = text_of_refusal();
  EXPECT_NE(text.find("node-far-away"), std::string::npos) << text;
  EXPECT_NE(text.find("4321"), std::string::npos) << text;
  EXPECT_NE(text.find("2026-01-31"), std::string::npos) << text;
  leave(elsewhere(), 90);
  RunLock lock(folder_.path(), watch);
  EXPECT_NE(lock.taken_over().find("heartbeat"), std::string::npos) << lock.taken_over();
  EXPECT_TRUE(lock.heartbeat());
  EXPECT_EQ(files(), 1u);
}

// The clock of the machine was set: by hours forward, all ages are hours; by hours back, heartbeats lie in the future.
TEST_F(RunLockTest, AClockThatWasSetDoesNotTakeALockFromALivingJob) {
  for (int age : {7200, -7200}) {
    leave(elsewhere(), age);
    std::thread heart([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      ::utimensat(AT_FDCWD, path_.c_str(), nullptr, 0);
    });
    try {
      RunLock lock(folder_.path(), 60);
      ADD_FAILURE() << "the lock was taken, " << lock.taken_over();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage) << error.what();
      EXPECT_NE(std::string(error.what()).find("node-far-away"), std::string::npos) << error.what();
    }
    heart.join();
  }
}

TEST_F(RunLockTest, ADeadJobWhoseHeartbeatLiesInTheFutureHoldsNothing) {
  leave(elsewhere(), -7200);
  RunLock lock(folder_.path(), watch);
  EXPECT_NE(lock.taken_over().find("in the future"), std::string::npos) << lock.taken_over();
}

TEST_F(RunLockTest, AProcessThatIsGoneHoldsNothing) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::ofstream(path_) << lock_text(this_process()) << std::flush;
    ::_exit(0);  // as if killed: the lock stays
  }
  siginfo_t info;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  const LockHolder holder = parse_lock(look());
  ASSERT_EQ(holder.pid, child);
  {
    RunLock zombie(folder_.path());  // its parent has not waited for it yet
    EXPECT_NE(zombie.taken_over().find("gone"), std::string::npos) << zombie.taken_over();
  }
  ::waitpid(child, nullptr, 0);
  leave(holder, 0);
  RunLock reaped(folder_.path());
  EXPECT_NE(reaped.taken_over().find("gone"), std::string::npos);
}

TEST_F(RunLockTest, APidThatWasGivenToAnotherProcessIsGone) {
  LockHolder holder = this_process();
  holder.start = "1";
  leave(holder, 0);
  { RunLock lock(folder_.path()); }
  holder = this_process();
  holder.boot = "of-an-earlier-boot";
  leave(holder, 0);
  RunLock lock(folder_.path());
  EXPECT_NE(lock.taken_over(), "");
}

TEST_F(RunLockTest, ALivingProcessOnThisHostHoldsIt) {
  leave(this_process(), 0);
  text_of_refusal();
}

TEST_F(RunLockTest, TheSameSlurmJobTakesItsOwnLock) {
  ::setenv("SLURM_JOB_ID", "77", 1);
  leave(elsewhere(), 0);  // job 77 as well
  {
    RunLock lock(folder_.path());
    EXPECT_NE(lock.taken_over().find("Slurm"), std::string::npos);
  }
  leave(elsewhere(), 0);
  ::setenv("SLURM_JOB_ID", "78", 1);
  EXPECT_NE(text_of_refusal().find("Slurm job 77"), std::string::npos);
  ::unsetenv("SLURM_JOB_ID");
  text_of_refusal();
}

TEST_F(RunLockTest, ADamagedLockCountsByItsAge) {
  leave({}, 10);
  std::ofstream(path_) << "garbage";
  text_of_refusal();
  leave({}, 100);
  RunLock lock(folder_.path(), watch);
}

TEST_F(RunLockTest, TheHeartbeatTouchesOnlyOurs) {
  RunLock lock(folder_.path());
  const timespec old[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), old, 0), 0);
  EXPECT_TRUE(lock.heartbeat());
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_LT(std::llabs(static_cast<long long>(info.st_mtime - std::time(nullptr))), 100);
  ::unlink(path_.c_str());
  EXPECT_TRUE(lock.heartbeat());  // removed by hand: taken again
  EXPECT_EQ(files(), 1u);
  leave(elsewhere(), 30);
  EXPECT_FALSE(lock.heartbeat());
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_LT(info.st_mtime, std::time(nullptr) - 20);  // the other's heartbeat is not ours to make
}

TEST_F(RunLockTest, OnlyOurLockIsGivenBack) {
  {
    RunLock lock(folder_.path());
    leave(elsewhere(), 0);
  }
  EXPECT_EQ(files(), 1u);
}

TEST_F(RunLockTest, NoFolderIsAnIoError) {
  try {
    RunLock lock(folder_ / "absent");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
  }
}

// Several processes want a stale lock at once: exactly one gets it, and keeps it.
TEST_F(RunLockTest, OneOfManyTakesAStaleLock) {
  for (int round = 0; round < 5; ++round) {
    leave(elsewhere(), 1000);
    int decided[2], end[2];
    ASSERT_EQ(::pipe(decided) + ::pipe(end), 0);
    std::vector<pid_t> children;
    for (int i = 0; i < 8; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::close(end[1]);
        char byte = 0;
        try {
          RunLock lock(folder_.path(), watch);
          if (::write(decided[1], "+", 1) != 1 || ::read(end[0], &byte, 1) != 0) ::_exit(3);  // lives until all have decided
          ::_exit(lock.heartbeat() ? 0 : 1);
        } catch (const Error&) {
          ::_exit(::write(decided[1], "-", 1) == 1 ? 2 : 3);
        }
      }
      children.push_back(child);
    }
    int owners = 0;
    for (std::size_t i = 0; i < children.size(); ++i) {
      char byte = 0;
      ASSERT_EQ(::read(decided[0], &byte, 1), 1);
      owners += byte == '+';
    }
    ::close(end[1]);
    int good = 0;
    for (pid_t child : children) {
      int status = 0;
      ::waitpid(child, &status, 0);
      good += WEXITSTATUS(status) == 0;
      EXPECT_NE(WEXITSTATUS(status), 3);
    }
    EXPECT_EQ(owners, 1);
    EXPECT_EQ(good, 1);
    EXPECT_EQ(files(), 1u);
    for (int fd : {decided[0], decided[1], end[0]}) ::close(fd);
  }
}

}  // namespace
}  // namespace nsp::test
