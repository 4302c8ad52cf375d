// Writes the sample checkpoint into RUN/checkpoints, for read_manifest.py: write_sample RUN STEP RANKS
#include <cstdlib>
#include <iostream>

#include "io/hdf5_store.hpp"
#include "sample_checkpoint.hpp"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    nsp::Hdf5Store store(std::string(argv[1]) + "/checkpoints");
    nsp::test::write_sample(store, std::atoll(argv[2]), std::atoi(argv[3]));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
