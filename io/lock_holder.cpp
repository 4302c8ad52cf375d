#include "io/lock_holder.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <vector>

#include "io/utc_time.hpp"

namespace nsp {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// State and start time of a process from /proc/<pid>/stat (fields 3 and 22; the name in field 2 may hold anything, ')' too).
bool process_start(int64_t pid, char* state, std::string* start) {
  const std::string line = first_line("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return false;
  std::istringstream rest(line.substr(name_end + 1));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) fields.push_back(field);
  if (fields.size() < 20) return false;
  *state = fields[0][0];
  *start = fields[19];
  return true;
}

bool has_proc() {
  return !first_line("/proc/self/stat").empty();
}

}  // namespace

LockHolder this_process() {
  LockHolder self;
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  self.host = host;
  self.boot = first_line("/proc/sys/kernel/random/boot_id");
  self.pid = ::getpid();
  char state = 0;
  process_start(self.pid, &state, &self.start);
  if (const char* job = std::getenv("SLURM_JOB_ID")) self.job = job;
  self.since = utc_now();
  std::random_device random;
  char token[40];
  std::snprintf(token, sizeof token, "%08x%08x%08x", random(), random(), static_cast<unsigned>(self.pid));
  self.token = token;
  return self;
}

std::string lock_text(const LockHolder& holder) {
  std::ostringstream out;
  out << "# An nsp job runs in this directory. Its heartbeat is the modification time of this file.\n"
      << "host " << holder.host << "\npid " << holder.pid << "\nstart " << holder.start << "\nboot " << holder.boot << "\njob "
      << holder.job << "\nsince " << holder.since << "\ntoken " << holder.token << "\n";
  return out.str();
}

LockHolder parse_lock(const std::string& text) {
  LockHolder holder;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    const std::string key = line.substr(0, space), value = line.substr(space + 1);
    if (key == "host") holder.host = value;
    if (key == "pid") holder.pid = std::atoll(value.c_str());
    if (key == "start") holder.start = value;
    if (key == "boot") holder.boot = value;
    if (key == "job") holder.job = value;
    if (key == "since") holder.since = value;
    if (key == "token") holder.token = value;
  }
  return holder;
}

bool is_gone(const LockHolder& holder, const LockHolder& self) {
  if (holder.host.empty() || holder.host != self.host || holder.pid <= 0 || !has_proc()) return false;
  if (!holder.boot.empty() && !self.boot.empty() && holder.boot != self.boot) return true;
  char state = 0;
  std::string start;
  // /proc may hide the processes of other users (hidepid); then only the signal tells.
  if (!process_start(holder.pid, &state, &start)) return ::kill(static_cast<pid_t>(holder.pid), 0) != 0 && errno == ESRCH;
  return (!holder.start.empty() && start != holder.start) || state == 'Z' || state == 'X';
}

std::string describe(const LockHolder& holder) {
  if (holder.host.empty()) return "an unknown process";
  return "process " + std::to_string(holder.pid) + " on host " + holder.host +
         (holder.job.empty() ? "" : " (Slurm job " + holder.job + ")") + ", since " +
         (holder.since.empty() ? "an unknown time" : holder.since);
}

}  // namespace nsp
