/* jpeg.c - JPEG images, by libjpeg (libjpeg-turbo), turned upright.
**
** libjpeg reports an error by a call that must not return; ours throws.  The
** throw destroys the Codec, and with it all that libjpeg holds, then jumps
** past libjpeg's own frames, as its longjmp would.  What libjpeg holds is not
** counted: a few rows, and of images in several scans all coefficients, which
** are held against the limit before they are asked for.
**
** A file that ends early, or whose codes are damaged, is an error: libjpeg
** itself would go on with grey. */

#include <stdio.h>

#include "io.h"

#ifndef FNN_JPEG

bool fnn_has_jpeg (void) { return false; }

Tensor *jpeg_read (Reader *r) {
  fnn_throw(FNN_EFILE, "%s: is a JPEG image: this build has no libjpeg",
            r->name);
}

#else

#include <jerror.h>
#include <jpeglib.h>
#include <string.h>

/* RATIO: every 64 pixels of some channel take a bit or more.  SCANS: passes
** over an image of which each may take a second and a few bytes; encoders
** make about ten. */
enum { RATIO = 512, SCANS = 200, PIECE = 1 << 14, MARKER = JPEG_APP0 + 1 };

typedef struct Codec {
  Object o;
  struct jpeg_decompress_struct jpeg;
  struct jpeg_error_mgr errors;
  struct jpeg_source_mgr source;
  struct jpeg_progress_mgr progress;
  bool made;
  Reader *reader; /* borrowed */
  unsigned char piece[PIECE];
} Codec;

bool fnn_has_jpeg (void) { return true; }

static void codec_destroy (void *o) {
  Codec *c = o;
  if (c->made) jpeg_destroy_decompress(&c->jpeg);
}

static const Type codec_type = { "Codec", codec_destroy };

/*
** {======================================================
** What libjpeg calls
** =======================================================
*/

static FNN_NORETURN void fail (j_common_ptr j) {
  char text[JMSG_LENGTH_MAX];
  Codec *c = j->client_data;
  j->err->format_message(j, text);
  fnn_throw(j->err->msg_code == JERR_OUT_OF_MEMORY ? FNN_EMEMORY : FNN_EFORMAT,
            "%s: bad JPEG image: %s", c->reader->name, text);
}

/* Warnings: those of damaged data are errors. */
static void emit (j_common_ptr j, int level) {
  if (level >= 0) return;
  switch (j->err->msg_code) {
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_BOGUS_PROGRESSION: fail(j);
    default: return;
  }
}

static void quiet (j_common_ptr j) { (void)j; }
static void nothing (j_decompress_ptr j) { (void)j; }

static boolean fill (j_decompress_ptr j) {
  Codec *c = j->client_data;
  int64_t n = reader_some(c->reader, c->piece, PIECE);
  if (n == 0)
    fnn_throw(FNN_EFORMAT,
              "%s: truncated: its JPEG data end early at byte "
              "%lld",
              c->reader->name, (long long)c->reader->size);
  c->source.next_input_byte = c->piece;
  c->source.bytes_in_buffer = (size_t)n;
  return TRUE;
}

static void skip (j_decompress_ptr j, long n) {
  Codec *c = j->client_data;
  while (n > (long)c->source.bytes_in_buffer) {
    n -= (long)c->source.bytes_in_buffer;
    fill(j);
  }
  if (n <= 0) return;
  c->source.next_input_byte += n;
  c->source.bytes_in_buffer -= (size_t)n;
}

static void watch (j_common_ptr j) {
  Codec *c = j->client_data;
  fnn_poll();
  if (j->is_decompressor && c->jpeg.input_scan_number > SCANS)
    fnn_throw(FNN_EFORMAT, "%s: bad JPEG image: more than %d scans",
              c->reader->name, SCANS);
}

static Codec *codec_new (Reader *r) {
  Codec *c = object_new(&codec_type, sizeof *c);
  c->reader = r;
  c->jpeg.err = jpeg_std_error(&c->errors);
  c->errors.error_exit = fail;
  c->errors.emit_message = emit;
  c->errors.output_message = quiet;
  c->jpeg.client_data = c;
  jpeg_create_decompress(&c->jpeg);
  c->made = true;
  c->source.init_source = nothing;
  c->source.fill_input_buffer = fill;
  c->source.skip_input_data = skip;
  c->source.resync_to_restart = jpeg_resync_to_restart;
  c->source.term_source = nothing;
  c->jpeg.src = &c->source;
  c->progress.progress_monitor = watch;
  c->jpeg.progress = &c->progress;
  return c;
}

/* }====================================================== */

/*
** {======================================================
** Orientation: a tag of Exif (CIPA DC-008, 4.6.4), which is TIFF in APP1
** =======================================================
*/

static unsigned number (const unsigned char *p, int n, bool big) {
  unsigned v = 0;
  for (int i = 0; i < n; i++) v |= (unsigned)p[i] << 8 * (big ? n - 1 - i : i);
  return v;
}

/* 1 to 8; 1, which is upright, when these n bytes do not tell. */
static int tiff_orientation (const unsigned char *p, size_t n) {
  enum { HEAD = 8, ENTRY = 12, ORIENTATION = 0x0112, SHORT = 3 };
  if (n < HEAD) return 1;
  bool big = p[0] == 'M';
  if (memcmp(p, big ? "MM" : "II", 2) != 0 || number(p + 2, 2, big) != 42)
    return 1;
  size_t at = number(p + 4, 4, big);
  if (at > n - 2) return 1;
  unsigned count = number(p + at, 2, big);
  for (at += 2; count > 0 && at + ENTRY <= n; count--, at += ENTRY) {
    const unsigned char *e = p + at;
    if (number(e, 2, big) != ORIENTATION) continue;
    unsigned v = number(e + 8, 2, big);
    bool good = number(e + 2, 2, big) == SHORT && v >= 1 && v <= 8;
    return good ? (int)v : 1;
  }
  return 1;
}

