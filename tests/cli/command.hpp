// Runs nsp_app as its users do, in a process of its own, and keeps what it said.
#pragma once

#include <sys/types.h>

#include <string>

namespace nsp::test {

struct Said {
  int code = -1;           // exit code; 128 + n for signal n
  std::string out;         // standard output and standard error together
  double cpu_seconds = 0;  // that the command and those it waited for have computed
  bool timed_out = false;
  bool contains(const std::string& text) const { return out.find(text) != std::string::npos; }
  int count(const std::string& text) const;  // occurrences
};

// A shell command; NSP stands for the path of nsp_app, e.g. "mpirun -np 2 $NSP --plugins desloc". The environment of the tests
// is kept. After `seconds` the whole process group is killed.
Said run(const std::string& command, double seconds = 120);

// The same in the background, for signals. wait() ends it; the destructor kills what is left.
class Background {
 public:
  explicit Background(const std::string& command);
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  pid_t pid() const noexcept { return pid_; }              // of the shell's exec: the command itself
  bool wait_for(const std::string& text, double seconds);  // until the output so far contains the text
  bool ended() const;                                      // without waiting for it
  void signal(int number);                                 // to the command
  void kill_all();                                         // SIGKILL to its whole process group
  Said wait(double seconds);

 private:
  std::string output() const;
  pid_t pid_ = -1;
  std::string file_;
  bool reaped_ = false;
};

// A folder that goes away with the object.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  const std::string& path() const noexcept { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& text);
// A file of held-out tokens that takes seconds to evaluate: the training tokens of tests/golden/llmc_tiny, that many times over.
std::string long_token_file(const TempFolder& folder, int copies);
// Options of a run that takes about a second: a tiny model on the tokens of tests/golden/llmc_tiny.
std::string tiny_run(const std::string& run_dir, int steps);

}  // namespace nsp::test
