/* tile.h - what gpu.h writes in PTX: products of tiles by a warp, matrices
** from shared memory into registers, copies that a thread waits for later.
** Registers hold what PTX ISA says of mma.m16n8k16 and of ldmatrix. */

#ifndef emulate_tile_h
#define emulate_tile_h

struct EmuMma {
  const uint32_t *a, *b;
  const void *c;
  void *d;
};

static inline float emu_number (uint32_t bits, __half) {
  return shim_from_half(bits);
}

static inline float emu_number (uint32_t bits, __nv_bfloat16) {
  return shim_float(bits << 16);
}

/* Element i of a register file of 16-bit pairs. */
template <class H> float emu_element (const uint32_t *r, int i) {
  return emu_number(r[i / 2] >> 16 * (i & 1) & 0xffff, H());
}

/* Lane t holds of a row-major 16 x 8 tile of sums the columns 2 (t % 4) and
** the next, in the rows t / 4 and 8 below. */
static inline int emu_row (int lane, int i) { return lane / 4 + i / 2 * 8; }
static inline int emu_column (int lane, int i) { return lane % 4 * 2 + i % 2; }

/* One warp's a (16, 16), b (16, 8), and c (16, 8), which becomes d. */
struct EmuTiles {
  float a[16][16], b[16][8], c[16][8];
};

template <class H, bool HALF_SUMS>
__attribute__((no_sanitize("thread"))) void emu_mma_load (EmuTiles *m,
                                                          void **all) {
  for (int t = 0; t < 32; t++) {
    const EmuMma *x = (const EmuMma *)all[t];
    int row = t / 4, column = t % 4 * 2;
    for (int i = 0; i < 8; i++)
      m->a[row + i / 2 % 2 * 8][column + i % 2 + i / 4 * 8] =
          emu_element<H>(x->a, i);
    for (int i = 0; i < 4; i++)
      m->b[column + i % 2 + i / 2 * 8][row] = emu_element<H>(x->b, i);
    for (int i = 0; i < 4; i++)
      m->c[emu_row(t, i)][emu_column(t, i)] =
          HALF_SUMS ? emu_element<__half>((const uint32_t *)x->c, i)
                    : ((const float *)x->c)[i];
  }
}

typedef float EmuRow __attribute__((vector_size(32)));

__attribute__((no_sanitize("thread"))) static inline void
emu_mma_multiply (EmuTiles *m) {
  for (int i = 0; i < 16; i++) {
    EmuRow sum, b;
    memcpy(&sum, m->c[i], sizeof sum);
    for (int k = 0; k < 16; k++) {
      memcpy(&b, m->b[k], sizeof b);
      sum += m->a[i][k] * b;
    }
    memcpy(m->c[i], &sum, sizeof sum);
  }
}

template <class H, bool HALF_SUMS>
__attribute__((no_sanitize("thread"))) void emu_mma (void **all, unsigned) {
  EmuTiles m;
  emu_mma_load<H, HALF_SUMS>(&m, all);
  emu_mma_multiply(&m);
  for (int t = 0; t < 32; t++)
    for (int i = 0; i < 4; i++) {
      float v = m.c[emu_row(t, i)][emu_column(t, i)];
      void *d = ((EmuMma *)all[t])->d;
      if (HALF_SUMS) ((uint16_t *)d)[i] = shim_to_half(v);
      else ((float *)d)[i] = v;
    }
}

template <class H>
void mma16816 (float d[4], const uint32_t a[4], const uint32_t b[2],
               const float c[4], H, EMU_LINE) {
  EmuMma x = { a, b, c, d };
  emu_warp(~0u, &x, emu_mma<H, false>, "mma16816", line);
}

static inline void mma16816 (uint32_t d[2], const uint32_t a[4],
                             const uint32_t b[2], const uint32_t c[2], __half,
                             EMU_LINE) {
  EmuMma x = { a, b, c, d };
  emu_warp(~0u, &x, emu_mma<__half, true>, "mma16816", line);
}

struct EmuMatrices {
  const uint16_t *row;
  uint32_t *to;
};

/* Lane 8 m + i brings the address of row i of matrix m. */
template <bool TRANSPOSED>
__attribute__((no_sanitize("thread"))) void emu_ldmatrix (void **all,
                                                          unsigned) {
  for (int t = 0; t < 32; t++)
    for (int m = 0; m < 4; m++)
      for (int i = 0; i < 2; i++) {
        int row = TRANSPOSED ? t % 4 * 2 + i : t / 4;
        int column = TRANSPOSED ? t / 4 : t % 4 * 2 + i;
        memcpy((uint16_t *)&((EmuMatrices *)all[t])->to[m] + i,
               ((EmuMatrices *)all[m * 8 + row])->row + column, 2);
      }
}

/* Never inlined: the place of the call is what a report shows. */
#define EMU_LDMATRIX(name, TRANSPOSED) \
  __attribute__((noinline, unused)) static void name( \
      uint32_t r[4], const void *row, EMU_LINE) { \
    EmuMatrices x = { (const uint16_t *)row, r }; \
    emu_touch(row, 16, EMU_READ, 16, __builtin_return_address(0)); \
    emu_warp(~0u, &x, emu_ldmatrix<TRANSPOSED>, #name, line); \
  }

EMU_LDMATRIX(ldmatrix_x4, false)
EMU_LDMATRIX(ldmatrix_x4_trans, true)
#undef EMU_LDMATRIX

#define EMU_INLINE static inline __attribute__((always_inline))

EMU_INLINE void cp_async16 (void *shared, const void *global) {
  emu_cp_async(shared, global, 16, 16);
}

/* Sixteen zeros where there is nothing to copy. */
EMU_INLINE void cp_async16_or_zero (void *shared, const void *global,
                                    bool there) {
  emu_cp_async(shared, global, 16, there ? 16 : 0);
}

EMU_INLINE void cp_async_commit () { emu_cp_commit(); }

template <int N> void cp_async_wait () { emu_cp_wait(N); }

#undef EMU_INLINE

#endif
