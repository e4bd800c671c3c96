/* png.c - PNG images, by libpng, and the texts in them.
**
** libpng reports an error by a call that must not return; ours throws.  The
** throw destroys the Codec, and with it all that libpng holds, then jumps
** past libpng's own frames, as its longjmp would.  Memory is the engine's. */

#include "io.h"

#include <png.h>
#include <string.h>

enum { SIDE_MAX = 1 << 20, RATIO = 1032, KEY_MAX = 79 };

/* One text: both parts are UTF-8, in one block. */
typedef struct Text {
  char *key, *text;
  size_t size;
} Text;

struct fnn_Png {
  Object o;
  Tensor *image; /* retained: u8 (h, w, c) */
  int n;
  Text *text;
};

/* libpng at work; an object, so that a throw frees it. */
typedef struct Codec {
  Object o;
  png_structp png;
  png_infop info;
  const char *path;
  Reader *reader; /* borrowed; NULL when writing */
  Writer *writer; /* borrowed; NULL when reading */
  bool no_memory; /* the error to come has this cause */
} Codec;

static void png_destroy (void *o) {
  fnn_Png *p = o;
  for (int i = 0; i < p->n; i++) mem_free(p->text[i].key, p->text[i].size);
  mem_free(p->text, (size_t)p->n * sizeof *p->text);
  fnn_release(p->image);
}

static void codec_destroy (void *o) {
  Codec *c = o;
  if (c->writer != NULL) png_destroy_write_struct(&c->png, &c->info);
  else png_destroy_read_struct(&c->png, &c->info, NULL);
}

static const Type image_type = { "Png", png_destroy };
static const Type codec_type = { "Codec", codec_destroy };

static PNG_NORETURN void fail (png_structp png, const char *text) {
  Codec *c = png_get_error_ptr(png);
  if (c->no_memory) fnn_throw(FNN_EMEMORY, "%s: out of memory", c->path);
  fnn_throw(c->reader != NULL ? FNN_EFORMAT : FNN_EARG, "%s: %s", c->path,
            text);
}

static void ignore (png_structp png, const char *text) {
  (void)png, (void)text;
}

static png_voidp take (png_structp png, png_alloc_size_t n) {
  Codec *c = png_get_mem_ptr(png);
  void *p = reader_alloc(n);
  c->no_memory |= p == NULL;
  return p;
}

static void give (png_structp png, png_voidp p) {
  (void)png;
  reader_free(p);
}

/* For want of memory libpng leaves a text where it is, and would read on in
** the middle of it. */
static void pull (png_structp png, png_bytep to, size_t n) {
  Codec *c = png_get_io_ptr(png);
  if (c->no_memory) png_error(png, "out of memory");
  reader_read(c->reader, to, (int64_t)n);
}

static void push (png_structp png, png_bytep from, size_t n) {
  writer_put(((Codec *)png_get_io_ptr(png))->writer, from, (int64_t)n);
}

static void flush (png_structp png) { (void)png; }

static Codec *codec_new (const char *path, Reader *r, Writer *w) {
  Codec *c = object_new(&codec_type, sizeof *c);
  c->path = path;
  c->reader = r;
  c->writer = w;
  if (r != NULL)
    c->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, c, fail, ignore,
                                      c, take, give);
  else
    c->png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, c, fail, ignore,
                                       c, take, give);
  if (c->png != NULL) c->info = png_create_info_struct(c->png);
  if (c->info == NULL) fnn_throw(FNN_EMEMORY, "%s: out of memory", path);
  return c;
}

/*
** {======================================================
** Reading
** =======================================================
*/

/* Appends n bytes of UTF-8, or of Latin-1, and a zero. */
static char *append (char *to, const char *s, size_t n, bool utf8) {
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)s[i];
    if (c >= 0x80 && !utf8) {
      *to++ = (char)(0xc0 | c >> 6);
      c = 0x80 | (c & 0x3f);
    }
    *to++ = (char)c;
  }
  *to++ = '\0';
  return to;
}

/* iTXt is UTF-8, or should be; the others are Latin-1, as are all keys. */
static void add_text (Text *t, const png_text *from) {
  bool utf8 = from->compression >= PNG_ITXT_COMPRESSION_NONE;
  size_t nkey = strlen(from->key);
  size_t n = utf8 ? from->itxt_length : from->text_length;
  utf8 &= json_utf8(from->text, n);
  t->size = 2 * (nkey + n) + 2;
  t->key = mem_new(t->size);
  t->text = append(t->key, from->key, nkey, false);
  append(t->text, from->text, n, utf8);
}

