/* fiber.cc - the threads of one block as fibers on one thread of the host.
**
** A fiber runs until a barrier, a primitive of its warp, or its end; then the
** first of the ready queue goes on.  A thread starts on the stack of the one
** that has just ended, so kernels without barriers never switch. */

#include "machine.h"

#include <sys/mman.h>

/*
** {======================================================
** Switching stacks: pushes what a call must keep, swaps the stack pointer,
** pops.  All leave by one ret, which is predicted and keeps the processor's
** stack of returns paired.
** =======================================================
*/

#if defined(__x86_64__) && !defined(EMU_UCONTEXT)

extern "C" void emu_switch (void **save, void *to);
asm(".text\n"
    ".globl emu_switch\n"
    ".hidden emu_switch\n"
    ".type emu_switch, @function\n"
    "emu_switch:\n"
    "  push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
    "  mov %rsp, (%rdi); mov %rsi, %rsp\n"
    "  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\n"
    "  ret\n");

/* A context that enters entry with the stack as after a call. */
static void *context_new (uint8_t *top, void (*entry)()) {
  void **sp = (void **)top;
  *--sp = NULL;
  *--sp = (void *)entry;
  for (int i = 0; i < 6; i++) *--sp = NULL;
  return sp;
}

#elif defined(__aarch64__) && !defined(EMU_UCONTEXT)

extern "C" void emu_switch (void **save, void *to);
asm(".text\n"
    ".globl emu_switch\n"
    ".hidden emu_switch\n"
    ".type emu_switch, %function\n"
    "emu_switch:\n"
    "  stp x29, x30, [sp, #-160]!\n"
    "  stp x19, x20, [sp, #16]; stp x21, x22, [sp, #32]\n"
    "  stp x23, x24, [sp, #48]; stp x25, x26, [sp, #64]\n"
    "  stp x27, x28, [sp, #80]; stp d8, d9, [sp, #96]\n"
    "  stp d10, d11, [sp, #112]; stp d12, d13, [sp, #128]\n"
    "  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp; str x9, [x0]; mov sp, x1\n"
    "  ldp x19, x20, [sp, #16]; ldp x21, x22, [sp, #32]\n"
    "  ldp x23, x24, [sp, #48]; ldp x25, x26, [sp, #64]\n"
    "  ldp x27, x28, [sp, #80]; ldp d8, d9, [sp, #96]\n"
    "  ldp d10, d11, [sp, #112]; ldp d12, d13, [sp, #128]\n"
    "  ldp d14, d15, [sp, #144]\n"
    "  ldp x29, x30, [sp], #160\n"
    "  ret\n");

static void *context_new (uint8_t *top, void (*entry)()) {
  void **sp = (void **)(top - 160);
  memset(sp, 0, 160);
  sp[1] = (void *)entry; /* x30 */
  return sp;
}

#else

#include <ucontext.h>

/* A context lies on the stack that it saves, or under a new stack's top. */
static void emu_switch (void **save, void *to) {
  ucontext_t here;
  *save = &here;
  swapcontext(&here, (ucontext_t *)to);
}

static void *context_new (uint8_t *top, void (*entry)()) {
  uint8_t *low = (uint8_t *)((uintptr_t)(top - 1) / emu::STACK * emu::STACK);
  ucontext_t *u = (ucontext_t *)(top - (sizeof *u + 63) / 64 * 64);
  getcontext(u);
  u->uc_stack.ss_sp = low + emu::PAGE;
  u->uc_stack.ss_size = (size_t)((uint8_t *)u - low) - emu::PAGE;
  u->uc_link = NULL;
  makecontext(u, entry, 0);
  return u;
}

#endif

/* }====================================================== */

