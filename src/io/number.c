/* number.c - decimal numbers, whatever the locale.
**
** strtod reads the locale's decimal point, so it is shown none: the number is
** rewritten as its digits and an exponent, which it rounds correctly.  Most
** numbers have few digits and take the short way: a whole number below 2^53
** times or over a power of ten up to 10^22 is one exact operation (Clinger
** 1990, "How to read floating point numbers accurately"). */

#include "io.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* DIGITS: beyond the 768th a digit can only break a tie (the longest double
** halfway between two has 767). */
enum { DIGITS = 780, EXPONENT_MAX = 1000000 };

static const double power[] = {
  1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

/* The parts of a number: digits without leading zeros, times 10^exponent. */
typedef struct Decimal {
  bool negative, any; /* any: at least one digit was there */
  int n;
  int64_t exponent;
  char digit[DIGITS + 32];
} Decimal;

static bool is_digit (char c) { return c >= '0' && c <= '9'; }

static void add_digit (Decimal *d, char c, bool fraction) {
  d->any = true;
  if (d->n == 0 && c == '0') {
    d->exponent -= fraction;
  } else if (d->n < DIGITS) {
    d->digit[d->n++] = c;
    d->exponent -= fraction;
  } else {
    d->exponent += !fraction;
    if (c != '0') d->digit[DIGITS - 1] = '1'; /* breaks the tie */
  }
}

/* Reads "e+12" at s; returns where it ends, or NULL when it is malformed. */
static const char *exponent (Decimal *d, const char *s, const char *end) {
  int64_t e = 0;
  bool minus = s + 1 < end && s[1] == '-';
  s += 1 + (s + 1 < end && (s[1] == '-' || s[1] == '+'));
  if (s == end || !is_digit(*s)) return NULL;
  for (; s < end && is_digit(*s); s++)
    if (e < EXPONENT_MAX) e = e * 10 + (*s - '0');
  d->exponent += minus ? -e : e;
  return s;
}

static double value_of (Decimal *d) {
  if (d->n == 0) return 0;
  if (d->n <= 15 && d->exponent >= -22 && d->exponent <= 22) {
    int64_t whole = 0;
    for (int i = 0; i < d->n; i++) whole = whole * 10 + (d->digit[i] - '0');
    return d->exponent < 0 ? (double)whole / power[-d->exponent]
                           : (double)whole * power[d->exponent];
  }
  snprintf(d->digit + d->n, sizeof d->digit - (size_t)d->n, "e%lld",
           (long long)d->exponent);
  return strtod(d->digit, NULL);
}

static bool word (const char *s, size_t n, double *value) {
  bool inf = (n == 3 && strncasecmp(s, "inf", 3) == 0) ||
             (n == 8 && strncasecmp(s, "infinity", 8) == 0);
  *value = inf ? INFINITY : NAN;
  return inf || (n == 3 && strncasecmp(s, "nan", 3) == 0);
}

bool number_parse (const char *s, size_t n, double *value) {
  Decimal d;
  d.negative = d.any = false;
  d.n = 0;
  d.exponent = 0;
  const char *end = s + n;
  if (s < end && (*s == '-' || *s == '+')) d.negative = *s++ == '-';
  if (!word(s, (size_t)(end - s), value)) {
    for (; s < end && is_digit(*s); s++) add_digit(&d, *s, false);
    if (s < end && *s == '.')
      for (s++; s < end && is_digit(*s); s++) add_digit(&d, *s, true);
    if (!d.any) return false;
    if (s < end && (*s == 'e' || *s == 'E')) s = exponent(&d, s, end);
    if (s != end) return false;
    *value = value_of(&d);
  }
  if (d.negative) *value = -*value;
  return true;
}