static void keep_texts (fnn_Png *p, Codec *c) {
  png_textp text;
  int n = png_get_text(c->png, c->info, &text, NULL);
  if (n <= 0) return;
  p->text = mem_new((size_t)n * sizeof *p->text);
  memset(p->text, 0, (size_t)n * sizeof *p->text);
  p->n = n;
  for (int i = 0; i < n; i++) add_text(&p->text[i], &text[i]);
}

/* Refuses sizes that the file's bytes cannot be the deflation of. */
static void check_size (Codec *c, int64_t w, int64_t h) {
  int64_t bits =
      png_get_bit_depth(c->png, c->info) * png_get_channels(c->png, c->info);
  if (w > SIDE_MAX || h > SIDE_MAX)
    fnn_throw(FNN_EFORMAT, "%s: is %lld by %lld pixels (at most %d a side)",
              c->path, (long long)w, (long long)h, SIDE_MAX);
  if (w * h / 8 * bits / RATIO > c->reader->size)
    fnn_throw(FNN_EFORMAT,
              "%s: truncated: %lld by %lld pixels do not fit "
              "its %lld bytes",
              c->path, (long long)w, (long long)h, (long long)c->reader->size);
}

/* Asks for 8 bits a channel, colours instead of palettes, alpha instead of
** a transparent colour. */
static void ask_bytes (Codec *c) {
  png_set_expand(c->png);
  png_set_scale_16(c->png);
  png_set_interlace_handling(c->png);
  png_read_update_info(c->png, c->info);
}

static void read_pixels (fnn_Png *p, Codec *c) {
  int64_t h = png_get_image_height(c->png, c->info);
  int64_t w = png_get_image_width(c->png, c->info);
  check_size(c, w, h);
  ask_bytes(c);
  int64_t n = png_get_channels(c->png, c->info);
  p->image =
      fnn_retain(tensor_new(3, (int64_t[]){ h, w, n }, FNN_U8, device_cpu()));
  png_bytep *row = mem_scratch((size_t)h * sizeof *row), data;
  data = tensor_data(p->image);
  for (int64_t i = 0; i < h; i++) row[i] = data + i * w * n;
  png_read_image(c->png, row);
  png_read_end(c->png, c->info);
}

fnn_Png *png_open (Reader *r) {
  unsigned char magic[8];
  size_t m = fnn_mark();
  if (reader_some(r, magic, 8) < 8 || png_sig_cmp(magic, 0, 8) != 0)
    reader_wrong(r, "a PNG image");
  fnn_Png *p = object_new(&image_type, sizeof *p);
  Codec *c = codec_new(r->name, r, NULL);
  png_set_read_fn(c->png, c, pull);
  png_set_sig_bytes(c->png, 8);
  png_set_user_limits(c->png, SIDE_MAX, SIDE_MAX);
  png_read_info(c->png, c->info);
  read_pixels(p, c);
  keep_texts(p, c);
  return fnn_escape(m, p);
}

fnn_Png *fnn_png_read (const char *path) {
  size_t m = fnn_mark();
  return fnn_escape(m, png_open(reader_open(path)));
}

int fnn_png_text_count (const fnn_Png *p) { return p->n; }

const char *fnn_png_text (const fnn_Png *p, int i, const char **key) {
  if (i < 0 || i >= p->n)
    fnn_throw(FNN_EARG, "png_text: text %d is out of range (it has %d)", i,
              p->n);
  if (key != NULL) *key = p->text[i].key;
  return p->text[i].text;
}

/* }====================================================== */

Tensor *fnn_png_image (fnn_Png *p, int channels) {
  if (channels < 0 || channels > 4)
    fnn_throw(FNN_EARG, "png_image: channels must be 0 to 4 (got %d)",
              channels);
  return image_channels(p->image, channels);
}

/*
** {======================================================
** Writing
** =======================================================
*/

/* Whether s can be said in Latin-1, and that, in to (strlen(s) + 1 bytes). */
static bool latin1 (const char *s, char *to) {
  const unsigned char *p = (const unsigned char *)s;
  for (; *p != '\0'; p++) {
    if (*p < 0x80) {
      *to++ = (char)*p;
    } else if ((*p & 0xfe) == 0xc2 && (p[1] & 0xc0) == 0x80) {
      *to++ = (char)((p[0] & 3) << 6 | (p[1] & 0x3f));
      p++;
    } else return false;
  }
  *to = '\0';
  return true;
}

