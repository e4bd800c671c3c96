/* main.cu - runs the tests of the emulator. */

#include "test.h"

static int count, failed;
static unsigned seed = 1;

void ok (bool good, const char *fmt, ...) {
  va_list ap;
  printf("%sok %d - ", good ? "" : "not ", ++count);
  va_start(ap, fmt);
  vprintf(fmt, ap);
  va_end(ap);
  printf("\n");
  fflush(stdout);
  if (!good) failed++;
}

bool quiet (const char *name) {
  cudaError_t e = cudaDeviceSynchronize();
  cudaGetLastError();
  if (e == cudaSuccess) return true;
  ok(false, "%s: %s", name, cudaGetErrorString(e));
  return false;
}

void *device (const void *host, size_t n) {
  void *p;
  cudaMalloc(&p, n);
  if (host != NULL) cudaMemcpy(p, host, n, cudaMemcpyHostToDevice);
  return p;
}

void fetch (void *host, const void *p, size_t n) {
  memset(host, 0xee, n);
  cudaMemcpy(host, p, n, cudaMemcpyDeviceToHost);
}

float noise () {
  seed = seed * 1664525 + 1013904223;
  return (float)(seed >> 8) / (1 << 23) - 1;
}

bool line_says (const char *file, int n, const char *word) {
  char line[256] = "", mark[80];
  FILE *f = fopen(file, "r");
  if (f == NULL) return false;
  snprintf(mark, sizeof mark, "/* here: %s */", word);
  while (n-- > 0 && fgets(line, sizeof line, f) != NULL) {}
  fclose(f);
  return strstr(line, mark) != NULL;
}

int main () {
  test_intrinsics();
  test_kernels();
  test_runtime();
  test_graphs();
  test_blas();
  test_faults();
  test_lost();
  printf("1..%d\n", count);
  return failed != 0;
}
