// Appends to its build stamp, as comm_mpi does with the flavour of its MPI.
#define NSP_STAMP_SUFFIX ";mpi=test"
#include "tests/bad_plugins/named.cpp"
