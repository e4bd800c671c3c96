/* io.h - what the readers and writers of files share.
**
** reader.c    checked reading, of a file, of bytes in memory, through gzip
** writer.c    atomic writing
** folder.c    folders: made, listed, and swept
** append.c    files that grow, checksums of their pieces
** sniff.c     what a file that is not the expected one seems to be
** element.c   numbers as files hold them, and the dtypes they become
** number.c    decimal numbers, whatever the locale
** json.c      JSON, by jansson
** safetensors.c, npy.c, idx.c, csv.c, png.c    a format each
** jpeg.c      JPEG images, where libjpeg is
** image.c     images, told by their first bytes
** draw.c      rectangles and text in images; glyphs.c the letters
** canvas*.c   what plots are drawn on
**
** A format reads from a Reader, so that hosts and tests can give it bytes as
** well as a path.  All input is hostile: a size is checked against what the
** file can hold before anything is allocated for it, and a message begins
** with the file's name.  Message texts call what a file holds by the names
** that its format uses. */

#ifndef io_h
#define io_h

#include <jansson.h>

#include "../core/core.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "files hold little-endian numbers and are read as they are");

/*
** {======================================================
** Reading
** =======================================================
*/

typedef struct Unzip Unzip;

/* A place in a file, or in bytes that the caller keeps. */
typedef struct Reader {
  Object o;
  int fd;                     /* -1: bytes */
  const unsigned char *bytes; /* NULL: a file */
  int64_t size;               /* of the file */
  int64_t at;                 /* the next byte of the file */
  Unzip *zip;                 /* NULL: the file is read as it is */
  char name[];                /* the path, for messages */
} Reader;

Reader *reader_open (const char *path);
Reader *reader_bytes (const char *name, const void *bytes, size_t size);

/* From here on, if a gzip file begins here, reads what it holds. */
void reader_unzip (Reader *r);

/* Reads n bytes, or throws that the file is truncated. */
void reader_read (Reader *r, void *to, int64_t n);
/* Reads up to n bytes and returns how many; 0 at the end. */
int64_t reader_some (Reader *r, void *to, int64_t n);
/* Throws unless the file can hold n bytes more: asked before allocating for
** them.  Compressed bytes hold at most about a thousand times their number. */
void reader_need (Reader *r, int64_t n);
/* Throws unless the file ends here. */
void reader_end (Reader *r);
/* Goes to a place; not while unzipping. */
void reader_seek (Reader *r, int64_t at);

/* Throws that r is not what it should be ("a safetensors file"), and says
** what it seems to be instead. */
FNN_NORETURN void reader_wrong (Reader *r, const char *what);

/* Throws FNN_EFILE: "PATH: cannot DOING: " and the text of errno. */
FNN_NORETURN void reader_fail (const char *path, const char *doing);

/* Whether the host's policy lets path be opened; mode is "r" or "w". */
void reader_allowed (const char *path, const char *mode);

/* Counted memory for libraries that free without saying a size; NULL when
** there is none. */
void *reader_alloc (size_t bytes);
void reader_free (void *p);

/* }====================================================== */

/*
** {======================================================
** Writing
** =======================================================
*/

/* A file that comes to be when it is whole: bytes go to a temporary file
** beside the target, which writer_close renames.  An error in between leaves
** the target as it was and no other file. */
typedef struct Writer Writer;

Writer *writer_open (const char *path);
/* One whose bytes are kept instead, up to 1 GB: writer_bytes gives them as
** u8. */
Writer *writer_memory (void);
Tensor *writer_bytes (Writer *w);
void writer_put (Writer *w, const void *p, int64_t n);
void writer_close (Writer *w);

/* Makes a folder, and those it is in, unless it is there. */
void folder_make (const char *path) LENT(folder_make);
/* Makes those that a file is to be in. */
void folder_around (const char *path);
/* The names of entries_read, each with a zero behind: (n) of u8. */
Tensor *folder_names (const char *path) LENT(folder_names);
/* Removes the temporary files of writers that no longer live: how many. */
int folder_sweep (const char *path) LENT(folder_sweep);
/* Removes a file, if it is there. */
void file_remove (const char *path) LENT(file_remove);

/* A file that is appended to; fresh: which must not be there yet. */
typedef struct Appender Appender;

