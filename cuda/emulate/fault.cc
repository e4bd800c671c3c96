/* fault.cc - telling what is wrong with a kernel, and where.
**
** Handlers of SIGSEGV and SIGBUS come with the first launch; what they do not
** know goes on to those that were there before.  A launch may take
** EMU_TIMEOUT seconds (60).  With EMU_ABORT=1 a report aborts, for a
** debugger. */

#include "machine.h"

#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

char emu_report[1024];

namespace emu {

/*
** {======================================================
** The program or library that holds the kernels
** =======================================================
*/

static struct Module {
  char path[256];
  uintptr_t base;
  struct {
    uintptr_t low, high;
  } constants[16];
  int count;
} module;

static bool holds (const struct dl_phdr_info *m, uintptr_t p) {
  for (int i = 0; i < m->dlpi_phnum; i++)
    if (m->dlpi_phdr[i].p_type == PT_LOAD &&
        p - (m->dlpi_addr + m->dlpi_phdr[i].p_vaddr) < m->dlpi_phdr[i].p_memsz)
      return true;
  return false;
}

static int read_module (struct dl_phdr_info *m, size_t size, void *ud) {
  (void)size, (void)ud;
  if (!holds(m, (uintptr_t)read_module)) return 0;
  module.base = m->dlpi_addr;
  if (m->dlpi_name[0] != '\0')
    snprintf(module.path, sizeof module.path, "%s", m->dlpi_name);
  else snprintf(module.path, sizeof module.path, "/proc/%d/exe", getpid());
  for (int i = 0; i < m->dlpi_phnum && module.count < 16; i++) {
    const ElfW(Phdr) *h = &m->dlpi_phdr[i];
    bool fixed = (h->p_type == PT_LOAD && (h->p_flags & PF_W) == 0) ||
                 h->p_type == PT_GNU_RELRO;
    if (!fixed) continue;
    uintptr_t low = m->dlpi_addr + h->p_vaddr;
    module.constants[module.count++] = { low, low + h->p_memsz };
  }
  return 1;
}

static void open_module () {
  if (module.count == 0) dl_iterate_phdr(read_module, NULL);
}

bool constant (const void *p) {
  uintptr_t a = (uintptr_t)p;
  open_module();
  for (int i = 0; i < module.count; i++)
    if (a >= module.constants[i].low && a < module.constants[i].high)
      return true;
  return false;
}

/* }====================================================== */

/*
** {======================================================
** Reports
** =======================================================
*/

/* Whether a line is of the headers that stand for the language. */
static bool of_language (const char *name) {
  return strncmp(name, "language.h:", 11) == 0 ||
         strncmp(name, "tile.h:", 7) == 0 ||
         strncmp(name, "intrinsics.h:", 13) == 0;
}

/* Writes " at FILE:LINE", and the lines that it is inlined into; nothing if
** there is no addr2line. */
static int write_place (char *to, size_t n, void *pc) {
  char command[400], line[400];
  int k = 0;
  open_module();
  snprintf(command, sizeof command, "addr2line -i -e %s %#lx 2>/dev/null",
           module.path, (unsigned long)((uintptr_t)pc - 1 - module.base));
  FILE *p = popen(command, "r");
  if (p == NULL) return 0;
  while (fgets(line, sizeof line, p) != NULL) {
    line[strcspn(line, " \n")] = '\0';
    const char *slash = strrchr(line, '/');
    const char *name = slash != NULL ? slash + 1 : line;
    if (name[0] != '?' && !of_language(name) && k < (int)n)
      k += snprintf(to + k, n - (size_t)k, "%s%s", k == 0 ? " at " : " in ",
                    name);
  }
  pclose(p);
  return k;
}

void report (const char *kind, void *pc, const char *fmt, ...) {
  char *to = emu_report;
  const int n = sizeof emu_report;
  va_list ap;
  int k = snprintf(to, (size_t)n, "emulate: %s: kernel %s", kind,
                   now.name != NULL ? now.name : "(none)");
  if (self != NULL)
    k += snprintf(to + k, (size_t)(n - k),
                  " block (%u,%u,%u) thread (%u,%u,%u)", now.index.x,
                  now.index.y, now.index.z, self->index.x, self->index.y,
                  self->index.z);
  k += snprintf(to + k, (size_t)(n - k), ": ");
  va_start(ap, fmt);
  k += vsnprintf(to + k, (size_t)(n - k), fmt, ap);
  va_end(ap);
  if (pc != NULL && k < n) write_place(to + k, (size_t)(n - k), pc);
  fprintf(stderr, "%s\n", to);
  if (getenv("EMU_ABORT") != NULL) abort();
}

/* }====================================================== */

/*
** {======================================================
** Signals
** =======================================================
*/

static struct sigaction old_segv, old_bus, old_timer;
static pthread_t launcher; /* the thread that runs kernels */
static timer_t timer;
static int timer_signal;

/* One past the instruction that a signal stopped. */
static void *place_of (void *context) {
  const ucontext_t *u = (const ucontext_t *)context;
#if defined(__x86_64__)
  return (void *)(u->uc_mcontext.gregs[REG_RIP] + 1);
#elif defined(__aarch64__)
  return (void *)(u->uc_mcontext.pc + 1);
#else
  (void)u;
  return NULL;
#endif
}

static const char *freed_word (const Allocation *a) {
  return a->live ? "" : " (freed)";
}

[[noreturn]] static void kernel_fault (int sig, const uint8_t *p, void *pc) {
  const Allocation *a = allocation_of(p);
  if (a != NULL)
    report("out of bounds", pc,
           "address %p is %ld bytes from the start of a device allocation of "
           "%zu%s",
           (const void *)p, (long)(p - a->p), a->size, freed_word(a));
  else
    report("fault", pc, "signal %d, address %p%s", sig, (const void *)p,
           on_stacks(p) ? " (the stack is full)"
           : p == NULL  ? " (NULL, or a misaligned vector)"
                        : "");
  fail(cudaErrorIllegalAddress);
}

static void host_fault (const uint8_t *p, void *pc) {
  const Allocation *a = allocation_of(p);
  if (a != NULL)
    report("host", pc,
           "host code touches device memory, %ld bytes from the start of an "
           "allocation of %zu%s",
           (long)(p - a->p), a->size, freed_word(a));
  else if (on_card(p))
    report("host", pc, "host code touches %p, which is no device allocation",
           (const void *)p);
}

/* Does as if this handler were not there. */
static void pass_on (int sig, siginfo_t *info, void *context) {
  const struct sigaction *old = sig == SIGBUS ? &old_bus : &old_segv;
  if (old->sa_flags & SA_SIGINFO) old->sa_sigaction(sig, info, context);
  else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN)
    old->sa_handler(sig);
  else sigaction(sig, old, NULL); /* the access is tried again */
}