namespace emu {

Launch now;
Thread threads[MOST_THREADS];
__thread Thread *self;

static uint8_t *stacks;
static int free_stacks[MOST_THREADS], free_count;
static void *host_sp; /* of who runs the block */

/* The ready queue: a ring. */
static Thread *ring[MOST_THREADS];
static int head, queued;

static int order[MOST_THREADS];

static struct Warp {
  unsigned here, done; /* lanes that wait in a primitive, that have ended */
} warps[MOST_THREADS / LANES];

/*
** {======================================================
** Running and waiting
** =======================================================
*/

void fibers_open () {
  size_t bytes = (size_t)(MOST_THREADS + 1) * STACK;
  uint8_t *p =
      (uint8_t *)mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  stacks = (uint8_t *)(((uintptr_t)p + STACK - 1) / STACK * STACK);
  for (int i = 0; i < MOST_THREADS; i++) /* an overflow is seen */
    mprotect(stacks + (size_t)i * STACK, PAGE, PROT_NONE);
}

bool on_stacks (const void *p) {
  return (size_t)((const uint8_t *)p - stacks) < (size_t)MOST_THREADS * STACK;
}

void fibers_order (int n) {
  for (int i = 0; i < n; i++) order[i] = emu_order == 1 ? n - 1 - i : i;
  uint32_t seed = (uint32_t)emu_order;
  for (int i = n - 1; emu_order > 1 && i > 0; i--) {
    seed = seed * 1664525 + 1013904223;
    int j = (int)((seed >> 8) % (uint32_t)(i + 1)), t = order[i];
    order[i] = order[j];
    order[j] = t;
  }
}

static void push (Thread *t) { ring[(head + queued++) % MOST_THREADS] = t; }

static Thread *pop () {
  if (queued == 0) return NULL;
  Thread *t = ring[head];
  head = (head + 1) % MOST_THREADS;
  queued--;
  return t;
}

/* Not all at the same place in the caches. */
static uint8_t *stack_top (int s) {
  return stacks + (size_t)(s + 1) * STACK - s % 32 * 192;
}

static void run_threads ();

/* Goes on with t, or with the host if NULL. */
static void switch_to (Thread *t, void **save) {
  self = t;
  if (t == NULL) {
    emu_switch(save, host_sp);
    return;
  }
  if (t->state == NEW) {
    t->stack = free_stacks[--free_count];
    t->sp = context_new(stack_top(t->stack), run_threads);
  }
  emu_switch(save, t->sp);
}

/* Gives way until another fiber has made this one ready. */
static void give_way () {
  Thread *me = self;
  switch_to(pop(), &me->sp);
}

void fail (cudaError_t e) {
  void *never;
  now.failed = true;
  now.code = e;
  switch_to(NULL, &never);
  __builtin_unreachable();
}

static void check_barrier ();

static void end_thread (Thread *t) {
  emu_cp_commit();
  emu_cp_wait(0);
  t->state = DONE;
  warps[t->linear / LANES].done |= 1u << t->linear % LANES;
  now.live--;
  check_barrier();
}

/* A fiber: runs its thread, then those that have not started. */
static void run_threads () {
  for (;;) {
    Thread *t = self;
    t->state = READY;
    now.body->run();
    end_thread(t);
    Thread *next = pop();
    if (next != NULL && next->state == NEW) {
      next->stack = t->stack;
      self = next;
      continue;
    }
    void *never;
    free_stacks[free_count++] = t->stack;
    switch_to(next, &never);
  }
}

static void check_deadlock () {
  if (now.failed || now.live == 0) return;
  for (int i = 0; i < now.threads; i++)
    if (threads[i].state == IN_WARP) self = &threads[i];
  report("deadlock", NULL,
         "waits in %s (line %d, mask %#x) for lanes that never come", self->op,
         self->line, self->mask);
  now.failed = true;
  now.code = cudaErrorLaunchFailure;
}

void fibers_run_block () {
  now.live = now.threads;
  now.waiting = now.votes = 0;
  now.epoch = 0;
  now.fenced = false;
  head = queued = 0;
  free_count = MOST_THREADS;
  for (int i = 0; i < MOST_THREADS; i++) free_stacks[i] = MOST_THREADS - 1 - i;
  memset(warps, 0, sizeof warps);
  for (int i = 0; i < now.threads; i++) {
    Thread *t = &threads[order[i]];
    t->state = NEW;
    t->epoch = 0;
    t->group = 0;
    t->copies.clear();
    push(t);
  }
  switch_to(pop(), &host_sp);
  check_deadlock();
  self = NULL;
}

/* }====================================================== */

/*
** {======================================================
** Barriers
** =======================================================
*/

static Thread *first_in (State s) {
  for (int i = 0; i < now.threads; i++)
    if (threads[i].state == s) return &threads[i];
  return NULL;
}

/* All that live wait: at the same place, and nobody has left? */
static void check_places (Thread *w) {
  Thread *gone = first_in(DONE);
  self = w;
  if (gone != NULL)
    FAIL("barrier", NULL,
         "waits at __syncthreads (line %d) but %d of %d threads have "
         "returned, thread (%u,%u,%u) first",
         w->line, now.threads - now.live, now.threads, gone->index.x,
         gone->index.y, gone->index.z);
  for (int i = 0; i < now.threads; i++)
    if (threads[i].line != w->line)
      FAIL("barrier", NULL,
           "waits at __syncthreads line %d, but thread (%u,%u,%u) at line %d",
           w->line, threads[i].index.x, threads[i].index.y, threads[i].index.z,
           threads[i].line);
}

static void check_barrier () {
  if (now.waiting == 0 || now.waiting < now.live) return;
  Thread *me = self;
  check_places(first_in(AT_BARRIER));
  self = me;
  now.waiting = 0;
  now.vote = now.votes;
  now.votes = 0;
  now.epoch++;
  for (int i = 0; i < now.threads; i++) {
    Thread *t = &threads[order[i]];
    t->state = READY;
    t->epoch = 0;
    push(t);
  }
}

} // namespace emu

