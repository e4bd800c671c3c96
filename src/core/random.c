/* random.c - generators of random numbers.
**
** "philox" is counter-based: a draw of n blocks is the seed and the counter
** where it starts, so that any thread or device makes any part of it.
** "torch" is PyTorch's CPU generator (torch.c), one number after another. */

#define _GNU_SOURCE

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core.h"

const Type generator_type = { "Generator", NULL };

/* Where the bits of a seed that the system did not give come from. */
static uint64_t entropy_of_time (void) {
  struct timespec t;
  uint32_t mixed[4];
  clock_gettime(CLOCK_REALTIME, &t);
  philox((uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec,
         (uint64_t)getpid() ^ (uint64_t)(uintptr_t)&t, mixed);
  return (uint64_t)mixed[1] << 32 | mixed[0];
}

uint64_t generator_entropy (void) {
  uint64_t seed;
  return getentropy(&seed, sizeof seed) == 0 ? seed : entropy_of_time();
}

/* The step that is being recorded, which draws other numbers each time. */
static fnn_Capture *recording (void) {
  return context_now != NULL ? context_now->capture : NULL;
}

/* Replays go on with a generator: none of them would seed it again. */
static void refuse_seed (const char *what) {
  if (recording() != NULL)
    fnn_throw(FNN_EGRAPH,
              "%s: not in a step that is recorded (fnn.graph_step): its "
              "replays would not seed again",
              what);
}

static void seed_with (fnn_Generator *g, uint64_t seed) {
  g->seed = seed;
  g->counter = 0;
  if (g->is_torch) torch_seed(g->torch, seed);
}

fnn_Generator *fnn_generator (const char *kind, uint64_t seed) {
  bool is_torch = strcmp(kind, "torch") == 0;
  refuse_seed("generator");
  if (!is_torch && strcmp(kind, "philox") != 0)
    fnn_throw(FNN_EARG,
              "generator: unknown kind (expected \"philox\" or "
              "\"torch\", got \"%s\")",
              kind);
  fnn_Generator *g =
      object_new(&generator_type, sizeof *g + is_torch * sizeof(Mersenne));
  g->is_torch = is_torch;
  seed_with(g, seed);
  return g;
}

fnn_Generator *fnn_default_generator (void) { return context()->generator; }

fnn_Generator *generator_or_default (fnn_Generator *g) {
  return g != NULL ? g : fnn_default_generator();
}

void fnn_manual_seed (fnn_Generator *g, uint64_t seed) {
  refuse_seed("manual_seed");
  seed_with(generator_or_default(g), seed);
}

uint64_t fnn_generator_seed (const fnn_Generator *g) { return g->seed; }

const char *fnn_generator_kind (const fnn_Generator *g) {
  return g->is_torch ? "torch" : "philox";
}

/*
** {======================================================
** States
** =======================================================
*/

/* A state is this, as bytes: for philox all but the last member. */
typedef struct State {
  char kind[8];
  uint64_t seed, counter;
  Mersenne torch;
} State;

static int64_t state_bytes (const fnn_Generator *g) {
  return (int64_t)(g->is_torch ? sizeof(State) : offsetof(State, torch));
}

fnn_Tensor *fnn_generator_state (const fnn_Generator *g) {
  State s;
  memset(&s, 0, sizeof s); /* padding too: equal states are equal bytes */
  memcpy(s.kind, fnn_generator_kind(g), strlen(fnn_generator_kind(g)));
  s.seed = g->seed;
  s.counter = g->counter;
  if (g->is_torch) {
    memcpy(s.torch.state, g->torch->state, sizeof s.torch.state);
    s.torch.used = g->torch->used;
    s.torch.has_normal = g->torch->has_normal;
    s.torch.normal = g->torch->normal;
  }
  return fnn_tensor(FNN_U8, 1, (int64_t[]){ state_bytes(g) }, &s);
}

void fnn_generator_restore (fnn_Generator *g, fnn_Tensor *state) {
  const char *kind = fnn_generator_kind(g);
  State s;
  refuse_seed("restore");
  memset(&s, 0, sizeof s);
  if (state->dtype != FNN_U8 || state->numel != state_bytes(g))
    fnn_throw(FNN_EARG,
              "restore: no state of a %s generator (expected "
              "%lld bytes of u8, got %lld of %s)",
              kind, (long long)state_bytes(g), (long long)state->numel,
              fnn_dtype_name((fnn_Dtype)state->dtype));
  fnn_read(state, &s);
  if (strncmp(s.kind, kind, sizeof s.kind) != 0 || s.torch.used < 0 ||
      s.torch.used > countof(s.torch.state))
    fnn_throw(FNN_EARG,
              "restore: no state of a %s generator (its bytes say "
              "otherwise)",
              kind);
  g->seed = s.seed;
  g->counter = s.counter;
  if (g->is_torch) *g->torch = s.torch;
}

/* }====================================================== */

void philox (uint64_t seed, uint64_t counter, uint32_t out[4]) {
  out[0] = (uint32_t)counter;
  out[1] = (uint32_t)(counter >> 32);
  out[2] = out[3] = 0;
  philox_block((uint32_t[]){ (uint32_t)seed, (uint32_t)(seed >> 32) }, out);
}

Draw generator_take (fnn_Generator *g, uint64_t blocks) {
  fnn_Capture *c = recording();
  const uint64_t *ahead = c != NULL ? capture_draw(c, g) : NULL;
  if (g->is_torch) return (Draw){ .seed = torch_next(g->torch) };
  Draw d = { .seed = g->seed, .counter = g->counter, .ahead = ahead };
  g->counter += blocks;
  return d;
}

uint64_t generator_next (fnn_Generator *g) {
  uint32_t w[4];
  if (recording() != NULL)
    fnn_throw(FNN_EGRAPH, "random numbers of the host: not in a step that is "
                          "recorded (fnn.graph_step)");
  if (g->is_torch) return torch_next(g->torch);
  philox(g->seed, g->counter++, w);
  return (uint64_t)w[1] << 32 | w[0];
}

double random_most (fnn_Dtype t, double a, double b) {
  if (!(a < b)) return a;
  if (t == FNN_F64) return nextafter(b, a);
  if (t == FNN_F32) return nextafterf((float)b, (float)a);
  uint16_t bits;
  dtype_set(t, &bits, 0, b);
  /* Sign and magnitude: towards zero above it, away from it below. */
  bits = b > 0 ? bits - 1 : b < 0 ? bits + 1 : 0x8001;
  return fmax(a, dtype_get(t, &bits, 0));
}
