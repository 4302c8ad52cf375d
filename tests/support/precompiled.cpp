// The program that owns the precompiled header of all tests. It does nothing.
int main() {
  return 0;
}
