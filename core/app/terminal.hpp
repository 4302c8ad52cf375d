// The terminal that the output of this process ends on, directly or through the launcher that started it.
#pragma once

#include <optional>
#include <string>

namespace nsp {

class Terminal {
 public:
  // Nothing if output goes to a file, a pipe to another program, or another host. launched: by mpirun, srun or the like, which give
  // their ranks pseudo-terminals (Open MPI) or pipes (MPICH) and copy what arrives; what counts then is the launcher's own output.
  static std::optional<Terminal> find(bool launched);
  ~Terminal();
  Terminal(Terminal&& other) noexcept;
  Terminal& operator=(Terminal&&) = delete;

  int width() const;  // columns, now; 80 if the terminal does not say

 private:
  explicit Terminal(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

// Columns of a terminal without a size, or of no terminal: COLUMNS of the environment, else 80.
int default_width();

}  // namespace nsp
