/* embed.h - the Lua files held by the binary, as scripts/embed writes them. */

#ifndef embed_h
#define embed_h

#include <stddef.h>

typedef struct Embedded {
  const char *name;          /* "fnn/nn.lua", of lua/fnn/nn.lua */
  const unsigned char *text; /* a zero follows it */
  size_t size;
} Embedded;

/* Ends with a row whose name is NULL. */
extern const Embedded embedded[];

#endif
