// A library that is there when its user is linked, and cannot be found when it is loaded.
int absent_answer() {
  return 42;
}
