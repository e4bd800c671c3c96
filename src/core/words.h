/* words.h - the words of map.def, zip.def and loss.def that are made of other
** words: included once for each type `real`, where exp, select, R ... mean
** its bodies and WORD_INLINE says how a function is declared. */

/* Slopes that take more than a line.  x sigmoid(b x): */
WORD_INLINE real swish_slope (real x, real b) {
  real s = sigmoid(b * x);
  return s + b * x * s * (1 - s);
}

/* x sigmoid(x (p + q x^2)) */
WORD_INLINE real gelu_tanh_slope (real x) {
  const real p = R(1.5957691216057308), q = R(0.07135481627260025);
  real s = sigmoid(x * (p + q * x * x));
  return s + x * s * (1 - s) * (p + 3 * q * x * x);
}

/* x tanh(log(1 + e^x)) = x (e^2x + 2 e^x) / (e^2x + 2 e^x + 2) */
WORD_INLINE real mish (real x) {
  real e = exp(select(x > 20, R(20), x)), n = e * (e + 2);
  return x * (n / (n + 2));
}

/* t + x t' with t = n / (n + 2), t' = 4 e (e + 1) / (n + 2)^2 */
WORD_INLINE real mish_slope (real x) {
  real e = exp(select(x > 20, R(20), x)), n = e * (e + 2);
  return n / (n + 2) +
         select(x > 20, R(0), 4 * x * e * (e + 1) / ((n + 2) * (n + 2)));
}

/* }====================================================== */

/*
** {======================================================
** The words of losses
** =======================================================
*/

WORD_INLINE real square (real x) { return x * x; }

/* The sign of x, 0 at 0. */
WORD_INLINE real side (real x) {
  return select(x > 0, R(1), select(x < 0, R(-1), R(0)));
}

WORD_INLINE real within (real x, real a) {
  return select(x < -a, -a, select(x > a, a, x));
}

WORD_INLINE real at_least (real x, real a) { return select(x < a, a, x); }

/* A logarithm, at least -100 as in PyTorch. */
WORD_INLINE real log_floor (real l) { return at_least(l, R(-100)); }

/* log(1 + e^x) */
WORD_INLINE real softplus (real x) {
  return select(x < 0, R(0), x) + log1p(exp(-fabs(x)));
}

/* (1 - t) softplus(x) + u t softplus(-x) */
WORD_INLINE real logit_entropy (real x, real t, real u) {
  real l = log1p(exp(-fabs(x)));
  return (1 - t) * (select(x < 0, R(0), x) + l) +
         u * t * (select(x < 0, -x, R(0)) + l);
}

/* Both halves of a probability, none of them by subtraction from 1. */
WORD_INLINE real odds_for (real x) {
  real e = exp(-fabs(x)), most = 1 / (1 + e);
  return select(x < 0, e * most, most);
}

WORD_INLINE real odds_against (real x) {
  real e = exp(-fabs(x)), most = 1 / (1 + e);
  return select(x < 0, most, e * most);
}

WORD_INLINE real logit_slope (real x, real t, real u) {
  real yes = odds_for(x), no = odds_against(x);
  return (1 - t) * yes - u * t * no;
}

/* The focal loss (Lin et al. 2017): share(t) q^gamma ce, q the probability
** given to what the target is not, ce the cross entropy. */
WORD_INLINE real focal_share (real t, real alpha) {
  return select(alpha < 0, R(1), alpha * t + (1 - alpha) * (1 - t));
}

WORD_INLINE real focal (real x, real t, real alpha, real gamma) {
  real yes = odds_for(x), no = odds_against(x);
  real q = (1 - t) * yes + t * no;
  return focal_share(t, alpha) * pow(q, gamma) * logit_entropy(x, t, R(1));
}

/* With dq, the slope of q: q^gamma (gamma dq / q ce + dce), where the first
** term vanishes with q. */
WORD_INLINE real focal_slope (real x, real t, real alpha, real gamma) {
  real yes = odds_for(x), no = odds_against(x);
  real q = (1 - t) * yes + t * no, dq = yes * no * (1 - 2 * t);
  real rise = select(q > 0, gamma * dq / q, R(0));
  return focal_share(t, alpha) * pow(q, gamma) *
         (rise * logit_entropy(x, t, R(1)) + logit_slope(x, t, R(1)));
}

WORD_INLINE real focal_target_slope (real x, real t, real alpha, real gamma) {
  real yes = odds_for(x), no = odds_against(x);
  real q = (1 - t) * yes + t * no, ce = logit_entropy(x, t, R(1));
  real rise = select(q > 0, gamma * (no - yes) / q, R(0));
  real more = select(alpha < 0, R(0), 2 * alpha - 1);
  return pow(q, gamma) * (more * ce + focal_share(t, alpha) * (rise * ce - x));
}

/* d in units of the deviation whose square has the logarithm v. */
WORD_INLINE real deviations (real d, real v) {
  return select(d == 0, R(0), d * exp(R(-0.5) * v));
}

/* log t! for t > 1: t log t - t + log(2 pi t) / 2 */
WORD_INLINE real stirling (real t) {
  real l = log(t);
  return select(t > 1, t * l - t + R(0.5) * (l + R(1.8378770664093455)), R(0));
}

WORD_INLINE real stirling_slope (real t) {
  return select(t > 1, log(t) + R(0.5) / t, R(0));
}

/* }====================================================== */
