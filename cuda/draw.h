/* draw.h - the random words of a draw: Philox4x32-10, as the CPU has it. */

#ifndef cuda_draw_h
#define cuda_draw_h

#include "cuda.h"

enum { DRAW_ROUNDS = 10 };

/* The block of the draw that is at from its start, as a key and a counter. */
static __device__ inline void draw_block (const Draw &d, uint64_t at,
                                          uint32_t w[4]) {
  uint64_t c = d.counter + at;
  if (d.ahead != NULL) c += *d.ahead;
  w[0] = (uint32_t)c;
  w[1] = (uint32_t)(c >> 32);
  w[2] = w[3] = 0;
  uint32_t k0 = (uint32_t)d.seed, k1 = (uint32_t)(d.seed >> 32);
  for (int i = 0; i < DRAW_ROUNDS; i++, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
    uint64_t a = (uint64_t)w[0] * 0xD2511F53;
    uint64_t b = (uint64_t)w[2] * 0xCD9E8D57;
    w[0] = (uint32_t)(b >> 32) ^ w[1] ^ k0;
    w[1] = (uint32_t)b;
    w[2] = (uint32_t)(a >> 32) ^ w[3] ^ k1;
    w[3] = (uint32_t)a;
  }
}

#endif