using namespace emu;

int emu_block_sync (int line, bool vote) {
  self->state = AT_BARRIER;
  self->line = line;
  now.waiting++;
  now.votes += vote;
  check_barrier();
  give_way();
  return now.vote;
}

/* Lanes that do not meet as the mask says. */
static void check_meeting (const Warp *w, const Thread *me, int lanes) {
  unsigned mask = me->mask, none = lanes < LANES ? ~0u << lanes : 0;
  if (!(mask >> me->linear % LANES & 1))
    FAIL("warp", NULL,
         "calls %s (line %d) with mask %#x that lacks its own "
         "lane",
         me->op, me->line, mask);
  if ((none | w->done) & mask)
    FAIL("warp", NULL,
         "%s (line %d): mask %#x names lanes that have returned or do not "
         "exist",
         me->op, me->line, mask);
  unsigned others = w->here & mask & ~(1u << me->linear % LANES);
  if (others == 0) return;
  const Thread *t =
      &threads[me->linear / LANES * LANES + __builtin_ctz(others)];
  if (t->mask != mask || t->line != me->line || t->op != me->op)
    FAIL("warp", NULL,
         "%s (line %d, mask %#x) meets lane %d in %s (line %d, mask %#x)",
         me->op, me->line, mask, t->linear % LANES, t->op, t->line, t->mask);
}

/* All are here: does what they came for, and lets them go on. */
static void meet (Warp *w, Thread *me, EmuTogether *f) {
  Thread *lanes = &threads[me->linear / LANES * LANES];
  unsigned mask = me->mask;
  void *all[LANES];
  w->here &= ~mask;
  for (int i = 0; i < LANES; i++)
    all[i] = mask >> i & 1 ? lanes[i].mine : NULL;
  if (f != NULL) f(all, mask);
  for (int i = 0; i < LANES; i++)
    if (mask >> i & 1) {
      lanes[i].state = READY;
      if (f == NULL) lanes[i].epoch++; /* only __syncwarp orders memory */
      if (&lanes[i] != me) push(&lanes[i]);
    }
}

void emu_warp (unsigned mask, void *mine, EmuTogether *f, const char *op,
               int line) {
  Thread *me = self;
  int lane = me->linear % LANES, lanes = now.threads - (me->linear - lane);
  Warp *w = &warps[me->linear / LANES];
  if (lanes < LANES && mask == ~0u) /* a short last warp: all of it */
    mask = (1u << lanes) - 1;
  me->mask = mask;
  me->mine = mine;
  me->op = op;
  me->line = line;
  me->state = IN_WARP;
  w->here |= 1u << lane;
  check_meeting(w, me, lanes);
  if ((w->here & mask) == mask) meet(w, me, f);
  else give_way();
}

void emu_fence () { now.fenced = true; }

void emu_trap (int line) { FAIL("trap", NULL, "__trap at line %d", line); }

unsigned emu_lane () { return (unsigned)self->linear % LANES; }
uint3 emu_thread_idx () { return self->index; }
uint3 emu_block_idx () { return now.index; }
dim3 emu_block_dim () { return now.block; }
dim3 emu_grid_dim () { return now.grid; }

/* }====================================================== */
