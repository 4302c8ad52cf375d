#include "tests/cli/command.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace nsp::test {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

int Said::count(const std::string& text) const {
  int n = 0;
  for (std::size_t at = out.find(text); at != std::string::npos; at = out.find(text, at + text.size())) ++n;
  return n;
}

Background::Background(const std::string& command) {
  char name[] = "/tmp/nsp_said_XXXXXX";
  const int file = mkstemp(name);
  if (file < 0) throw std::runtime_error("mkstemp");
  file_ = name;
  const std::string script = "NSP=" + environment("NSP_TEST_BIN_DIR") + "/nsp_app; exec " + command;
  pid_ = fork();
  if (pid_ == 0) {
    setpgid(0, 0);
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(file, 1);
    dup2(file, 2);
    execl("/bin/bash", "bash", "-c", script.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  setpgid(pid_, pid_);
  close(file);
}

Background::~Background() {
  if (!reaped_) {
    kill_all();
    waitpid(pid_, nullptr, 0);
  }
  unlink(file_.c_str());
}

std::string Background::output() const {
  return read_file(file_);
}

bool Background::wait_for(const std::string& text, double seconds) {
  const auto begin = Clock::now();
  while (since(begin) < seconds) {
    if (output().find(text) != std::string::npos) return true;
    if (ended()) return output().find(text) != std::string::npos;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

bool Background::ended() const {
  siginfo_t info{};
  return reaped_ || waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid_;
}

void Background::signal(int number) {
  ::kill(pid_, number);
}

void Background::kill_all() {
  ::kill(-pid_, SIGKILL);
}

Said Background::wait(double seconds) {
  Said said;
  const auto begin = Clock::now();
  int status = 0;
  rusage usage{};
  for (;;) {
    const pid_t done = wait4(pid_, &status, WNOHANG, &usage);
    if (done == pid_) break;
    if (since(begin) > seconds) {
      said.timed_out = true;
      kill_all();
      wait4(pid_, &status, 0, &usage);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  reaped_ = true;
  said.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  said.cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  said.out = output();
  return said;
}

Said run(const std::string& command, double seconds) {
  return Background(command).wait(seconds);
}

TempFolder::TempFolder() {
  char name[] = "/tmp/nsp_cli_XXXXXX";
  if (mkdtemp(name) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string long_token_file(const TempFolder& folder, int copies) {
  const std::string shard = read_file(std::string(std::getenv("NSP_TEST_SOURCE_DIR")) +
                                      "/tests/golden/llmc_tiny/dev/data/tinyshakespeare/tiny_shakespeare_train.bin");
  std::string header = shard.substr(0, 1024), tokens;
  for (int i = 0; i < copies; ++i) tokens += shard.substr(1024);
  const auto count = static_cast<uint32_t>(tokens.size() / 2);
  for (int byte = 0; byte < 4; ++byte) header[static_cast<std::size_t>(8 + byte)] = static_cast<char>(count >> (8 * byte));
  write_file(folder / "long_val.bin", header + tokens);
  return folder / "long_val.bin";
}

std::string tiny_run(const std::string& run_dir, int steps) {
  const std::string golden = environment("NSP_TEST_SOURCE_DIR") + "/tests/golden/llmc_tiny/";
  return " --model.init " + golden + "gpt2_124M.bin --data.path " + golden +
         "dev/data/tinyshakespeare/tiny_shakespeare_train.bin --data.val_path " + golden +
         "dev/data/tinyshakespeare/tiny_shakespeare_val.bin --data.shuffle false --train.global_batch 4 --train.threads 1 --train.schedule "
         "constant --train.warmup 0 --train.lr 1e-3 --train.eval_batches 5" +
         " --run.dir " + run_dir + " --train.steps " + std::to_string(steps) + " ";
}

}  // namespace nsp::test
