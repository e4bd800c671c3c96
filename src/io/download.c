/* download.c - files from the network, by libcurl.
**
** libcurl is opened when it is first wanted: the many libraries behind it
** would slow every start.  The transfer runs on this thread between polls, so
** that it reports progress and is cancelled as any long work.  Its bytes go
** to a file beside the target, which gets the target's name only when its
** content is right. */

#define _FILE_OFFSET_BITS 64

#include "io.h"

#ifndef FNN_CURL

FNN_NORETURN void fnn_download (const char *url, const char *path,
                                int64_t size, uint32_t crc) {
  (void)path, (void)size, (void)crc;
  fnn_throw(FNN_EFILE, "%s: cannot be fetched: this build has no libcurl",
            url);
}

#else

#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Seconds without an answer, or with hardly a byte, that end a transfer. */
enum { PATIENCE = 20, TURN_MS = 50 };

/* What is used of libcurl. */
/* clang-format off */
#define FUNCTIONS(X) \
  X(easy_init) \
  X(easy_setopt) X(easy_strerror) X(easy_getinfo) X(easy_cleanup) \
      X(multi_init) X(multi_add_handle) X(multi_perform) X(multi_poll) \
          X(multi_info_read) X(multi_remove_handle) X(multi_cleanup)
/* clang-format on */

typedef struct Curl {
#define FIELD(name) __typeof__(&(curl_##name)) name;
  FUNCTIONS(FIELD)
#undef FIELD
} Curl;

