/* sniff.c - what a file that is not the expected one seems to be.
**
** The commonest bad file is a good file of another kind: a git-lfs pointer
** where the weights should be, a page that says 404, a pickle. */

#include "io.h"

#include <string.h>
#include <strings.h>

enum { HEAD = 512 };

typedef struct Magic {
  const char *bytes;
  int n;
  const char *what;
} Magic;

static const Magic magics[] = {
  { "version https://git-lfs", 23,
    "a git-lfs pointer; `git lfs pull` fetches the file itself" },
  { "PK\3\4", 4,
    "a zip archive, as PyTorch's pickles (.pt, .bin) and .npz are; save the "
    "weights as safetensors" },
  { "\x80\2", 2, "a Python pickle; save the weights as safetensors" },
  { "\x80\3", 2, "a Python pickle; save the weights as safetensors" },
  { "\x80\4", 2, "a Python pickle; save the weights as safetensors" },
  { "\x80\5", 2, "a Python pickle; save the weights as safetensors" },
  { "GGUF", 4, "a GGUF file" },
  { "\x1f\x8b", 2, "a gzip file" },
  { "BZh", 3, "a bzip2 file" },
  { "\xfd\x37zXZ", 5, "an xz file" },
  { "(\xb5/\xfd", 4, "a zstd file" },
  { "\x93NUMPY", 6, "a .npy file" },
  { "\x89HDF\r\n", 6, "an HDF5 file" },
  { "\x89PNG\r\n\x1a\n", 8, "a PNG image" },
  { "\xff\xd8\xff", 3, "a JPEG image" },
  { "GIF8", 4, "a GIF image" },
  { "RIFF", 4, "a RIFF file, such as a WebP image" },
  { "%PDF", 4, "a PDF document" },
  { "\177ELF", 4, "a program" },
};

static bool begins (const char *s, const char *word) {
  return strncasecmp(s, word, strlen(word)) == 0;
}

static const char *kind (const char *head, int64_t n) {
  for (int i = 0; i < countof(magics); i++)
    if (n >= magics[i].n &&
        memcmp(head, magics[i].bytes, (size_t)magics[i].n) == 0)
      return magics[i].what;
  head += strspn(head, " \t\r\n\xef\xbb\xbf");
  if (begins(head, "<!doctype") || begins(head, "<html"))
    return "an HTML page; the download gave an error page or a login";
  if (begins(head, "<?xml")) return "an XML document";
  if (head[0] == '{' || head[0] == '[') return "JSON";
  return NULL;
}

void reader_wrong (Reader *r, const char *what) {
  char head[HEAD + 1] = { 0 };
  if (r->zip != NULL)
    fnn_throw(FNN_EFORMAT, "%s: is not %s in gzip", r->name, what);
  reader_seek(r, 0);
  const char *is = kind(head, reader_some(r, head, HEAD));
  if (r->size == 0) is = "empty";
  if (is == NULL) fnn_throw(FNN_EFORMAT, "%s: is not %s", r->name, what);
  fnn_throw(FNN_EFORMAT, "%s: is not %s (it is %s)", r->name, what, is);
}