static int orientation (const Codec *c) {
  static const char head[6] = "Exif\0";
  for (jpeg_saved_marker_ptr m = c->jpeg.marker_list; m != NULL; m = m->next)
    if (m->marker == MARKER && m->data_length >= sizeof head &&
        memcmp(m->data, head, sizeof head) == 0)
      return tiff_orientation(m->data + sizeof head,
                              m->data_length - sizeof head);
  return 1;
}

/* x (h, w, c) as it is to be seen: rows and columns swapped, then either or
** both run backwards. */
static Tensor *upright (Tensor *x, int tag) {
  static const struct {
    bool swap, rows, columns;
  } ways[] = { { 0, 0, 0 }, { 0, 0, 1 }, { 0, 1, 1 }, { 0, 1, 0 },
               { 1, 0, 0 }, { 1, 0, 1 }, { 1, 1, 1 }, { 1, 1, 0 } };
  if (tag == 1) return x;
  bool swap = ways[tag - 1].swap;
  int64_t h = x->shape[swap], w = x->shape[!swap], n = x->shape[2];
  Tensor *y = tensor_new(3, (int64_t[]){ h, w, n }, FNN_U8, device_cpu());
  const uint8_t *from = tensor_data(x);
  uint8_t *to = tensor_data(y);
  for (int64_t i = 0; i < h; i++)
    for (int64_t j = 0; j < w; j++, to += n) {
      int64_t r = ways[tag - 1].rows ? h - 1 - i : i;
      int64_t k = ways[tag - 1].columns ? w - 1 - j : j;
      memcpy(to, from + (swap ? k * h + r : r * w + k) * n, (size_t)n);
    }
  return y;
}

/* }====================================================== */

/* Refuses sizes that the file's bytes cannot be the code of, and coefficients
** that memory is not there for. */
static void check_size (Codec *c) {
  struct jpeg_decompress_struct *j = &c->jpeg;
  int64_t w = j->image_width, h = j->image_height;
  if (w * h / RATIO > c->reader->size)
    fnn_throw(FNN_EFORMAT,
              "%s: truncated: %lld by %lld pixels do not fit its %lld bytes",
              c->reader->name, (long long)w, (long long)h,
              (long long)c->reader->size);
  fnn_Memory m = fnn_memory();
  uint64_t need = (uint64_t)(w * h) * (uint64_t)j->num_components * 3;
  if (jpeg_has_multiple_scans(j) && m.limit > 0 && m.live + need > m.limit)
    fnn_throw(FNN_EMEMORY,
              "%s: out of memory: an image in scans of %lld by %lld pixels "
              "takes %llu bytes, with %llu of %llu in use",
              c->reader->name, (long long)w, (long long)h,
              (unsigned long long)need, (unsigned long long)m.live,
              (unsigned long long)m.limit);
}

/* CMYK as RGB.  The numbers are of paper that shows, not of ink: so Adobe's
** programs write them, and so Pillow and browsers read all such files. */
static void from_cmyk (Tensor *y, const Tensor *x) {
  const uint8_t *p = tensor_data(x);
  uint8_t *q = tensor_data(y);
  for (int64_t i = 0; i < x->shape[0] * x->shape[1]; i++, p += 4, q += 3)
    for (int k = 0; k < 3; k++) q[k] = (uint8_t)((p[3] * p[k] + 127) / 255);
}

static Tensor *read_rows (Codec *c) {
  struct jpeg_decompress_struct *j = &c->jpeg;
  int64_t h = j->output_height, w = j->output_width, n = j->output_components;
  Tensor *x = tensor_new(3, (int64_t[]){ h, w, n }, FNN_U8, device_cpu());
  while (j->output_scanline < j->output_height) {
    JSAMPROW row = (uint8_t *)tensor_data(x) + j->output_scanline * w * n;
    jpeg_read_scanlines(j, &row, 1);
  }
  if (n != 4) return x;
  Tensor *y = tensor_new(3, (int64_t[]){ h, w, 3 }, FNN_U8, device_cpu());
  from_cmyk(y, x);
  return y;
}

Tensor *jpeg_read (Reader *r) {
  size_t m = fnn_mark();
  Codec *c = codec_new(r);
  struct jpeg_decompress_struct *j = &c->jpeg;
  jpeg_save_markers(j, MARKER, 0xffff);
  jpeg_read_header(j, TRUE);
  check_size(c);
  if (j->arith_code)
    fnn_throw(FNN_EFORMAT,
              "%s: a JPEG image in arithmetic coding, which is "
              "not read",
              r->name);
  switch (j->jpeg_color_space) {
    case JCS_GRAYSCALE: j->out_color_space = JCS_GRAYSCALE; break;
    case JCS_CMYK:
    case JCS_YCCK: j->out_color_space = JCS_CMYK; break;
    default: j->out_color_space = JCS_RGB;
  }
  jpeg_start_decompress(j);
  Tensor *x = upright(read_rows(c), orientation(c));
  return fnn_escape(m, x);
}

#endif