/* Fills c; false when libcurl is not installed or too old. */
static bool find_curl (Curl *c) {
  void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return false;
#define FIND(name) \
  *(void **)&c->name = dlsym(library, "curl_" #name); \
  if (c->name == NULL) return false;
  FUNCTIONS(FIND)
#undef FIND
  return true;
}

typedef struct Download {
  Object o;
  Curl curl;
  CURLM *multi;
  CURL *easy;
  bool added;        /* easy is in multi */
  int fd;            /* of part */
  int failed;        /* errno of a write that failed */
  bool partial;      /* part exists and is to be removed */
  int64_t got, most; /* bytes so far, and how many are let in */
  const char *what;  /* the file's own name, for progress */
  char part[PATH_MAX];
} Download;

static void download_destroy (void *o) {
  Download *d = o;
  if (d->added) d->curl.multi_remove_handle(d->multi, d->easy);
  if (d->easy != NULL) d->curl.easy_cleanup(d->easy);
  if (d->multi != NULL) d->curl.multi_cleanup(d->multi);
  if (d->fd >= 0) close(d->fd);
  if (d->partial) unlink(d->part);
}

static const Type download_type = { "Download", download_destroy };

/* Called by libcurl, which a throw must not pass: tells by its result. */
static size_t receive (char *bytes, size_t one, size_t n, void *ud) {
  Download *d = ud;
  (void)one;
  if ((int64_t)n > d->most - d->got) return 0;
  for (size_t put = 0; put < n;) {
    ssize_t w = write(d->fd, bytes + put, n - put);
    if (w < 0 && errno == EINTR) continue;
    if (w < 0) {
      d->failed = errno;
      return 0;
    }
    put += (size_t)w;
  }
  d->got += (int64_t)n;
  return n;
}

static void open_part (Download *d, const char *path) {
  int n =
      snprintf(d->part, sizeof d->part, "%s.%ld.part", path, (long)getpid());
  if (path[0] == '\0' || n >= (int)sizeof d->part) {
    errno = path[0] == '\0' ? ENOENT : ENAMETOOLONG;
    reader_fail(path, "write");
  }
  folder_around(path);
  d->fd = open(d->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (d->fd < 0) reader_fail(path, "write");
  d->partial = true;
}

static void set_options (Download *d, const char *url) {
  __typeof__(d->curl.easy_setopt) set = d->curl.easy_setopt;
  set(d->easy, CURLOPT_URL, url);
#if LIBCURL_VERSION_NUM >= 0x075500
  set(d->easy, CURLOPT_PROTOCOLS_STR, "http,https");
  set(d->easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
  set(d->easy, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
  set(d->easy, CURLOPT_REDIR_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
  set(d->easy, CURLOPT_FOLLOWLOCATION, 1L);
  set(d->easy, CURLOPT_MAXREDIRS, 10L);
  set(d->easy, CURLOPT_FAILONERROR, 1L);
  set(d->easy, CURLOPT_NOSIGNAL, 1L);
  set(d->easy, CURLOPT_CONNECTTIMEOUT, (long)PATIENCE);
  set(d->easy, CURLOPT_LOW_SPEED_LIMIT, 100L);
  set(d->easy, CURLOPT_LOW_SPEED_TIME, (long)PATIENCE);
  set(d->easy, CURLOPT_USERAGENT, "fnn/" FNN_VERSION);
  set(d->easy, CURLOPT_WRITEFUNCTION, receive);
  set(d->easy, CURLOPT_WRITEDATA, d);
}

/* How many bytes there will be, or 0. */
static int64_t expected (Download *d) {
  curl_off_t n = 0;
  d->curl.easy_getinfo(d->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &n);
  return max64(n, 0);
}

static void transfer (Download *d) {
  int running = 1;
  while (running) {
    if (d->curl.multi_perform(d->multi, &running) != CURLM_OK) break;
    fnn_progress(d->what, d->got, expected(d));
    fnn_poll();
    if (running) d->curl.multi_poll(d->multi, NULL, 0, TURN_MS, NULL);
  }
}

/* Throws unless the transfer ended well. */
static void check_transfer (Download *d, const char *url, const char *path) {
  int left;
  CURLMsg *done = d->curl.multi_info_read(d->multi, &left);
  CURLcode code = done != NULL ? done->data.result : CURLE_FAILED_INIT;
  long status = 0;
  if (d->failed != 0) {
    errno = d->failed;
    reader_fail(path, "write");
  }
  if (code == CURLE_OK) return;
  d->curl.easy_getinfo(d->easy, CURLINFO_RESPONSE_CODE, &status);
  if (code == CURLE_HTTP_RETURNED_ERROR)
    fnn_throw(FNN_EFILE, "%s: the server answered %ld", url, status);
  if (code == CURLE_WRITE_ERROR)
    fnn_throw(FNN_EFORMAT, "%s: has more bytes than it should", url);
  fnn_throw(FNN_EFILE, "%s: %s", url, d->curl.easy_strerror(code));
}

static void check_content (const Download *d, const char *url, int64_t size,
                           uint32_t crc) {
  int64_t n;
  uint32_t c = file_crc32(d->part, &n);
  if (n != size)
    fnn_throw(FNN_EFORMAT, "%s: has %lld bytes (expected %lld)", url,
              (long long)n, (long long)size);
  if (c != crc)
    fnn_throw(FNN_EFORMAT, "%s: has checksum %08x (expected %08x)", url, c,
              crc);
}

void fnn_download (const char *url, const char *path, int64_t size,
                   uint32_t crc) {
  size_t m = fnn_mark();
  reader_allowed(url, "r");
  reader_allowed(path, "w");
  Download *d = object_new(&download_type, sizeof *d);
  d->fd = -1;
  if (!find_curl(&d->curl))
    fnn_throw(FNN_EFILE, "%s: cannot be fetched: libcurl is not installed",
              url);
  /* What gzip makes of bytes that it cannot compress is hardly longer. */
  d->most = size >= 0 ? size + size / 64 + 4096 : INT64_MAX;
  const char *slash = strrchr(path, '/');
  d->what = slash != NULL ? slash + 1 : path;
  open_part(d, path);
  d->multi = d->curl.multi_init();
  d->easy = d->curl.easy_init();
  if (d->multi == NULL || d->easy == NULL)
    fnn_throw(FNN_EMEMORY, "%s: no memory for the transfer", url);
  set_options(d, url);
  d->added = d->curl.multi_add_handle(d->multi, d->easy) == CURLM_OK;
  transfer(d);
  check_transfer(d, url, path);
  if (fsync(d->fd) != 0) reader_fail(path, "write");
  if (size >= 0) check_content(d, url, size, crc);
  if (rename(d->part, path) != 0) reader_fail(path, "write");
  d->partial = false;
  fnn_escape(m, NULL);
}

#endif