static void on_fault (int sig, siginfo_t *info, void *context) {
  const uint8_t *p = (const uint8_t *)info->si_addr;
  if (self != NULL) kernel_fault(sig, p, place_of(context));
  host_fault(p, place_of(context));
  pass_on(sig, info, context);
}

static void on_timer (int sig, siginfo_t *info, void *context) {
  (void)info;
  if (!pthread_equal(launcher, pthread_self())) {
    pthread_kill(launcher, sig);
    return;
  }
  if (self == NULL) return; /* it has just ended */
  report("hang", place_of(context), "the launch takes over EMU_TIMEOUT");
  fail(cudaErrorLaunchTimeout);
}

/* A handler leaves for another stack and does not return: SA_NODEFER. */
static void handle (int sig, void (*f)(int, siginfo_t *, void *),
                    struct sigaction *old) {
  struct sigaction s;
  memset(&s, 0, sizeof s);
  s.sa_sigaction = f;
  s.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(sig, &s, old);
}

/* A stack for handlers, unless the thread has one: its own may be full. */
static void open_signal_stack () {
  static __thread bool opened;
  stack_t s;
  if (opened) return;
  opened = true;
  if (sigaltstack(NULL, &s) == 0 && (s.ss_flags & SS_DISABLE) == 0) return;
  memset(&s, 0, sizeof s);
  s.ss_size = 256 << 10;
  s.ss_sp = mmap(NULL, s.ss_size, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  sigaltstack(&s, NULL);
}

void faults_open () {
  static bool opened;
  launcher = pthread_self();
  open_signal_stack();
  if (opened) return;
  opened = true;
  struct sigevent e;
  memset(&e, 0, sizeof e);
  timer_signal = SIGRTMIN + 7;
  e.sigev_notify = SIGEV_SIGNAL;
  e.sigev_signo = timer_signal;
  timer_create(CLOCK_MONOTONIC, &e, &timer);
  handle(SIGSEGV, on_fault, &old_segv);
  handle(SIGBUS, on_fault, &old_bus);
  handle(timer_signal, on_timer, &old_timer);
}

static void timer_set (int seconds) {
  struct itimerspec t;
  memset(&t, 0, sizeof t);
  t.it_value.tv_sec = seconds;
  timer_settime(timer, 0, &t, NULL);
}

void timer_start () {
  const char *s = getenv("EMU_TIMEOUT");
  timer_set(s != NULL ? atoi(s) : 60);
}

void timer_stop () { timer_set(0); }

/* }====================================================== */

} // namespace emu

/*
** {======================================================
** What -fsanitize=alignment,bounds calls, without its library, so that the
** report has the thread of the kernel
** =======================================================
*/

struct UbsanPlace {
  const char *file;
  uint32_t line, column;
};

struct UbsanMismatch {
  UbsanPlace place;
  void *type;
  uint8_t log_alignment, kind;
};

static const char *file_name (const UbsanPlace *p) {
  const char *slash = strrchr(p->file, '/');
  return slash != NULL ? slash + 1 : p->file;
}

[[noreturn]] static void stop (cudaError_t e) {
  if (emu::self != NULL) emu::fail(e);
  abort(); /* host code of a .cu file */
}

extern "C" {

__attribute__((visibility("default"))) void
__ubsan_handle_type_mismatch_v1 (UbsanMismatch *m, uintptr_t p) {
  emu::report("misaligned", NULL, "address %#lx needs alignment %d at %s:%u",
              (unsigned long)p, 1 << m->log_alignment, file_name(&m->place),
              m->place.line);
  stop(cudaErrorMisalignedAddress);
}

__attribute__((visibility("default"))) void
__ubsan_handle_out_of_bounds (UbsanPlace *p, uintptr_t index) {
  emu::report("out of bounds", NULL, "index %ld at %s:%u", (long)index,
              file_name(p), p->line);
  stop(cudaErrorIllegalAddress);
}
}

/* }====================================================== */
