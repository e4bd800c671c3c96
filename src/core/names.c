/* names.c - the name that was probably meant: the nearest by Damerau's edit
** distance, in which a swap of neighbours counts once. */

#include <ctype.h>
#include <string.h>

#include "core.h"

enum { NAME_MAX_LENGTH = 40 };

static int least (int a, int b) { return a < b ? a : b; }

int name_distance (const char *a, const char *b) {
  int n = (int)strlen(a), m = (int)strlen(b);
  if (n > NAME_MAX_LENGTH || m > NAME_MAX_LENGTH) return NAME_MAX_LENGTH;
  int row[3][NAME_MAX_LENGTH + 1];
  for (int j = 0; j <= m; j++) row[0][j] = j;
  for (int i = 1; i <= n; i++) {
    int *d = row[i % 3], *up = row[(i + 2) % 3], *up2 = row[(i + 1) % 3];
    d[0] = i;
    for (int j = 1; j <= m; j++) {
      int x = tolower((unsigned char)a[i - 1]);
      int y = tolower((unsigned char)b[j - 1]);
      d[j] = least(least(up[j], d[j - 1]) + 1, up[j - 1] + (x != y));
      if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
          y == tolower((unsigned char)a[i - 2]))
        d[j] = least(d[j], up2[j - 2] + 1);
    }
  }
  return row[n % 3][m];
}

const char *nearest_name (const char *s, const void *names, int n,
                          size_t step) {
  const char *best = NULL;
  int most = least(3, 1 + (int)strlen(s) / 4) + 1;
  for (int i = 0; i < n; i++) {
    const char *name =
        *(const char *const *)((const char *)names + (size_t)i * step);
    int d = name_distance(s, name);
    if (d < most) most = d, best = name;
  }
  return best;
}