Appender *appender_open (const char *path, bool fresh) LENT(appender_open);
/* Appends n bytes; when it returns, all of them are in the file. */
void appender_put (Appender *a, const void *p, int64_t n) LENT(appender_put);
/* Takes n bytes off the end. */
void appender_cut (Appender *a, int64_t n) LENT(appender_cut);
/* What stands behind the last newline, as u8; at most 1 MB. */
Tensor *appender_tail (Appender *a) LENT(appender_tail);

uint32_t crc32c (const void *p, int64_t n) LENT(crc32c);

/* The elements of x in row-major order on the host: x's own or a copy. */
const void *writer_elements (fnn_Tensor *x);

/* }====================================================== */

/*
** {======================================================
** Elements and numbers
** =======================================================
*/

/* Element types of files, and the dtype that each is read as.  All values
** are kept; u64 above the range of i64 throws. */
typedef enum Element {
  ELEMENT_BOOL,
  ELEMENT_U8,
  ELEMENT_I8,
  ELEMENT_U16,
  ELEMENT_I16,
  ELEMENT_U32,
  ELEMENT_I32,
  ELEMENT_U64,
  ELEMENT_I64,
  ELEMENT_F8_E4M3,
  ELEMENT_F8_E5M2,
  ELEMENT_F8_E8M0,
  ELEMENT_F16,
  ELEMENT_BF16,
  ELEMENT_F32,
  ELEMENT_F64,
  ELEMENT_NONE
} Element;

size_t element_size (Element e);
const char *element_name (Element e); /* as safetensors calls it */
Element element_find (const char *name);
Element element_of (fnn_Dtype t);

/* How many bytes a tensor of e holds, or -1 when no int64 can tell. */
int64_t element_bytes (Element e, int ndim, const int64_t *shape);
/* Reads a tensor; swap: the file's numbers are big-endian.  what names it in
** messages. */
fnn_Tensor *element_read (Reader *r, Element e, bool swap, int ndim,
                          const int64_t *shape, const char *what);

/* Whether all n characters of s spell a decimal number (or nan, inf), and
** its nearest double. */
bool number_parse (const char *s, size_t n, double *value);

/* }====================================================== */

/*
** {======================================================
** JSON
** =======================================================
*/

/* A tree of jansson's that lives as long as the object. */
typedef struct Json {
  Object o;
  json_t *root;
  char *text; /* what json_text made last */
} Json;

/* Parses n bytes; name begins the messages.  Throws on a key given twice and
** on deep nesting. */
Json *json_parse (const char *name, const char *text, size_t n);
/* The same of text that begins on this line of the file. */
Json *json_parse_line (const char *name, int64_t line, const char *text,
                       size_t n);
Json *json_read (const char *path); /* a file of at most 256 MB */
Json *json_new (void);              /* an empty object */
/* Compact JSON of j's tree, which lasts until the next call. */
const char *json_text (Json *j);
bool json_utf8 (const char *s, size_t n);

/* }====================================================== */

/* What is in a folder, but for names that begin with a dot, in the order of
** their bytes. */
typedef struct FolderEntry {
  char *name;
  bool folder, file; /* what it is, or leads to */
  bool link;
} FolderEntry;

typedef struct Entries {
  Object o;
  int64_t n, room;
  FolderEntry *list;
} Entries;

Entries *entries_read (const char *path);

/* A whole file of at most 256 MB as u8; and n bytes as a file. */
Tensor *file_read (const char *path) LENT(file_read);
void file_write (const char *path, const void *p, int64_t n) LENT(file_write);

/* The CRC-32 of a file's content, unzipped if it is in gzip, and its size. */
uint32_t file_crc32 (const char *path, int64_t *size);

/*
** {======================================================
** Canvas
** =======================================================
**
** What plots are drawn on: a u8 tensor (h, w, 4) on the CPU, a pixel being
** blue, green, red and a byte that nobody reads, which is what cairo calls
** RGB24.  x grows to the right and y down, in pixels; whole numbers are the
** edges of pixels.  What is outside the canvas, or the clip, is cut off;
** points that are not finite are gaps.  Two bodies draw: cairo, where its
** library is, and the plain one, which needs nothing.
**
** canvas.c         checks, clipping, thinning out, dashes, images
** canvas_plain.c   coverage of pixels by distance, letters of strokes
** canvas_cairo.c   the same by cairo, and its text
** canvas_dots.c    lines and points on the dots of braille letters
*/