/* Keywords are 1 to 79 printable characters of Latin-1 (PNG, 11.3.4.2). */
static void check_key (const char *path, const char *key, const char *said) {
  size_t n = strlen(said);
  bool ok = n >= 1 && n <= KEY_MAX && said[0] != ' ' && said[n - 1] != ' ' &&
            strstr(said, "  ") == NULL;
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)said[i];
    ok &= (c >= 32 && c <= 126) || c >= 161;
  }
  if (!ok)
    fnn_throw(FNN_EARG,
              "%s: \"%.80s\" is not a keyword of PNG (1 to 79 "
              "Latin-1 letters, no space at an end or doubled)",
              path, key);
}

/* tEXt when Latin-1 can say it, else iTXt. */
static void say (const char *path, png_text *t, const char *key,
                 const char *text) {
  memset(t, 0, sizeof *t);
  t->key = mem_scratch(strlen(key) + 1);
  if (!latin1(key, t->key)) t->key[0] = '\0';
  check_key(path, key, t->key);
  t->text = mem_scratch(strlen(text) + 1);
  t->compression = PNG_TEXT_COMPRESSION_NONE;
  t->text_length = strlen(text);
  if (latin1(text, t->text)) {
    t->text_length = strlen(t->text);
    return;
  }
  if (!json_utf8(text, strlen(text)))
    fnn_throw(FNN_EARG, "%s: the text of %s is not UTF-8", path, key);
  strcpy(t->text, text);
  t->compression = PNG_ITXT_COMPRESSION_NONE;
  t->itxt_length = t->text_length;
  t->text_length = 0;
}

/* name begins the messages. */
static void encode (const char *name, Writer *w, Tensor *x, int ntext,
                    const char *const *keys, const char *const *texts) {
  static const int colour[] = { PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGBA };
  int64_t n = x->ndim == 2 ? 1 : x->shape[2], h = x->shape[0];
  int64_t row = x->shape[1] * n;
  png_text *text = mem_scratch((size_t)(ntext + 1) * sizeof *text);
  for (int i = 0; i < ntext; i++) say(name, &text[i], keys[i], texts[i]);
  const uint8_t *data = writer_elements(x);
  Codec *c = codec_new(name, NULL, w);
  png_set_write_fn(c->png, c, push, flush);
  png_set_user_limits(c->png, SIDE_MAX, SIDE_MAX);
  png_set_IHDR(c->png, c->info, (png_uint_32)x->shape[1], (png_uint_32)h, 8,
               colour[n - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE,
               PNG_FILTER_TYPE_BASE);
  png_set_text(c->png, c->info, text, ntext);
  png_write_info(c->png, c->info);
  for (int64_t i = 0; i < h; i++) png_write_row(c->png, data + i * row);
  png_write_end(c->png, c->info);
}

static void check_image (const char *what, Tensor *x) {
  int64_t n = x->ndim == 2 ? 1 : x->ndim == 3 ? x->shape[2] : 0;
  if (x->dtype != FNN_U8 || n < 1 || n > 4 || x->numel == 0 ||
      x->shape[0] > SIDE_MAX || x->shape[1] > SIDE_MAX)
    fnn_throw(FNN_ESHAPE,
              "%s: expected u8 of shape (h, w) or (h, w, "
              "1 to 4), got %s of shape %s",
              what, fnn_dtype_name((fnn_Dtype)x->dtype), shape_text(x));
}

void fnn_png_write (const char *path, Tensor *x, int ntext,
                    const char *const *keys, const char *const *texts) {
  size_t m = fnn_mark();
  check_image("png_write", x);
  Writer *w = writer_open(path);
  encode(path, w, x, ntext, keys, texts);
  writer_close(w);
  fnn_escape(m, NULL);
}

Tensor *fnn_png_encode (Tensor *x, int ntext, const char *const *keys,
                        const char *const *texts) {
  size_t m = fnn_mark();
  check_image("png_encode", x);
  Writer *w = writer_memory();
  encode("png_encode", w, x, ntext, keys, texts);
  return fnn_escape(m, writer_bytes(w));
}

/* }====================================================== */