typedef struct Box {
  double x0, y0, x1, y1;
} Box;

typedef struct Pen {
  uint32_t color; /* 0xRRGGBB */
  double alpha;   /* 0 to 1 */
  double width;   /* of a line; the radius of a mark; the size of letters */
  double dash;    /* the length of dashes and of what is between; 0: none */
} Pen;

typedef enum Mark {
  MARK_CIRCLE,
  MARK_SQUARE,
  MARK_TRIANGLE,
  MARK_DIAMOND,
  MARK_CROSS,
  MARK_PLUS,
  MARK_COUNT
} Mark;

/* The pixels of a canvas, for a body.  clip lies within them. */
typedef struct Surface {
  uint8_t *data;
  uint8_t *mask; /* (h, w), zero between calls: for the plain body */
  int64_t w, h;
  Box clip;
} Surface;

/* A body.  Points are finite and near the clip.  None of them throws. */
typedef struct Canvas {
  const char *name;
  void (*stroke)(const Surface *s, const Pen *p, int64_t n, const double *xy);
  void (*marks)(const Surface *s, const Pen *p, Mark m, int64_t n,
                const double *xy);
  void (*rect)(const Surface *s, const Pen *p, const Box *b);
  /* One line of UTF-8 from (x, y), the left end of its base line; upward:
  ** turned to the left. */
  void (*text)(const Surface *s, const Pen *p, double x, double y, bool upward,
               bool bold, const char *text);
  double (*text_width)(double size, bool bold, const char *text);
} Canvas;

const Canvas *canvas_plain (void);
const Canvas *canvas_cairo (void); /* NULL without cairo */
/* Cairo's unless plain is wanted or all there is. */
const Canvas *canvas_choose (bool plain) LENT(canvas_choose);

/* A line through n points, x and y f64 on the CPU.  mask: u8 (h, w) of zeros,
** which it is again afterwards. */
void canvas_lines (const Canvas *c, Tensor *to, Tensor *mask, const Box *clip,
                   const Pen *p, const Tensor *x, const Tensor *y)
    LENT(canvas_lines);
void canvas_marks (const Canvas *c, Tensor *to, Tensor *mask, const Box *clip,
                   const Pen *p, Mark m, const Tensor *x, const Tensor *y)
    LENT(canvas_marks);
void canvas_rect (const Canvas *c, Tensor *to, const Box *clip, const Pen *p,
                  const Box *b) LENT(canvas_rect);
void canvas_text (const Canvas *c, Tensor *to, Tensor *mask, const Pen *p,
                  double x, double y, bool upward, bool bold, const char *text)
    LENT(canvas_text);
double canvas_text_width (const Canvas *c, double size, bool bold,
                          const char *text) LENT(canvas_text_width);
/* The image u8 (h, w, 3) fills b, to whole pixels: the nearest of its pixels
** where it grows, means of them where it shrinks. */
void canvas_image (Tensor *to, const Box *clip, const Box *b,
                   const Tensor *image) LENT(canvas_image);

/* Sets dots of u8 (rows, columns) of braille letters, 2 by 4 dots each: at
** the points, and on what joins them. */
void canvas_dots (Tensor *to, bool join, const Tensor *x, const Tensor *y)
    LENT(canvas_dots);

/* The part of a segment inside b (Liang and Barsky 1984); false if none. */
bool canvas_clip (const Box *b, double *x0, double *y0, double *x1,
                  double *y1);

/* }====================================================== */

/* The formats, from a reader. */
fnn_Safetensors *safetensors_open (Reader *r);
fnn_Tensor *npy_read (Reader *r);
fnn_Tensor *idx_read (Reader *r);
fnn_Csv *csv_read (Reader *r, const fnn_CsvOptions *o);
fnn_Png *png_open (Reader *r);
Tensor *jpeg_read (Reader *r); /* u8 (h, w, 1 or 3) */
Tensor *image_read (Reader *r, int channels);
/* An image with that many channels; 0: as it is. */
Tensor *image_channels (Tensor *x, int channels);

/* Glyphs: a cell of 5 by 9 dots, the last two rows below the line. */
enum { GLYPH_WIDTH = 5, GLYPH_HEIGHT = 9 };
bool glyph_dot (int c, int x, int y);

#endif
